"""Agents as a user starts them, watched from outside: by their log, by the table, and by what the kernel counts for them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.backlog import Backlog
from benchmarks.processes import cpu_seconds, tree
from thunderagent.settings import TableSettings

ROOT = Path(__file__).parents[1]
START_DELAY = 4.0
"""Seconds between an agent's start and its first poll, in which what the start itself costs comes to an end."""

PATIENCE = 180.0
LOOK = 0.02
QUIET = 0.3
"""Seconds without any processor time after which an agent that has started counts as idle."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The handlers that an agent runs at once."""

    processes: int
    threads: int

    @property
    def slots(self) -> int:
        return self.processes * self.threads

    def __str__(self) -> str:
        return f"{self.processes} x {self.threads} slots"


@dataclass(frozen=True, slots=True)
class Span:
    """Of a backlog: from the first claim acknowledged to the last completion acknowledged, and the processor time of it."""

    seconds: float
    cpu_seconds: float


class RunningAgent:
    """One ``thunderagent agent run`` and its log."""

    def __init__(self, process: subprocess.Popen[bytes], log_file: Path) -> None:
        self._process = process
        self._log_file = log_file
        self.pid = process.pid

    @property
    def child_pids(self) -> tuple[int, ...]:
        return tree(self.pid)[1:]

    def lines(self, event: str) -> list[str]:
        """The log lines that say this event."""
        return [line for line in self._log_file.read_text(errors="replace").splitlines() if f"INFO {event} " in line]

    def wait_for(self, event: str, count: int = 1) -> None:
        """Wait until an event has been logged so often. Raises RuntimeError where the agent ends or time runs out first."""
        deadline = time.monotonic() + PATIENCE
        while len(self.lines(event)) < count:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The agent did not log {event!r} {count} times:\n{self._log_file.read_text()[-3000:]}")
            time.sleep(LOOK)

    def wait_until_quiet(self) -> float:
        """Wait until starting is over and return the processor time used so far."""
        used, since = cpu_seconds(self.pid), time.monotonic()
        while time.monotonic() - since < QUIET:
            time.sleep(LOOK)
            if (now_used := cpu_seconds(self.pid)) != used:
                used, since = now_used, time.monotonic()
        return used


@contextmanager
def agent(table: TableSettings, handler: str, shape: Shape, **settings: object) -> Iterator[RunningAgent]:
    """An agent from its start to its drain. ``settings`` are flags; it is ready when it is handed over."""
    flags = {"processes": shape.processes, "threads": shape.threads, "port": -1} | settings
    where = [f"--table={table.table}", f"--endpoint={table.endpoint}"]
    command = [sys.executable, "-m", "thunderagent", "agent", "run", handler, *where]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    with tempfile.TemporaryDirectory() as folder:
        log_file = Path(folder) / "log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | {"PYTHONPATH": str(ROOT)}
            )
        try:
            running = RunningAgent(process, log_file)
            running.wait_for("agent ready")
            yield running
        finally:
            process.terminate()
            process.wait(PATIENCE)


def run_backlog(backlog: Backlog, handler: str, shape: Shape, batch: int) -> Span:
    """Have an agent run the whole backlog. Its start is over before it begins, and is not in the figures."""
    delay = {"start_delay_min": START_DELAY, "start_delay_max": START_DELAY}
    with agent(backlog.table, handler, shape, batch=batch, **delay) as running:
        before = running.wait_until_quiet()
        if running.lines("task claimed"):
            raise RuntimeError(f"The agent was not idle within {START_DELAY:g} s of its start; the machine is too busy.")
        try:
            running.wait_for("task ended", len(backlog.task_ids))
        except RuntimeError:
            backlog.check_all_ended()  # what the table says of those that are missing tells more than the log
            raise
        used = cpu_seconds(running.pid) - before
        first, last = line_time(running.lines("task claimed")[0]), line_time(running.lines("task ended")[-1])
    backlog.check_all_ended()
    return Span((last - first).total_seconds(), used)


def line_time(line: str) -> datetime:
    """When a log line was written."""
    return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f")  # noqa: DTZ007 - both ends are in the same zone
