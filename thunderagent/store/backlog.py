"""Reading the backlog for scaling: exact as far as it goes, bounded in cost, and honest about where it was cut.

A pool of at most ``needed`` tasks' worth of replicas gains nothing from counting further, so a count stops there and says so.
Tasks that wait are in the same partition as ready ones and may stand before them; where the head does not show ``needed`` ready
tasks, one roving page a reading goes through the rest, and what the last whole sweep found counts until the next one ends.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from thunderagent.store.base import Store
from thunderagent.store.classic import Roving, Wanted
from thunderagent.store.layout import Mark, Way
from thunderagent.task import DEFAULT_QUEUE, Status, Task

RUNNING_PAGES = 10
"""Pages of RUNNING entries that one reading goes through at most."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """One reading. Ages and times in the table's seconds; ``units`` are the read units it cost.

    ready: PENDING, due and not waiting. waiting: for dependencies. waiting_due: of these, due for a look. scheduled: PENDING
    with a time still to come, as far as the classic layout shows them; the dispatch one is not asked for them. running: live
    leases by lockOwner. expired: RUNNING past their lease. A cut count is "at least".
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
    """Reads the backlog of one pool, in one queue, on whatever layout the table has at the moment."""

    def __init__(
        self, store: Store, rng: random.Random, wanted: Wanted = lambda task: True, queue: str = DEFAULT_QUEUE
    ) -> None:
        self._store = store
        self._queue = queue
        self._classic = _ClassicReader(store, rng, lambda task: task.queue == queue and wanted(task))
        self._dispatch = _DispatchReader(store, wanted, queue)

    def read(self, needed: int) -> Backlog:
        """One reading that stops at about ``needed`` tasks of each kind. Raises a StoreError; an error is never a zero."""
        layout = self._store.layout()
        layout.require_queue(self._queue)
        reader = self._dispatch if layout.way is Way.DISPATCH else self._classic
        return reader.read(max(needed, 1))


class _DispatchReader:
    """Each kind of task is a partition of its own. A ready task behind others of no interest is reached within some pages."""

    def __init__(self, store: Store, wanted: Wanted, queue: str) -> None:
        self._store = store
        self._wanted = wanted
        self._queue = queue

    def read(self, needed: int) -> Backlog:
        now = self._store.now()
        ready = self._ready(needed, now)
        waiting = self._partitions(Mark.WAITING, needed)
        running = self._partitions(Mark.RUNNING, needed)
        ended, read_units = self._ended(running.tasks, now)
        since = [max(task.created_at, task.lock_time or 0) for task in ready.tasks]
        return Backlog(
            at=now,
            ready=len(ready.tasks),
            waiting=len(waiting.tasks),
            waiting_due=sum(task.is_due(now) for task in waiting.tasks),
            running=Counter(task.lock_owner or "" for task in running.tasks if task.task_id not in ended),
            expired=len(ended),
            oldest_ready_age=max(0.0, now - min(since)) if since else 0.0,
            cut=ready.cut or running.cut,
            units=ready.units + waiting.units + running.units + read_units,
        )

    def _ready(self, needed: int, now: int) -> _Entries:
        found = self._partitions(Mark.READY, needed, now)
        return replace(found, tasks=[task for task in found.tasks if task.status is Status.PENDING])

    def _partitions(self, mark: Mark, needed: int, until: int | None = None) -> _Entries:
        """What is wanted of all shards: of the first ones until there are ``needed``, and the oldest of each other one."""
        found = _Entries()
        for partition in self._store.layout().partitions(self._queue, mark):
            self._partition(found, partition, max(1, needed - len(found.tasks)), until)
        return found

    def _partition(self, found: _Entries, partition: str, limit: int, until: int | None) -> None:
        cursor = None
        wanted = 0
        for _ in range(RUNNING_PAGES):
            page = self._store.entries(partition, limit=limit, until=until, cursor=cursor)
            kept = [task for task in page.tasks if self._wanted(task)]
            found.tasks += kept
            found.units += page.units
            wanted += len(kept)
            cursor = page.cursor
            if cursor is None or wanted >= limit:
                break
        found.cut = found.cut or cursor is not None

    def _ended(self, tasks: Iterable[Task], now: int) -> tuple[frozenset[str], float]:
        """Those whose lease has ended: an entry tells a moment before which it cannot, the item tells whether it has."""
        due = [task.task_id for task in tasks if task.is_due(now)]
        if not due:
            return frozenset(), 0.0
        read = self._store.get_many(due)
        over = frozenset(task.task_id for task in read.found.values() if task.status is Status.RUNNING and task.is_due(now))
        return over, read.units


@dataclass(slots=True)
class _Entries:
    """What was read of the partitions of one kind."""

    tasks: list[Task] = field(default_factory=list)
    units: float = 0.0
    cut: bool = False


class _ClassicReader:
    """It remembers where its roving page stopped and what the last sweep found."""

    def __init__(self, store: Store, rng: random.Random, wanted: Wanted) -> None:
        self._store = store
        self._wanted = wanted
        self._roving = Roving(store, Status.PENDING, rng)
        self._sweep_ready = 0
        self._last_sweep_ready = 0

    def read(self, needed: int) -> Backlog:
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
