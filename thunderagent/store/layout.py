"""The layout of a task table: through which index work is found, and what each write adds for it.

``classic`` is the published index over status and createdAt. ``dispatch`` is an index of our own over two attributes that a
task has only while it needs an agent. Its partitions say who needs one, spread over shards by the taskId::

    <queue>#<shard>   PENDING and ready, now or at dueAt
    <queue>?<shard>   PENDING and waiting for other tasks; dueAt is the next look at them
    <queue>!<shard>   RUNNING; dueAt is a moment before which the lease cannot end

A table says in one item of its own which layout it has. Every program reads that item anew now and then, so a change of layout
reaches all of them, and each step of one is safe beside programs that have not heard of it yet.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self

from thunderagent.errors import InvalidInput, StoreRejected
from thunderagent.task import DEFAULT_QUEUE, Attr, Record, Status, Task, as_int, is_plain_number
from thunderagent.transitions import Transition, refile

LAYOUT_ID: Final = "thunderagent.layout"
"""taskId of the item that says which layout the table has. It has no status, so no index shows it and no agent takes it."""

MIGRATION_ID: Final = "thunderagent.migration"
"""taskId of the item that says how far a migration of the table has got."""

RESERVED_IDS: Final = frozenset({LAYOUT_ID, MIGRATION_ID})
VERSION: Final = "version"
DISPATCH_INDEX: Final = "dispatch-dueAt-index"
PROJECTED: Final = (
    Attr.STATUS,
    Attr.LOCK_OWNER,
    Attr.CREATED_AT,
    Attr.TASK_TYPE,
    Attr.WAITING_FOR,
    Attr.LAST_TOKEN,
    Attr.ENQUEUE_TOKEN,
)
"""Attributes in the dispatch index beside its keys. Not lockTime: a renewal then writes the table alone. The two tokens tell
one state of a task from another, and cost nothing, since whatever changes them moves the entry anyway."""

MAX_SHARDS: Final = 256
DEFAULT_SHARDS: Final = 8
QUEUE_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


class Way(StrEnum):
    """Through which index agents and readings find work."""

    CLASSIC = "classic"
    DISPATCH = "dispatch"


class Mark(StrEnum):
    """What the partitions of the dispatch index tell apart."""

    READY = "#"
    WAITING = "?"
    RUNNING = "!"


@dataclass(frozen=True, slots=True)
class Layout:
    """What the table's own item says.

    way: where work is looked for. keyed: whether writes keep the dispatch index. shards: over how many partitions they spread.
    read_shards: how many are read, more than ``shards`` while their number is being lowered. classic_index: whether the
    published index is there, for listings. version: counts the changes, so that two people make none at once.
    """

    way: Way = Way.CLASSIC
    keyed: bool = False
    shards: int = 1
    read_shards: int = 1
    queues: tuple[str, ...] = (DEFAULT_QUEUE,)
    classic_index: bool = True
    version: int = 0

    def partitions(self, queue: str, mark: Mark) -> tuple[str, ...]:
        """Where tasks of a queue are to be looked for."""
        return tuple(f"{queue}{mark}{shard}" for shard in range(self.read_shards))

    def filed(self, transition: Transition) -> Transition:
        """The write, with what keeps the dispatch index right."""
        if not self.keyed:
            return transition
        if transition.leaves.is_final:
            return replace(transition, drops=transition.drops | {Attr.DISPATCH, Attr.DUE_AT})
        if transition.look_at is None:
            return transition
        keys: dict[str, Any] = {Attr.DISPATCH: self._partition(transition), Attr.DUE_AT: transition.look_at}
        return replace(transition, puts={**transition.puts, **keys})

    def is_filed(self, task: Task) -> bool:
        """Whether the dispatch index shows an item where its state belongs. A lease may be looked at before its end."""
        if not self.keyed:
            return True
        if task.status.is_final:
            return Attr.DISPATCH not in task.record
        filed = self.filed(refile(task))
        due_at: Any = task.record.get(Attr.DUE_AT)
        right = filed.puts[Attr.DUE_AT]
        in_time = due_at == right or (task.status is Status.RUNNING and is_plain_number(due_at) and due_at <= right)
        return in_time and task.record.get(Attr.DISPATCH) == filed.puts[Attr.DISPATCH]

    def require_queue(self, queue: str) -> None:
        """Raises StoreRejected for a queue that the table does not have: looking there would show an empty one for ever."""
        if queue not in self.queues:
            raise StoreRejected(
                f"The table has no queue {queue}; it has {', '.join(self.queues)}. "
                f"`thunderagent table migrate --queue {queue}` adds it.",
                operation="Query",
            )

    def _partition(self, transition: Transition) -> str:
        return f"{transition.queue}{_mark(transition)}{self.shard_of(transition.task_id)}"

    def shard_of(self, task_id: str) -> int:
        """The shard that a task's entries are in."""
        return zlib.crc32(task_id.encode()) % self.shards

    def to_record(self) -> dict[str, Any]:
        """The table's own item."""
        return {
            Attr.TASK_ID.value: LAYOUT_ID,
            "layout": str(self.way),
            "keyed": self.keyed,
            "shards": self.shards,
            "readShards": self.read_shards,
            "queues": list(self.queues),
            "classicIndex": self.classic_index,
            VERSION: self.version,
        }

    @classmethod
    def from_record(cls, record: Record | None) -> Self:
        """Read the table's own item; a table without one is classic. Raises StoreRejected where it says what nobody knows."""
        if record is None or "layout" not in record:
            return cls()
        try:
            way = Way(record["layout"])
        except ValueError:
            raise StoreRejected(
                f"The table has the layout {record.get('layout')!r}, unknown to this version. Use a newer ThunderAgent.",
                operation="GetItem",
            ) from None
        shards = min(MAX_SHARDS, max(1, as_int(record.get("shards"), 1)))
        return cls(
            way,
            bool(record.get("keyed", False)),
            shards,
            min(MAX_SHARDS, max(shards, as_int(record.get("readShards"), shards))),
            tuple(str(each) for each in record.get("queues", ())) or (DEFAULT_QUEUE,),
            bool(record.get("classicIndex", True)),
            as_int(record.get(VERSION), 0),
        )


