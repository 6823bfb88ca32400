"""What an agent takes while there is nothing to do."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection

from benchmarks.agents import Shape, agent
from benchmarks.backlog import make_backlog
from benchmarks.handlers import nothing
from benchmarks.processes import cpu_seconds, resident_mb
from benchmarks.report import Figure
from benchmarks.servers import Server
from thunderagent.store.base import BatchRead, Cursor, Page
from thunderagent.store.layout import CLASSIC, Layout
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status, Task
from thunderagent.testing import Harness

HOUR = 3600
SETTLE = 20.0
"""Seconds after which an idle agent has come to its longest wait between polls."""


class CountingStore(MemoryStore):
    """An in-memory table that counts what is read from it."""

    calls: Counter[str]
    units: float

    def get(self, task_id: str) -> Task | None:
        self._count("GetItem", 1.0)
        return super().get(task_id)

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        self._count("BatchGetItem", float(len(task_ids)))
        return super().get_many(task_ids)

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        page = super().page(status, limit=limit, cursor=cursor, newest_first=newest_first)
        self._count("Query", page.units)
        return page

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        page = super().entries(partition, limit=limit, until=until, cursor=cursor)
        self._count("Query", page.units)
        return page

    def start_counting(self) -> None:
        self.calls, self.units = Counter(), 0.0

    def _count(self, operation: str, units: float) -> None:
        self.calls[operation] += 1
        self.units += units


def reads_an_hour(seed: int = 0, layout: Layout = CLASSIC) -> tuple[int, float]:
    """Calls and read units of an idle agent in an hour: the real agent on a virtual clock, over a table in memory."""
    harness = Harness(nothing, seed=seed)
    store = CountingStore(harness.clock.now, layout)
    store.start_counting()
    harness.store = store
    harness.run_for(HOUR)
    return store.calls.total(), store.units


def measure(server: Server, seconds: float) -> list[Figure]:
    """Reads on a virtual clock; processor time and memory of a real agent, watched for some seconds."""
    calls, units = reads_an_hour()
    how = "the agent on a virtual clock over a table in memory; 0.5 units for an eventually consistent read of nothing"
    return [
        Figure("idle agent: calls an hour", calls, "calls/h", "", how),
        Figure("idle agent: read units an hour", units, "units/h", "", how),
        *_measure_process(server, seconds),
    ]


def _measure_process(server: Server, seconds: float) -> list[Figure]:
    backlog = make_backlog(server, 0)
    with agent(backlog.table, "benchmarks.handlers:nothing", Shape(1, 1)) as running:
        time.sleep(SETTLE)
        before = cpu_seconds(running.pid)
        time.sleep(seconds)
        used = cpu_seconds(running.pid) - before
        (child,) = running.child_pids
        parent_mb, child_mb = resident_mb(running.pid), resident_mb(child)
    return [
        Figure("idle agent: processor time an hour", used * HOUR / seconds, "s/h", "", f"/proc, over {seconds:g} s"),
        Figure("idle agent: memory of the parent", parent_mb, "MB", "", "resident (VmRSS), what is shared included"),
        Figure("idle agent: memory of a child", child_mb, "MB", "", "resident (VmRSS), an empty handler"),
    ]
