"""What the last poll found and no slot was free for: used at once when one comes free, while it is likely still true."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thunderagent.task import Status, Task

FRESH = 5.0
"""Seconds for which what a poll read is worth trying. A query costs about as much as one claim that is lost."""

WIDEST = 16
"""Batches that a poll reads at most, to choose one from at random. Of 16 agents that all take the first batch, each loses six
claims of ten, and one lost costs as much as reading 40 tasks of 1 KB."""

MANY_LOST, FEW_LOST = 0.2, 0.05
"""Shares of claims lost from which on a poll reads twice as much as the last one did, and up to which it reads half."""


class Candidates:
    """Tasks to try, in order. Others read the same page, so once more claims are lost than won the rest is not worth trying."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tasks: list[Task] = []
        self._read_at = clock()
        self._won = self._lost = 0
        self.width = 1
        """Batches that the next poll should read: the more agents want the same tasks, the more there is to choose from."""

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def replace(self, tasks: Iterable[Task]) -> None:
        """Take what a new poll found in place of what an older one did; expired leases are looked for elsewhere and stay."""
        self._tasks = [*self._expired(), *tasks]
        self._read_at = self._clock()
        self.width = next_width(self.width, self._won, self._lost)
        self._won = self._lost = 0

    def add_expired(self, task: Task) -> None:
        """A task whose lease has ended; it goes first."""
        if all(each.task_id != task.task_id for each in self._tasks):
            self._tasks.insert(0, task)

    def note_claim(self, won: bool) -> None:
        self._won += won
        self._lost += not won

    def take(self, fits: Callable[[Task], bool]) -> list[Task]:
        """Remove and return those that fit; the rest stays for later, unless it is no longer worth trying."""
        if self._lost > self._won or self._clock() - self._read_at > FRESH:
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


def next_width(width: int, won: int, lost: int) -> int:
    """Batches for the next poll to read, after one that read ``width`` and the claims that came of it."""
    if won + lost == 0:
        return width
    share = lost / (won + lost)
    if share >= MANY_LOST:
        return min(WIDEST, 2 * width)
    return max(1, width // 2) if share <= FEW_LOST else width
