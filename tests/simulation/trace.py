"""What happened in a history, in the order in which it happened, for people and for comparing two histories."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from thunderagent.task import Status, Task

START = 1_800_000_000
"""The table's time in epoch seconds at which a history begins."""


@dataclass(frozen=True, slots=True)
class Line:
    """One event: seconds since the start, who did it, what, and which task it was about."""

    at: float
    who: str
    what: str
    task_id: str = ""

    def __str__(self) -> str:
        return f"{self.at:10.3f}  {self.who:<22} {self.task_id:<5} {self.what}"


class Trace:
    """All lines of one history."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def note(self, at: float, who: str, what: str, task_id: str = "") -> None:
        self.lines.append(Line(at, who, what, task_id))

    def digest(self) -> str:
        """The same for two histories that went the same way."""
        text = "\n".join(map(str, self.lines))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def about(self, task_ids: Iterable[str], most: int) -> list[Line]:
        """What led to the end: the latest lines about these tasks, and about the world (faults, agents, replicas)."""
        wanted = {*task_ids, ""}
        return [line for line in self.lines if line.task_id in wanted or not task_ids][-most:]


def state(task: Task | None) -> str:
    """A task's state in few words, times in seconds since the start."""
    if task is None:
        return "-"
    parts = [str(task.status)]
    if task.lock_time is not None:
        parts.append(f"{'until' if task.status is Status.RUNNING else 'from'} {task.lock_time - START:g}")
    if task.lock_token:
        parts.append(f"token {task.lock_token[:6]}")
    if task.waiting_for:
        parts.append(f"waits for {','.join(task.waiting_for)}")
    if task.error is not None:
        parts.append(task.error.type)
    if task.retry_count or task.release_count:
        parts.append(f"retries {task.retry_count}/{task.max_retry} releases {task.release_count}")
    return " ".join(parts)
