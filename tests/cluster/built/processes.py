"""Starting and ending the components of a built cluster, one by one. Process ids are those inside the node's namespace, so a
signal can never reach another process of the machine."""

from __future__ import annotations

from tests.cluster import commands
from tests.cluster.built.components import Component
from tests.cluster.built.layout import Layout
from tests.cluster.built.namespace import Namespace
from tests.cluster.errors import ClusterError

_LINES_SHOWN = 15


def start(namespace: Namespace, layout: Layout, component: Component) -> None:
    """Start a component; its output is appended to `<run>/logs/<name>.log`. Does nothing when it runs."""
    if runs(namespace, layout, component.name):
        return
    pid = namespace.start(component.argv, layout.logs / f"{component.name}.log")
    (layout.pids / component.name).write_text(str(pid))


def stop(namespace: Namespace, layout: Layout, name: str, signal: str = "KILL") -> None:
    """End a component by a signal and wait until it is gone. Does nothing when it does not run."""
    if not runs(namespace, layout, name):
        return
    namespace.run("sh", "-c", f"kill -{signal} {_pid(layout, name)}")
    commands.wait_until(f"{name} to end", 30, lambda: not runs(namespace, layout, name))


def runs(namespace: Namespace, layout: Layout, name: str) -> bool:
    """Whether a component runs."""
    return (layout.pids / name).exists() and namespace.succeeds("sh", "-c", f"kill -0 {_pid(layout, name)}")


def started(layout: Layout) -> list[str]:
    """The names of the components that were started, running or not."""
    return sorted(file.name for file in layout.pids.iterdir())


def require_running(namespace: Namespace, layout: Layout) -> None:
    """Raise `ClusterError`, with the end of its log, when a component that was started has ended."""
    for name in started(layout):
        if not runs(namespace, layout, name):
            log = layout.logs / f"{name}.log"
            last = "\n".join(log.read_text(errors="replace").splitlines()[-_LINES_SHOWN:])
            raise ClusterError(f"{name} has ended. The end of {log}:\n{last}")


def _pid(layout: Layout, name: str) -> str:
    return (layout.pids / name).read_text()
