"""Read units of one poll of the operator or of a local pool, by the size of the table.

The reader is the real one; the table makes up its tasks as they are read, a million of them included, and charges for a page
what DynamoDB documents for an eventually consistent Query: half a unit for each 4 KB of what was read, begun ones whole.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from benchmarks.report import Figure, Goal
from thunderagent.store.backlog import BacklogReader
from thunderagent.store.base import Cursor, Page
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status, Task
from thunderagent.values import encode, record_size

NOW = 1_800_000_000
ITEM_BYTES = 1024
NEEDED = 100
"""maxReplicas x tasksPerReplica."""

SIZES = (100, 10_000, 1_000_000)
POLLS = 20


@dataclass
class MadeUpTable(MemoryStore):
    """So many ready tasks and so many running ones, of 1 KB each. Only pages are read."""

    ready: int
    running: int
    units: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(lambda: NOW)

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        there = self.ready if status is Status.PENDING else self.running
        start = 0 if cursor is None else int(cursor["after"])
        end = min(start + limit, there)
        tasks = tuple(_task(status, number) for number in range(start, end))
        units = max(0.5, math.ceil(len(tasks) * ITEM_BYTES / 4096) / 2)
        self.units.append(units)
        return Page(tasks, {"after": end} if end - start == limit else None, units)


def units_of_a_poll(ready: int, running: int) -> float:
    """Read units of the dearest of some polls in a row."""
    table = MadeUpTable(ready, running)
    reader = BacklogReader(table, random.Random(0))
    dearest = 0.0
    for _ in range(POLLS):
        table.units.clear()
        reader.read(NEEDED)
        dearest = max(dearest, sum(table.units))
    return dearest


def measure() -> list[Figure]:
    """At three sizes of the table, with none running and with as many as the pool can run."""
    how = f"the dearest of {POLLS} polls, items of 1 KB, maxReplicas x tasksPerReplica = {NEEDED}"
    return [
        Figure(
            f"a poll's read units: {size:,} ready, {running} running", units_of_a_poll(size, running), "units", "", how, goal
        )
        for running, goal in ((0, Goal(15)), (NEEDED, Goal(28)))
        for size in SIZES
    ]


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
