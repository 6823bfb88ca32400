"""The namespaces that a node runs in: processes, mounts and network of its own, held open by their first process.

They make `cluster-down` sure: when the first process of a PID namespace ends, the kernel ends all others in it, and with them
go the mounts, the network links and the firewall rules.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import commands
from tests.cluster.built.layout import Layout
from tests.cluster.errors import ClusterError

# The kubelet insists on these settings of the whole machine and would change them. It is shown files that say so already.
_SETTINGS_THE_KUBELET_WANTS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}

COVERED = (Path("/run"), Path("/var/lib"), Path("/var/log"))
"""Empty inside, and what is written there stays in memory: containerd, the kubelet and the CNI plugins each have a place there
that no setting moves."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Namespace:
    """Namespaces, by the id that their first process has on the machine; `began` tells it from a later one with the same id."""

    pid: int
    began: str

    def run(self, *argv: str | Path) -> str:
        """Run a program inside to its end and return its stdout. Raises `CommandFailed`."""
        return commands.run(*self._enter(), *argv, env=self._environment())

    def succeeds(self, *argv: str | Path) -> bool:
        """Whether a program inside ends without an error."""
        return commands.succeeds(*self._enter(), *argv, env=self._environment())

    def start(self, argv: tuple[str, ...], log: Path) -> int:
        """Start a program that stays; return its process id inside. It becomes a child of the first process, which reaps it."""
        script = 'log=$1; shift; setsid "$@" >>"$log" 2>&1 </dev/null & echo $!'
        return int(self.run("sh", "-c", script, "sh", log, *argv))

    def exists(self) -> bool:
        """Whether the first process still runs."""
        return _start_time(self.pid) == self.began

    def end(self) -> None:
        """Kill everything inside and wait until it is gone. Raises `ClusterError` when it stays."""
        if not self.exists():
            return
        outer = _parent(self.pid)
        os.kill(self.pid, signal.SIGKILL)
        commands.wait_until("the node's processes to end", 30, lambda: not self.exists() and _name(outer) != "unshare")

    def _enter(self) -> tuple[str, ...]:
        if not self.exists():
            raise ClusterError("The cluster is not running. Type: make cluster-up")
        return ("nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--")

    def _environment(self) -> dict[str, str]:
        """No proxies, no settings of whoever typed the command."""
        return {"PATH": _PATH, "HOME": "/nonexistent", "TMPDIR": "/run", "LANG": "C.UTF-8"}


def create(layout: Layout) -> Namespace:
    """Make the namespaces. Raises `ClusterError` where the machine does not allow it."""
    unshare = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    with (layout.logs / "namespace.log").open("ab") as log:
        outer = subprocess.Popen(
            [*unshare, layout.bin / "pause"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        namespace = _wait_for_first_process(outer, layout)
        _file(layout).write_text(json.dumps({"pid": namespace.pid, "began": namespace.began}))
    except BaseException:  # not written down, it would never be found again
        outer.kill()
        raise
    outer.returncode = 0  # it stays as long as the namespaces do; nothing here waits for it
    _arrange_mounts(namespace, layout)
    return namespace


def find(layout: Layout) -> Namespace | None:
    """The namespaces that `create` made from this state directory, if they are still there."""
    try:
        namespace = Namespace(**json.loads(_file(layout).read_text()))
    except FileNotFoundError:
        return None
    return namespace if namespace.exists() else None


def require(layout: Layout) -> Namespace:
    """The same. Raises `ClusterError` when they are not there."""
    namespace = find(layout)
    if namespace is None:
        raise ClusterError("The cluster is not running. Type: make cluster-up")
    return namespace


def _wait_for_first_process(outer: subprocess.Popen[bytes], layout: Layout) -> Namespace:
    commands.wait_until("the node's namespaces", 10, lambda: bool(_children(outer.pid)) or outer.poll() is not None)
    children = _children(outer.pid)
    if not children:
        raise ClusterError(f"The node's namespaces cannot be made: {(layout.logs / 'namespace.log').read_text().strip()}")
    commands.wait_until("the node's first process", 10, lambda: _name(children[0]) == "pause")
    return Namespace(children[0], _start_time(children[0]) or "")


def _arrange_mounts(namespace: Namespace, layout: Layout) -> None:
    for directory in COVERED:
        namespace.run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", directory)
    shown = layout.run / "sysctl"
    shown.mkdir()
    for name, value in _SETTINGS_THE_KUBELET_WANTS.items():
        file = shown / name.replace("/", ".")
        file.write_text(f"{value}\n")
        namespace.run("mount", "--bind", file, f"/proc/sys/{name}")


def _file(layout: Layout) -> Path:
    return layout.run / "namespace.json"


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _name(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _start_time(pid: int) -> str | None:
    """When the process began, in ticks since boot; None when there is none, or only a zombie that nobody has reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]
