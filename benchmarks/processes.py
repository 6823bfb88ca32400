"""What processes of this machine have used, as the kernel counts it (proc_pid_stat(5), proc_pid_status(5))."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TICK = 1 / os.sysconf("SC_CLK_TCK")
"""Seconds of the unit in which the kernel counts a process's time."""


def tree(pid: int) -> tuple[int, ...]:
    """The process, its children, and theirs."""
    children = [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    return (pid, *(each for child in children for each in tree(child)))


def cpu_seconds(pid: int) -> float:
    """Processor time, user and system, of a process and all below it so far, those that have ended and were waited for too."""
    return sum(_cpu_seconds(each) for each in tree(pid))


def resident_mb(pid: int) -> float:
    """Megabytes of memory that the process itself holds at the moment (VmRSS)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ProcessLookupError(pid)


def require_linux() -> None:
    """Raises RuntimeError elsewhere: there is no /proc to read."""
    if not sys.platform.startswith("linux"):
        raise RuntimeError("The benchmarks read /proc and so need Linux.")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) * TICK  # utime, stime, cutime, cstime: fields 14 to 17 of the whole line
