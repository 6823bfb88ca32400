"""Finding work on whatever layout the table has at the moment."""

from __future__ import annotations

import random

from thunderagent.store.base import Store
from thunderagent.store.classic import ClassicFinder, Found, Wanted
from thunderagent.store.dispatch import DispatchFinder
from thunderagent.store.layout import Way
from thunderagent.task import DEFAULT_QUEUE


class Finder:
    """Finds tasks of one queue to claim, and leases that have ended. One per agent: it remembers where it stopped."""

    def __init__(self, store: Store, rng: random.Random, queue: str = DEFAULT_QUEUE) -> None:
        self._store = store
        self._queue = queue
        self._classic = ClassicFinder(store, rng)
        self._dispatch = DispatchFinder(store, rng, queue)

    def poll(self, limit: int, wanted: Wanted, now: int) -> Found:
        """Tasks that are due and ``wanted``, also waiting ones that are due for a look. Raises a StoreError."""
        if self._on_dispatch():
            return self._dispatch.poll(limit, wanted, now)
        return self._classic.poll(limit, lambda task: task.queue == self._queue and wanted(task), now)

    def expired(self, now: int) -> Found:
        """RUNNING tasks whose lease has ended. Raises a StoreError."""
        if self._on_dispatch():
            return self._dispatch.expired(now)
        found = self._classic.expired(now)
        return Found(tuple(task for task in found.tasks if task.queue == self._queue), found.units)

    def _on_dispatch(self) -> bool:
        layout = self._store.layout()
        layout.require_queue(self._queue)
        return layout.way is Way.DISPATCH
