"""The simulated task table: the in-memory store, an index that lags behind it, and the history of every accepted write."""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.trace import START
from thunderagent.store.base import Applied, BatchRead, Cursor, Page
from thunderagent.store.layout import CLASSIC, Layout
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Attr, Status, Task
from thunderagent.transitions import Transition

MOST_LAG = 10.0
"""Seconds by which the index lags at most."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write that the table accepted: when (seconds since the start), whose, which, and the item before and after."""

    at: float
    who: Process
    transition: Transition
    before: Task | None
    after: Task


@dataclass(frozen=True, slots=True)
class Refused:
    """A write that met a failed condition. ``repeated``: the table took it for one that had gone through before."""

    at: float
    who: Process
    transition: Transition
    current: Task | None
    repeated: bool


class SimulatedTable:
    """One table for all processes of a history. ``lag``: the index shows a write after a random time up to so many seconds.

    ``change`` may turn each write into another one before it is carried out: that is how a rule is taken away.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        rng: random.Random,
        lag: float,
        change: Callable[[Transition], Transition],
        keeps_history: bool = True,
        layout: Layout = CLASSIC,
    ) -> None:
        self.tasks: dict[str, Task] = {}
        self.history: list[Write] = []
        self.on_write: Callable[[Write], None] = lambda write: None
        self.on_refused: Callable[[Refused], None] = lambda refused: None
        self.lag = lag
        self.layout = layout
        self._loop = loop
        self._rng = rng
        self._change = change
        self._keeps_history = keeps_history
        self._memory = MemoryStore(self.time, layout)
        self._index = MemoryStore(self.time)
        self._outside = contextvars.copy_context()
        self._shown_at: dict[str, float] = {}

    def time(self) -> float:
        """The table's time in epoch seconds."""
        return START + self._loop.time()

    def get(self, task_id: str) -> Task | None:
        return self._memory.get(task_id)

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        return self._memory.get_many(task_ids)

    def page(self, status: Status, limit: int, cursor: Cursor | None, newest_first: bool) -> Page:
        return self._index.page(status, limit=limit, cursor=cursor, newest_first=newest_first)

    def entries(self, partition: str, limit: int, until: int | None, cursor: Cursor | None) -> Page:
        return self._index.entries(partition, limit=limit, until=until, cursor=cursor)

    def shown(self, status: Status) -> tuple[Task, ...]:
        """Everything that the index shows of a status at this moment."""
        return self._index.page(status, limit=1_000_000).tasks

    def apply(self, who: Process, transition: Transition) -> Applied:
        before = self.tasks.get(transition.task_id)
        applied = self._memory.apply(self._change(transition), want_task=True)
        if applied.ok and not applied.repeated:
            assert applied.task is not None
            self.tasks[transition.task_id] = applied.task
            self._propagate(before, applied.task)
            write = Write(self._loop.time(), who, transition, before, applied.task)
            if self._keeps_history:
                self.history.append(write)
            self.on_write(write)
        else:
            self.on_refused(Refused(self._loop.time(), who, transition, applied.task, applied.repeated))
        return applied

    def forget(self, task_id: str) -> None:
        """Remove a task that ended long ago."""
        del self.tasks[task_id]
        self._shown_at.pop(task_id, None)
        self._memory.delete_record(task_id)
        self._index.delete_record(task_id)

    def _propagate(self, before: Task | None, after: Task) -> None:
        """Writes of one item reach the index in their order; one that moves to another partition is for a moment in neither."""
        if self.lag == 0:
            self._index.put_record(after.record)
            return
        now = self._loop.time()
        seen = max(now + self._rng.uniform(0.0, self.lag), self._shown_at.get(after.task_id, 0.0))
        moved = before is not None and _place(before) != _place(after)
        there = seen + self._rng.uniform(0.0, self.lag / 5) if moved else seen
        self._shown_at[after.task_id] = there
        if moved:
            self._loop.call_at(seen, self._index.put_record, {Attr.TASK_ID: after.task_id}, context=self._outside)
        self._loop.call_at(there, self._index.put_record, after.record, context=self._outside)


def _place(task: Task) -> tuple[object, ...]:
    """Where the indexes show a task."""
    return task.status, task.record.get(Attr.DISPATCH), task.record.get(Attr.DUE_AT)
