"""Reading the backlog for scaling: exact as far as it goes, bounded in cost, and honest about where it was cut.

A pool of at most ``needed`` tasks' worth of replicas gains nothing from counting further, so a count stops there and says so.
Tasks that wait are in the same partition as ready ones and may stand before them; where the head does not show ``needed`` ready
tasks, one roving page a reading goes through the rest, and what the last whole sweep found counts until the next one ends.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from thunderagent.store.base import Store
from thunderagent.store.classic import Roving, Wanted
from thunderagent.task import Status, Task

RUNNING_PAGES = 10
"""Pages of RUNNING entries that one reading goes through at most."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """One reading. Ages and times in the table's seconds; ``units`` are the read units it cost.

    ready: PENDING, due and not waiting. waiting: for dependencies. waiting_due: of these, due for a look. scheduled: PENDING
    with a time still to come. running: live leases by lockOwner. expired: RUNNING past their lease. A cut count is "at least".
    """

    at: int
    ready: int = 0
    waiting: int = 0
    waiting_due: int = 0
    scheduled: int = 0
    running: Mapping[str, int] = field(default_factory=dict)
    expired: int = 0
    oldest_ready_age: float = 0.0
    cut: bool = False
    units: float = 0.0


@dataclass(slots=True)
class _Tally:
    """Counts under way. An id counts once, however often the pages show it."""

    now: int
    seen: set[str] = field(default_factory=set)
    ready: int = 0
    waiting: int = 0
    waiting_due: int = 0
    scheduled: int = 0
    oldest: float | None = None

    def add(self, task: Task) -> None:
        if task.task_id in self.seen or task.status is not Status.PENDING:
            return
        self.seen.add(task.task_id)
        due = task.is_due(self.now)
        if task.is_waiting:
            self.waiting += 1
            self.waiting_due += due
        elif due:
            self.ready += 1
            self._age(task)
        else:
            self.scheduled += 1

    def _age(self, task: Task) -> None:
        since = max(task.created_at, task.lock_time or 0)
        self.oldest = since if self.oldest is None else min(self.oldest, since)


class BacklogReader:
    """Reads the backlog of one pool. It remembers where its roving page stopped and what the last sweep found."""

    def __init__(self, store: Store, rng: random.Random, wanted: Wanted = lambda task: True) -> None:
        self._store = store
        self._wanted = wanted
        self._roving = Roving(store, Status.PENDING, rng)
        self._sweep_ready = 0
        self._last_sweep_ready = 0

    def read(self, needed: int) -> Backlog:
        """One reading that stops at about ``needed`` tasks of each status. Raises a StoreError; an error is never a zero."""
        needed = max(needed, 1)
        now = self._store.now()
        tally = _Tally(now)
        units, cut = self._read_pending(tally, needed)
        running, expired, running_units, running_cut = self._read_running(needed, now)
        return Backlog(
            at=now,
            ready=tally.ready,
            waiting=tally.waiting,
            waiting_due=tally.waiting_due,
            scheduled=tally.scheduled,
            running=running,
            expired=expired,
            oldest_ready_age=0.0 if tally.oldest is None else max(0.0, now - tally.oldest),
            cut=cut or running_cut,
            units=units + running_units,
        )

    def _read_pending(self, tally: _Tally, needed: int) -> tuple[float, bool]:
        head = self._store.page(Status.PENDING, limit=needed)
        self._count(tally, head.tasks)
        if head.cursor is None:
            self._sweep_ready = self._last_sweep_ready = 0
            return head.units, False
        if tally.ready >= needed:
            return head.units, True
        return head.units + self._rove(tally, needed), True

    def _rove(self, tally: _Tally, needed: int) -> float:
        in_head = tally.ready
        page = self._roving.page(needed)
        self._count(tally, page.tasks)
        self._sweep_ready += tally.ready - in_head
        known = max(self._sweep_ready, self._last_sweep_ready)
        if self._roving.swept:
            self._last_sweep_ready, self._sweep_ready = self._sweep_ready, 0
        tally.ready = min(needed, in_head + known)
        return page.units

    def _read_running(self, needed: int, now: int) -> tuple[dict[str, int], int, float, bool]:
        owners: Counter[str] = Counter()
        expired = 0
        units = 0.0
        cursor = None
        for _ in range(RUNNING_PAGES):
            page = self._store.page(Status.RUNNING, limit=needed, cursor=cursor)
            units += page.units
            for task in page.tasks:
                if task.status is not Status.RUNNING or not self._wanted(task):
                    continue
                if task.is_due(now):
                    expired += 1
                else:
                    owners[task.lock_owner or ""] += 1
            cursor = page.cursor
            if cursor is None:
                return dict(owners), expired, units, False
        return dict(owners), expired, units, True

    def _count(self, tally: _Tally, tasks: tuple[Task, ...]) -> None:
        for task in tasks:
            if self._wanted(task):
                tally.add(task)
