"""What a cluster could leave on a machine, as lines of text: the same before `up` and after `down`, or something is left.

Counted are processes in namespaces of their own or with the state directory in their command line, mounts, network links and
routes, firewall rules, cgroups, settings of the kernel, and entries of the directories that such programs write to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tests.cluster import commands
from tests.cluster.errors import ClusterError

_DIRECTORIES = ("/etc/cni", "/opt", "/run", "/var/lib", "/var/log", "/var/tmp")
# Settings that count or draw at random, so they differ by themselves.
_UNSTEADY = re.compile(
    r"(random|_nr$|-nr$|-state$|pty/nr|ns_last_pid|conntrack_count|boot_id|sched_domain|avail|syncs|cdrom|uuid|rtc)"
)


def lines(state: Path) -> list[str]:
    """All lines, sorted."""
    return sorted({*_processes(state), *_mounts(), *_network(), *_cgroups(), *_kernel_settings(), *_entries()})


def _processes(state: Path) -> Iterator[str]:
    own = os.readlink("/proc/self/ns/pid"), os.readlink("/proc/self/ns/net")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            elsewhere = (os.readlink(process / "ns" / "pid"), os.readlink(process / "ns" / "net")) != own
        except OSError:
            continue
        if (elsewhere or str(state) in words) and "tests.cluster" not in words:
            yield f"process {process.name} {words}"


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        yield f"mount {line}"


def _network() -> Iterator[str]:
    for argv in (
        ("ip", "-oneline", "link", "show"),
        ("ip", "-oneline", "address", "show"),
        ("ip", "route", "show", "table", "all"),
        ("iptables-save",),
        ("ip6tables-save",),
    ):
        try:
            written = commands.run(*argv)
        except ClusterError:
            continue
        yield from (f"network {line}" for line in written.splitlines() if not line.startswith("#"))


def _cgroups() -> Iterator[str]:
    for directory, _, _ in os.walk("/sys/fs/cgroup"):
        yield f"cgroup {directory}"


def _kernel_settings() -> Iterator[str]:
    for file in (Path(directory) / name for directory, _, names in os.walk("/proc/sys") for name in names):
        if not _UNSTEADY.search(str(file)):
            try:
                yield f"setting {file} {' '.join(file.read_text().split())}"
            except (OSError, UnicodeDecodeError):
                continue


def _entries() -> Iterator[str]:
    for directory in map(Path, _DIRECTORIES):
        if directory.exists():
            for entry in directory.iterdir():
                yield f"entry {entry}"
                if entry.is_dir() and not entry.is_symlink() and directory.name in ("lib", "run", "log"):
                    yield from (f"entry {below}" for below in entry.iterdir())
