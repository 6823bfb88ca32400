"""Observing a table for a check: thin code, reads alone, at a bounded cost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from thunderagent.backoff import full_jitter
from thunderagent.diagnosis.observation import Observation, Sample
from thunderagent.diagnosis.shape import is_readable
from thunderagent.errors import StoreThrottled, StoreUnavailable, TableMissing
from thunderagent.store.admin import TableShape, describe, scan
from thunderagent.store.base import CallReport, Cursor
from thunderagent.store.dynamo import DynamoStore
from thunderagent.task import Status, Task

T = TypeVar("T")

TRIES = 5
"""Tries of a read that was throttled or got no reply. The store is to be one with a single attempt: each throttling shows."""

GENERATIONS = 20
"""How far dependencies of dependencies are followed: cycles that are longer show only by the tasks of the sample."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is read: tasks of each status, dependencies, and items of a scan (None: no scan)."""

    limit: int = 1000
    scan: int | None = None


class Look:
    """One look at a table. ``wall`` is this machine's clock in epoch seconds, only to be held against the table's."""

    def __init__(
        self,
        store: DynamoStore,
        calls: Iterable[CallReport],
        *,
        wall: Callable[[], float],
        sleep: Callable[[float], None],
        rng: random.Random,
    ) -> None:
        self._store = store
        self._calls = calls
        self._wall = wall
        self._sleep = sleep
        self._rng = rng

    def observe(self, effort: Effort) -> Observation:
        """One look at the table. Raises a StoreError where it cannot be described or read at all."""
        settings = self._store.settings
        shape = self._shape()
        seen = Observation(settings.table, settings.index, now=0.0, shape=shape)
        if shape is not None:
            seen = replace(seen, layout=self._patiently(self._store.layout))
        if shape is not None and is_readable(seen):
            seen = self._with_tasks(seen, effort)
        if shape is not None and effort.scan is not None:
            seen = replace(seen, scanned=self._patiently(partial(scan, self._store, effort.scan)))
        return replace(seen, offset=self._offset(), throttled=_throttled(self._calls))

    def _shape(self) -> TableShape | None:
        try:
            return self._patiently(partial(describe, self._store))
        except TableMissing:
            return None

    def _with_tasks(self, seen: Observation, effort: Effort) -> Observation:
        now = self._patiently(self._store.now)
        samples = {status: self._sample(status, effort.limit) for status in Status}
        dependencies, unread = self._dependencies(samples[Status.PENDING].tasks, effort.limit)
        return replace(seen, now=now, samples=samples, dependencies=dependencies, unread=unread)

    def _sample(self, status: Status, limit: int) -> Sample:
        """Open tasks from the oldest on, where those that are stuck are; ended ones from the newest."""
        read = partial(self._store.page, status, newest_first=status.is_final)
        tasks: list[Task] = []
        cursor: Cursor | None = None
        while len(tasks) < limit:
            try:
                page = self._patiently(partial(read, limit=limit - len(tasks), cursor=cursor))
            except StoreThrottled:
                return Sample(tuple(tasks), cut=True)
            tasks += page.tasks
            cursor = page.cursor
            if cursor is None:
                return Sample(tuple(tasks))
        return Sample(tuple(tasks), cut=True)

    def _dependencies(self, tasks: Iterable[Task], limit: int) -> tuple[Mapping[str, Task], frozenset[str]]:
        """What waiting tasks wait for, and what that waits for in turn, at most ``limit`` of them."""
        found: dict[str, Task] = {}
        unread: set[str] = set()
        asked: set[str] = set()
        todo = _unmet(tasks)
        for _ in range(GENERATIONS):
            left = sorted(todo - asked)
            now = left[: limit - len(asked)]
            unread |= set(left[len(now) :])
            if not now:
                break
            asked |= set(now)
            read = self._patiently(partial(self._store.get_many, now))
            found |= read.found
            unread |= read.unknown
            todo = _unmet(read.found.values())
        return found, frozenset(unread - found.keys())

    def _offset(self) -> tuple[float, float] | None:
        clock = self._store.clock
        if not clock.known:
            return None
        return self._wall() - clock.latest(), self._wall() - clock.earliest()

    def _patiently(self, read: Callable[[], T]) -> T:
        for used in range(TRIES - 1):
            try:
                return read()
            except StoreUnavailable:
                self._sleep(full_jitter(self._rng, used, base=0.2, cap=3.0))
        return read()


def _unmet(tasks: Iterable[Task]) -> set[str]:
    return {task_id for task in tasks if task.is_waiting for task_id in task.unmet}


def _throttled(calls: Iterable[CallReport]) -> Mapping[str, int]:
    return Counter(call.operation for call in calls if call.result == "throttled")
