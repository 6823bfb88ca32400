"""Finding work on the dispatch layout: narrow queries of an index that holds nothing but tasks which need an agent.

What is ready, what waits and what runs are partitions of their own, in the order in which somebody must look. So nothing that
waits stands before what is ready, and an ended lease is the first entry of its partition. An entry that stands where it does
not belong (a lease renewed since, a write by a program that had not heard of the layout) is filed anew by whoever meets it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from thunderagent import transitions
from thunderagent.errors import NotATask, StoreRejected
from thunderagent.store.base import Cursor, Page, Store
from thunderagent.store.classic import EXPIRED_PAGE, EXPIRED_PAGES, ROVING_MAX, Found, Wanted
from thunderagent.store.layout import Mark
from thunderagent.task import Attr, Status, Task, is_plain_number

Scan = Callable[[Status, int, Cursor | None], Page]
"""A page of a scan: at most so many items are read, and those of the status given."""


class DispatchFinder:
    """Finds tasks to claim and leases that have ended, in one queue. One per agent: it remembers where it stopped."""

    def __init__(self, store: Store, rng: random.Random, queue: str) -> None:
        self._store = store
        self._rng = rng
        self._queue = queue
        self._sweeps: dict[str, _Sweep] = {}

    def poll(self, limit: int, wanted: Wanted, now: int) -> Found:
        """Due tasks that are ``wanted``: ready ones from shards in random order until there are ``limit``, and waiting ones: of
        one shard where the ready ones filled it, so that they get their turn under any backlog, of all where they did not."""
        ready: list[Task] = []
        units = 0.0
        for partition in self._shuffled(Mark.READY):
            if len(ready) >= limit:
                break
            tasks, cost = self._sweep(partition, limit, now, lambda entries: self._ready(entries, wanted))
            ready += tasks
            units += cost
        for partition in self._shuffled(Mark.WAITING)[: 1 if len(ready) >= limit else None]:
            tasks, cost = self._sweep(partition, limit, now, lambda entries: self._waiting(entries, wanted, now))
            ready += tasks
            units += cost
        return Found(tuple(ready), units)

    def expired(self, now: int) -> Found:
        """RUNNING tasks whose lease has ended. One that was renewed beyond its entry is filed under its new end."""
        found: list[Task] = []
        units = 0.0
        for partition in self._shuffled(Mark.RUNNING)[:EXPIRED_PAGES]:
            tasks, cost = self._sweep(partition, EXPIRED_PAGE, now, lambda entries: self._ended(entries, now))
            found += tasks
            units += cost
        return Found(tuple(found), units)

    def _shuffled(self, mark: Mark) -> Sequence[str]:
        partitions = list(self._store.layout().partitions(self._queue, mark))
        self._rng.shuffle(partitions)
        return partitions

    def _sweep(
        self, partition: str, limit: int, now: int, keep: Callable[[Sequence[Task]], list[Task]]
    ) -> tuple[list[Task], float]:
        """One page of what is due in a partition, and what to keep of it. While a page holds nothing of use the next read goes
        on behind it, with a larger one, so that no number of other entries hides a task."""
        sweep = self._sweeps.get(partition, _Sweep(None, 0))
        page = self._store.entries(partition, limit=max(limit, sweep.size), until=now, cursor=sweep.cursor)
        kept = keep(page.tasks)
        if kept or page.cursor is None:
            self._sweeps.pop(partition, None)
        else:
            self._sweeps[partition] = _Sweep(page.cursor, min(ROVING_MAX, 2 * max(limit, sweep.size)))
        return kept, page.units

    def _ready(self, entries: Sequence[Task], wanted: Wanted) -> list[Task]:
        odd = [entry.task_id for entry in entries if entry.status is not Status.PENDING]
        if odd:
            self._file(self._store.get_many(odd).found.values())
        return [entry for entry in entries if entry.status is Status.PENDING and wanted(entry)]

    def _waiting(self, entries: Sequence[Task], wanted: Wanted, now: int) -> list[Task]:
        tasks = self._whole(entries)
        self._file(tasks)
        return [task for task in tasks if task.status is Status.PENDING and task.is_due(now) and wanted(task)]

    def _ended(self, entries: Sequence[Task], now: int) -> list[Task]:
        tasks = self._whole(entries)
        renewed = [task for task in tasks if task.status is Status.RUNNING and not task.is_due(now)]
        for task in renewed:
            if _comes_due(task, now):
                self._refile(task)
        self._file(task for task in tasks if task.status is not Status.RUNNING)
        return [task for task in tasks if task.status is Status.RUNNING and task.is_due(now)]

    def _whole(self, entries: Sequence[Task]) -> Collection[Task]:
        return self._store.get_many([entry.task_id for entry in entries]).found.values() if entries else ()

    def _file(self, tasks: Iterable[Task]) -> None:
        layout = self._store.layout()
        for task in tasks:
            if not layout.is_filed(task):
                self._refile(task)

    def _refile(self, task: Task) -> None:
        """File one task; an item that takes no write, since another program has filled it, must not keep the others waiting."""
        with suppress(StoreRejected):
            self._store.apply(transitions.refile(task))


@dataclass(frozen=True, slots=True)
class _Sweep:
    """Where a partition is read on, and how much of it at once."""

    cursor: Cursor | None
    size: int


def _comes_due(task: Task, now: int) -> bool:
    """Whether the entry of a task asks for a look by now."""
    due_at: Any = task.record.get(Attr.DUE_AT)
    return is_plain_number(due_at) and bool(due_at <= now)


def page_of_status(store: Store, scan: Scan, status: Status, *, limit: int, cursor: Cursor | None) -> Page:
    """A page of the tasks of a status where the table has no index over status: open ones from the dispatch index, partition by
    partition and then read whole, ended ones from a scan. Raises a StoreError."""
    if status.is_final:
        return scan(status, limit, cursor)
    layout = store.layout()
    marks = (Mark.RUNNING,) if status is Status.RUNNING else (Mark.READY, Mark.WAITING)
    partitions = [each for queue in layout.queues for mark in marks for each in layout.partitions(queue, mark)]
    at, after = (cursor["partition"], cursor["after"]) if cursor is not None else (0, None)
    ids: list[str] = []
    units = 0.0
    while at < len(partitions) and len(ids) < limit:
        page = store.entries(partitions[at], limit=limit - len(ids), cursor=after)
        ids += [entry.task_id for entry in page.tasks]
        units += page.units
        after = page.cursor
        at += after is None
    tasks, read_units = _read_all(store, ids)
    left = None if at == len(partitions) else {"partition": at, "after": after}
    return Page(tuple(task for task in tasks if task.status is status), left, units + read_units)


def _read_all(store: Store, ids: Sequence[str]) -> tuple[list[Task], float]:
    """Items by id. One that a batch left out is read by itself: a listing must not lack what was only throttled."""
    if not ids:
        return [], 0.0
    read = store.get_many(ids)
    found = dict(read.found)
    for task_id in read.unknown:
        try:
            task = store.get(task_id)
        except NotATask:
            continue
        if task is not None:
            found[task_id] = task
    return [found[each] for each in ids if each in found], read.units
