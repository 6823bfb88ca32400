"""Read units of one poll of the operator or of a local pool, by the size of the table.

The reader is the real one; the table makes up its tasks as they are read, a million of them included, and charges for a page
what DynamoDB documents for an eventually consistent Query: half a unit for each 4 KB of what was read, begun ones whole.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from benchmarks.report import Figure, Goal
from thunderagent.store.backlog import BacklogReader
from thunderagent.store.base import Cursor, Page
from thunderagent.store.layout import CLASSIC, Layout, Mark, Way, dispatch_layout, entry_record
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status, Task
from thunderagent.values import encode, record_size

NOW = 1_800_000_000
ITEM_BYTES = 1024
NEEDED = 100
"""maxReplicas x tasksPerReplica."""

SHARDS = 8
DISPATCH = dispatch_layout(SHARDS)
ENTRY_BYTES = 240
"""Of an entry of the dispatch index, whose taskId and two tokens have 32 characters each."""

KINDS = frozenset({*map(str, Status), *map(str, Mark)})

SIZES = (100, 10_000, 1_000_000)
POLLS = 20


@dataclass
class MadeUpTable(MemoryStore):
    """So many ready tasks and so many running ones, of 1 KB each. Only pages are read."""

    ready: int
    running: int
    layout_had: Layout = CLASSIC
    units: dict[str, float] = field(default_factory=dict)
    """Read units by what was read: a status, or a mark of the dispatch index."""

    def __post_init__(self) -> None:
        super().__init__(lambda: NOW, self.layout_had)

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        there = self.ready if status is Status.PENDING else self.running
        return self._page(str(status), there, lambda number: _task(status, number), ITEM_BYTES, limit, cursor)

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        mark = next(mark for mark in Mark if mark in partition)
        status = Status.RUNNING if mark is Mark.RUNNING else Status.PENDING
        there = {Mark.READY: self.ready, Mark.RUNNING: self.running, Mark.WAITING: 0}[mark]
        made = partial(_entry, status, partition)
        return self._page(str(mark), there // SHARDS, made, ENTRY_BYTES, limit, cursor)

    def _page(self, kind: str, there: int, made: Callable[[int], Task], size: int, limit: int, cursor: Cursor | None) -> Page:
        start = 0 if cursor is None else int(cursor["after"])
        end = min(start + limit, there)
        units = max(0.5, math.ceil((end - start) * size / 4096) / 2)
        self.units[kind] = self.units.get(kind, 0.0) + units
        return Page(tuple(map(made, range(start, end))), {"after": end} if end - start == limit else None, units)


def units_of_a_poll(ready: int, running: int, layout: Layout = CLASSIC, of: Collection[str] = KINDS) -> float:
    """Read units of the dearest of some polls in a row, for these kinds of what was read."""
    table = MadeUpTable(ready, running, layout)
    reader = BacklogReader(table, random.Random(0))
    dearest = 0.0
    for _ in range(POLLS):
        table.units.clear()
        reader.read(NEEDED)
        dearest = max(dearest, sum(units for kind, units in table.units.items() if kind in of))
    return dearest


def measure() -> list[Figure]:
    """At three sizes of the table, with none running and with as many as the pool can run."""
    how = f"the dearest of {POLLS} polls, items of 1 KB, maxReplicas x tasksPerReplica = {NEEDED}"
    rows = [(CLASSIC, 0, Goal(15)), (CLASSIC, NEEDED, Goal(28)), (DISPATCH, 0, None), (DISPATCH, NEEDED, None)]
    polls = [
        Figure(
            f"a poll's read units, {layout.way}: {size:,} ready, {running} running",
            units_of_a_poll(size, running, layout),
            "units",
            "",
            how,
            goal,
        )
        for layout, running, goal in rows
        for size in SIZES
    ]
    depth = Figure(
        f"counting what is ready, {Way.DISPATCH}: {SIZES[-1]:,} ready",
        units_of_a_poll(SIZES[-1], 0, DISPATCH, {str(Mark.READY)}),
        "units",
        "",
        f"{NEEDED} needed, {SHARDS} shards, entries of {ENTRY_BYTES} bytes",
        Goal(4 + 0.5 * SHARDS),
    )
    return [*polls, depth]


def _entry(status: Status, partition: str, number: int) -> Task:
    record = {name: value for name, value in _task(status, number).record.items() if name != "payload"}
    return Task.from_record(entry_record({**record, "dispatch": partition, "dueAt": record["lockTime"]}))


def _task(status: Status, number: int) -> Task:
    record = {
        "taskId": f"{status}-{number:07d}",
        "status": str(status),
        "createdAt": NOW - 100,
        "lockTime": NOW - 100 if status is Status.PENDING else NOW + 300,
        "lockOwner": "team.reports/reports-1/uid-1",
        "payload": {"text": ""},
    }
    missing = ITEM_BYTES - record_size({name: encode(value) for name, value in record.items()})
    return Task.from_record(record | {"payload": {"text": "x" * missing}})
