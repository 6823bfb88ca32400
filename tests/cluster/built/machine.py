"""What a built cluster changes on the machine itself, outside its namespaces, and how each change is taken back.

- `fs.inotify.max_user_instances`, which counts for all processes of root: raised while the cluster is up.
- The cgroups of pods.
"""

from __future__ import annotations

from pathlib import Path

from tests.cluster import commands
from tests.cluster.built.layout import Layout

_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_INOTIFY_WANTED = 512  # the usual 128 are used up by what the components watch, and then `kubectl logs --follow` fails


def change(layout: Layout) -> None:
    """Raise the setting; what it was is written down before."""
    before = int(_INOTIFY.read_text())
    _file(layout).write_text(str(before))
    if before < _INOTIFY_WANTED:
        _INOTIFY.write_text(str(_INOTIFY_WANTED))


def restore(layout: Layout) -> None:
    """Remove the cgroups and set the setting back. Does nothing where `change` did nothing."""
    if not _file(layout).exists():
        return
    for group in pod_cgroups():
        _remove_cgroup(group)
    before = _file(layout).read_text()
    if int(_INOTIFY.read_text()) == _INOTIFY_WANTED:  # else somebody has set it since
        _INOTIFY.write_text(before)
    _file(layout).unlink()


def pod_cgroups() -> list[Path]:
    """The roots of the cgroups that a kubelet made: one with cgroup v2, one a controller with v1."""
    return [group for pattern in ("kubepods", "*/kubepods") for group in Path("/sys/fs/cgroup").glob(pattern)]


def _remove_cgroup(group: Path) -> None:
    # Children first; the kernel refuses with "busy" for a moment after a group's last process has ended.
    below = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
    commands.wait_until(f"{group} to be removable", 10, lambda: all(_gone(directory) for directory in [*below, group]))


def _gone(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _file(layout: Layout) -> Path:
    return layout.run / "inotify-instances"
