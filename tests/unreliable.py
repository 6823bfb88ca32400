"""A store whose network fails as a test says: before the table has heard of a write, or after."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from thunderagent.errors import StoreUnavailable
from thunderagent.store import Applied, BatchRead, Cursor, Page, Store
from thunderagent.store.layout import Layout
from thunderagent.task import Status, Task
from thunderagent.transitions import Transition


@dataclass
class UnreliableStore:
    """Passes every call on to ``inner``, but for the faults that are set.

    ``lost_requests`` and ``lost_replies`` count down: so many next writes of each task do not arrive, or arrive and are not
    acknowledged. No write to one of ``unreachable`` ever arrives. The next ``lost_reads`` reads of a task fail. ``unknown``
    cannot be read in a batch. ``asked`` lists the ids of batch reads, ``pages`` counts reads of the index.
    """

    inner: Store
    lost_requests: int = 0
    lost_replies: int = 0
    lost_reads: int = 0
    unreachable: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    asked: list[set[str]] = field(default_factory=list)
    pages: int = 0
    tries: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> int:
        return self.inner.now()

    def lease_end(self, seconds: float) -> int:
        return self.inner.lease_end(seconds)

    def get(self, task_id: str) -> Task | None:
        if self.lost_reads > 0:
            self.lost_reads -= 1
            raise StoreUnavailable("GetItem got no reply.", operation="GetItem")
        return self.inner.get(task_id)

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        self.asked.append(set(task_ids))
        read = self.inner.get_many(task_ids)
        found = {task_id: task for task_id, task in read.found.items() if task_id not in self.unknown}
        return BatchRead(found, read.unknown | (self.unknown & set(task_ids)))

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        with self._lock:
            tried = self.tries[transition.task_id] = self.tries.get(transition.task_id, 0) + 1
        if transition.task_id in self.unreachable or tried <= self.lost_requests:
            raise StoreUnavailable("UpdateItem got no reply.", operation="UpdateItem")
        applied = self.inner.apply(transition, want_task=want_task)
        if tried <= self.lost_requests + self.lost_replies:
            raise StoreUnavailable("The reply to UpdateItem was lost.", operation="UpdateItem")
        return applied

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        self.pages += 1
        return self.inner.page(status, limit=limit, cursor=cursor, newest_first=newest_first)

    def layout(self) -> Layout:
        return self.inner.layout()

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        self.pages += 1
        return self.inner.entries(partition, limit=limit, until=until, cursor=cursor)
