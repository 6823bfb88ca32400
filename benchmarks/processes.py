"""What processes of this machine have used, as the kernel counts it (proc_pid_stat(5), proc_pid_status(5))."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

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


def machine_busy(work: Callable[[], T]) -> tuple[T, float]:
    """What some work returned, and the share of the processors' time that was not idle meanwhile (proc_stat(5))."""
    busy_before, idle_before = _machine_ticks()
    result = work()
    busy, idle = _machine_ticks()
    return result, (busy - busy_before) / max(1, busy - busy_before + idle - idle_before)


def wait_until(condition: Callable[[], bool], seconds: float, look: float = 0.05) -> None:
    """Wait until a condition holds. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"It did not come within {seconds:g} s.")
        time.sleep(look)


def _machine_ticks() -> tuple[int, int]:
    """Ticks of all processors so far: busy ones, and those spent idle or waiting for a disk."""
    user, nice, system, idle, iowait, *others = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split("\n")[0].split()[1:8]
    )
    return user + nice + system + sum(others), idle + iowait


def require_linux() -> None:
    """Raises RuntimeError elsewhere: there is no /proc to read."""
    if not sys.platform.startswith("linux"):
        raise RuntimeError("The benchmarks read /proc and so need Linux.")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) * TICK  # utime, stime, cutime, cstime: fields 14 to 17 of the whole line