CLASSIC: Final = Layout()


def dispatch_layout(shards: int = DEFAULT_SHARDS, queues: tuple[str, ...] = (DEFAULT_QUEUE,)) -> Layout:
    """The layout of a table that was made for dispatch. Raises InvalidInput."""
    check_shards(shards)
    return Layout(Way.DISPATCH, True, shards, shards, checked_queues(queues), classic_index=False)


def check_shards(shards: int) -> None:
    """Raises InvalidInput for a number of shards that no table can have."""
    if not 1 <= shards <= MAX_SHARDS:
        raise InvalidInput(f"shards is {shards}; it must be from 1 to {MAX_SHARDS}.")


def checked_queues(queues: tuple[str, ...]) -> tuple[str, ...]:
    """The names, the default one first and each once. Raises InvalidInput for one that no queue can have."""
    for queue in queues:
        if not QUEUE_NAME.fullmatch(queue):
            raise InvalidInput(
                f"The name of a queue is {queue!r}; it has 1 to 64 letters, digits, dots, dashes and underscores, and begins "
                "and ends with a letter or digit."
            )
    return tuple(dict.fromkeys((DEFAULT_QUEUE, *queues)))


def _mark(transition: Transition) -> Mark:
    if transition.leaves is Status.RUNNING:
        return Mark.RUNNING
    return Mark.WAITING if transition.waits else Mark.READY


def entry_record(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of the dispatch index as a record of a task, in which lockTime is dueAt: for a RUNNING one, a moment before
    which its lease cannot end."""
    queue = re.split("[#?!]", str(entry[Attr.DISPATCH]))[0]
    return {**entry, Attr.LOCK_TIME.value: entry[Attr.DUE_AT], Attr.QUEUE.value: queue}
