"""What a store promises, whatever it keeps its items in. One contract suite runs over every adapter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from thunderagent.errors import NotATask, StoreRejected
from thunderagent.store.layout import Layout
from thunderagent.task import TASK_ID_BYTES, Record, Status, Task
from thunderagent.transitions import Transition

LAYOUT_READ = 60.0
"""Seconds after which a process reads the table's layout anew. Whoever changes it waits for longer."""

Cursor = Mapping[str, Any]
"""Where a page ended; opaque to everyone but the store that made it."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a transition.

    ``ok``: the write went through, now or on an earlier try whose reply was lost (``repeated``). ``task`` is the item: after
    the write where ``ok`` and it was asked for or seen, and as it stands where not ``ok`` (None: there is no such item, or
    it has a status that no task has).
    """

    ok: bool
    task: Task | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the index, oldest first. ``cursor`` is None at the end; ``units`` are the read units it cost."""

    tasks: tuple[Task, ...]
    cursor: Cursor | None
    units: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchRead:
    """Items by key. A key in neither ``found`` nor ``unknown`` has no item; an unknown one could not be read this time, or
    not as a task. ``units`` are the read units it cost."""

    found: Mapping[str, Task]
    unknown: frozenset[str] = frozenset()
    units: float = 0.0


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call to DynamoDB, for the metrics. ``result``: ok, condition_failed, throttled or the name of an error class.

    ``retries``: attempts after the first, which the client makes by itself. ``throttles``: attempts that were refused for
    throughput, whatever came of the call.
    """

    operation: str
    result: str
    seconds: float
    units: float
    retries: int = 0
    throttles: int = 0


Observer = Callable[[CallReport], None]


class Store(Protocol):
    """A task table. Every method may raise a StoreError; after one, whether a write went through is not known."""

    def now(self) -> int:
        """The table's time in whole epoch seconds, never ahead of it: what was due by this is due."""

    def lease_end(self, seconds: float) -> int:
        """The epoch second that lies at least ``seconds`` ahead in the table's time, counted by the latest it may be."""

    def get(self, task_id: str) -> Task | None:
        """The item, read consistently. Raises NotATask where its status is none that a task has."""

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        """The items, read consistently, any number of them."""

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        """Carry a transition out, filed as the table's layout has it. ``want_task`` asks for the item after the write."""

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        """One page of the tasks of a status: at most ``limit`` (from 1) items or 1 MB, by createdAt.

        May be stale. A cursor says that the page was full, not that there is more: the next one may be empty. Without the
        published index, open tasks come by the time they are due, and ended ones in no order, from a scan of the table.
        """

    def layout(self) -> Layout:
        """How the table is laid out; known for :data:`LAYOUT_READ` seconds from a read of its own item."""

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        """One page of a partition of the dispatch index, the earliest dueAt first: at most ``limit`` entries or 1 MB.

        ``until``: none that is due later. May be stale. The tasks are what the index shows of them, with dueAt for lockTime; a
        cursor says that the page was full, not that there is more.
        """


def require_room(limit: int) -> None:
    """Raises StoreRejected for a page that has room for nothing, as DynamoDB does."""
    if limit < 1:
        raise StoreRejected(f"Limit is {limit}; a page has room for at least 1 item.", operation="Query")


def possible_ids(task_ids: Iterable[str]) -> list[str]:
    """Those that an item can have, each once. DynamoDB refuses a read of many keys for a single one that none can have."""
    return [each for each in dict.fromkeys(task_ids) if 0 < len(each.encode()) <= TASK_ID_BYTES]


def task_or_none(record: Record) -> Task | None:
    """The record as a task, or None where it is another program's item: a write meets it as it would meet no item."""
    try:
        return Task.from_record(record)
    except NotATask:
        return None
