"""Finding work on the classic layout: the published index over status and createdAt.

Waiting and retried tasks sit anywhere in the PENDING partition, since createdAt never changes. So a poll reads the head page,
where the oldest tasks are, and one roving page that goes on from where the last one stopped, from either end: however many
tasks wait, a ready one behind them is reached by a sweep. The roving page grows while sweeps find nothing to claim.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from thunderagent.store.base import Cursor, Page, Store
from thunderagent.task import Status, Task

ROVING_MAX = 1000
"""Items of the largest roving page; DynamoDB cuts a page at 1 MB anyway."""

EXPIRED_PAGE = 100
EXPIRED_PAGES = 10
"""A look for expired leases reads at most this many pages of this many items, and the next one goes on from there."""

Wanted = Callable[[Task], bool]


@dataclass(frozen=True, slots=True)
class Found:
    """What a poll found: tasks that are due (also waiting ones that are due for a look), and the read units it cost."""

    tasks: tuple[Task, ...]
    units: float


class Roving:
    """A read of one partition that goes on from where it stopped, and starts again from a random end."""

    def __init__(self, store: Store, status: Status, rng: random.Random, cursor: Cursor | None = None) -> None:
        self._store = store
        self._status = status
        self._rng = rng
        self._cursor = cursor
        self._newest_first = False
        self.swept = False
        """Whether the last page read was the last one of a sweep."""

    def page(self, limit: int) -> Page:
        if self._cursor is None:
            self._newest_first = self._rng.random() < 0.5
        page = self._store.page(self._status, limit=limit, cursor=self._cursor, newest_first=self._newest_first)
        self._cursor = page.cursor
        self.swept = page.cursor is None
        return page


class ClassicFinder:
    """Finds tasks to claim and leases that have ended. One per agent: it remembers where it stopped."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store = store
        self._pending = Roving(store, Status.PENDING, rng)
        self._running = Roving(store, Status.RUNNING, rng)
        self._roving_limit = 0

    def poll(self, limit: int, wanted: Wanted, now: int) -> Found:
        """Due tasks that are ``wanted``: of the head page, and of one roving page where the head does not fill ``limit``."""
        head = self._store.page(Status.PENDING, limit=limit)
        found = list(_due(head.tasks, wanted, now))
        if head.cursor is None or len(found) >= limit:
            return Found(tuple(found), head.units)
        roving = self._pending.page(max(limit, self._roving_limit))
        seen = {task.task_id for task in head.tasks}
        more = [task for task in _due(roving.tasks, wanted, now) if task.task_id not in seen]
        self._roving_limit = 0 if more else min(ROVING_MAX, 2 * max(limit, self._roving_limit))
        return Found((*found, *more), head.units + roving.units)

    def expired(self, now: int) -> Found:
        """RUNNING tasks whose lease has ended."""
        found: list[Task] = []
        units = 0.0
        for _ in range(EXPIRED_PAGES):
            page = self._running.page(EXPIRED_PAGE)
            units += page.units
            found += [task for task in page.tasks if task.status is Status.RUNNING and task.is_due(now)]
            if self._running.swept:
                break
        return Found(tuple(found), units)


def _due(tasks: Iterable[Task], wanted: Wanted, now: int) -> Iterator[Task]:
    return (task for task in tasks if task.status is Status.PENDING and task.is_due(now) and wanted(task))
