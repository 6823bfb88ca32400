"""What the last poll found and no slot was free for: used at once when one comes free, while it is likely still true."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thunderagent.task import Status, Task

FRESH = 5.0
"""Seconds for which what a poll read is worth trying. A query costs about as much as one claim that is lost."""


class Candidates:
    """Tasks to try, in order. Others read the same page, so once more claims are lost than won the rest is not worth trying."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tasks: list[Task] = []
        self._read_at = clock()
        self._balance = 0

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def replace(self, tasks: Iterable[Task]) -> None:
        """Take what a new poll found in place of what an older one did; expired leases are looked for elsewhere and stay."""
        self._tasks = [*self._expired(), *tasks]
        self._read_at = self._clock()
        self._balance = 0

    def add_expired(self, task: Task) -> None:
        """A task whose lease has ended; it goes first."""
        if all(each.task_id != task.task_id for each in self._tasks):
            self._tasks.insert(0, task)

    def note_claim(self, won: bool) -> None:
        self._balance += 1 if won else -1

    def take(self, fits: Callable[[Task], bool]) -> list[Task]:
        """Remove and return those that fit; the rest stays for later, unless it is no longer worth trying."""
        if self._balance < 0 or self._clock() - self._read_at > FRESH:
            self._tasks = self._expired()
        taken: list[Task] = []
        kept: list[Task] = []
        for task in self._tasks:
            (taken if fits(task) else kept).append(task)
        self._tasks = kept
        return taken

    def drop_expired(self) -> None:
        """Forget expired leases: their agents may have been as cut off as this one, and renew now."""
        self._tasks = [task for task in self._tasks if task.status is not Status.RUNNING]

    def clear(self) -> None:
        self._tasks.clear()

    def _expired(self) -> list[Task]:
        return [task for task in self._tasks if task.status is Status.RUNNING]
