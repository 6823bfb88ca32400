"""The in-memory store: a real adapter that keeps the whole contract, for users' tests and for simulation.

It keeps items encoded as DynamoDB would, so a value that the table would refuse is refused here too, and it pages the index
as DynamoDB does: by count or by 1 MB, whichever comes first.
"""

from __future__ import annotations

import bisect
import math
import threading
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any

from thunderagent.errors import StoreRejected
from thunderagent.store.base import Applied, BatchRead, Cursor, Page, require_room, task_or_none
from thunderagent.store.conditions import holds
from thunderagent.task import Attr, Status, Task
from thunderagent.transitions import Transition
from thunderagent.values import ITEM_BYTES, as_stored, decode, encode, record_size

PAGE_BYTES = 1024 * 1024
READ_UNIT_BYTES = 4096
KEY_BYTES = 2048

_Key = tuple[Decimal, str]


class MemoryStore:
    """A task table in this process. ``clock`` gives the table's time in epoch seconds. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._items: dict[str, dict[str, Any]] = {}
        self._index: dict[str, list[_Key]] = {}

    def now(self) -> int:
        return math.floor(self._clock())

    def lease_end(self, seconds: float) -> int:
        return math.ceil(self._clock() + seconds)

    def get(self, task_id: str) -> Task | None:
        _check_key(task_id)
        with self._lock:
            record = self._record(task_id)
        return None if record is None else Task.from_record(record)

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        for task_id in task_ids:
            _check_key(task_id)
        with self._lock:
            records = {task_id: record for task_id in task_ids if (record := self._record(task_id)) is not None}
        tasks = {task_id: task_or_none(record) for task_id, record in records.items()}
        found = {task_id: task for task_id, task in tasks.items() if task is not None}
        return BatchRead(found, frozenset(tasks.keys() - found.keys()))

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        _check_key(transition.task_id)
        puts = {str(name): encode(value, str(name)) for name, value in transition.puts.items()}
        with self._lock:
            item = self._items.get(transition.task_id)
            if holds(transition.condition, item or {}):
                self._write(transition, item, puts)
                return Applied(True, self._task(transition.task_id) if want_task else None)
            task = self._task(transition.task_id)
            proven = item is not None and holds(transition.proof, item)
            return Applied(proven, task, repeated=proven)

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        require_room(limit)
        with self._lock:
            ordered = _after(self._index.get(str(status), []), cursor, newest_first, limit + 1)
            taken, size = self._take(ordered, limit)
            full = len(taken) < len(ordered) or len(taken) == limit
            tasks = tuple(task for _, task_id in taken if (task := self._task(task_id)) is not None)
        units = math.ceil(size / READ_UNIT_BYTES) / 2
        return Page(tasks, {"after": taken[-1]} if full else None, max(units, 0.5))

    def put_record(self, record: Mapping[str, Any]) -> None:
        """Write an item as another program would: whole, without a condition. For tests."""
        with self._lock:
            self._replace(record[Attr.TASK_ID], {str(name): as_stored(value) for name, value in record.items()})

    def delete_record(self, task_id: str) -> None:
        """Remove an item, as DynamoDB's TTL does. For tests."""
        with self._lock:
            self._unindex(task_id)
            self._items.pop(task_id, None)

    def records(self) -> dict[str, dict[str, Any]]:
        """A copy of every item as it stands, decoded. For tests and for a history checker."""
        with self._lock:
            return {task_id: {name: decode(value) for name, value in item.items()} for task_id, item in self._items.items()}

    def _write(self, transition: Transition, item: dict[str, Any] | None, puts: dict[str, Any]) -> None:
        kept = {} if item is None else {name: value for name, value in item.items() if name not in transition.drops}
        self._replace(transition.task_id, {Attr.TASK_ID.value: transition.task_id, **kept, **puts})

    def _replace(self, task_id: str, item: dict[str, Any]) -> None:
        if record_size(item) > ITEM_BYTES:
            raise StoreRejected("Item size has exceeded the maximum allowed size.", operation="UpdateItem")
        _check_index_types(item)
        self._unindex(task_id)
        self._items[task_id] = item
        if _is_indexed(item):
            bisect.insort(self._index.setdefault(item[Attr.STATUS], []), (item[Attr.CREATED_AT], task_id))

    def _unindex(self, task_id: str) -> None:
        item = self._items.get(task_id, {})
        if _is_indexed(item):
            keys = self._index[item[Attr.STATUS]]
            del keys[bisect.bisect_left(keys, (item[Attr.CREATED_AT], task_id))]

    def _take(self, keys: list[_Key], limit: int) -> tuple[list[_Key], int]:
        taken: list[_Key] = []
        size = 0
        for key in keys[:limit]:
            if size >= PAGE_BYTES:
                break
            taken.append(key)
            size += record_size(self._items[key[1]])
        return taken, size

    def _record(self, task_id: str) -> dict[str, Any] | None:
        item = self._items.get(task_id)
        return None if item is None else {name: decode(value) for name, value in item.items()}

    def _task(self, task_id: str) -> Task | None:
        record = self._record(task_id)
        return None if record is None else task_or_none(record)


def _check_key(task_id: str) -> None:
    if not 0 < len(task_id.encode()) <= KEY_BYTES:
        raise StoreRejected(f"A taskId has 1 to {KEY_BYTES} bytes, and this one {len(task_id.encode())}.")


def _is_indexed(item: Mapping[str, Any]) -> bool:
    """An item that lacks a key attribute of an index is not in it."""
    return Attr.STATUS in item and Attr.CREATED_AT in item


def _check_index_types(item: Mapping[str, Any]) -> None:
    for attr, kind in ((Attr.STATUS, str), (Attr.CREATED_AT, Decimal)):
        if attr in item and not isinstance(item[attr], kind):
            raise StoreRejected(f"Type mismatch for Index Key {attr}.", operation="PutItem")


def _after(keys: list[_Key], cursor: Cursor | None, newest_first: bool, count: int) -> list[_Key]:
    """The first ``count`` keys beyond the cursor. No more: a table may have a million."""
    if newest_first:
        end = len(keys) if cursor is None else bisect.bisect_left(keys, cursor["after"])
        return keys[max(0, end - count) : end][::-1]
    start = 0 if cursor is None else bisect.bisect_right(keys, cursor["after"])
    return keys[start : start + count]
