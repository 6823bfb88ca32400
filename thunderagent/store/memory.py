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
from thunderagent.store.base import Applied, BatchRead, Cursor, Page, possible_ids, require_room, task_or_none
from thunderagent.store.conditions import holds
from thunderagent.store.dispatch import page_of_status
from thunderagent.store.layout import CLASSIC, PROJECTED, Layout, entry_record
from thunderagent.task import TASK_ID_BYTES, Attr, Status, Task
from thunderagent.transitions import Transition
from thunderagent.values import GIVEN, ITEM_BYTES, as_stored, decode, encode, read_attribute, record_size

PAGE_BYTES = 1024 * 1024
READ_UNIT_BYTES = 4096

_Key = tuple[Decimal, str]


class MemoryStore:
    """A task table in this process. ``clock`` gives the table's time in epoch seconds. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float], layout: Layout = CLASSIC) -> None:
        self._clock = clock
        self._layout = layout
        self._lock = threading.Lock()
        self._items: dict[str, dict[str, Any]] = {}
        self._index = _Index(Attr.STATUS, Attr.CREATED_AT)
        self._dispatch = _Index(Attr.DISPATCH, Attr.DUE_AT)

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
        with self._lock:
            records = {task_id: record for task_id in possible_ids(task_ids) if (record := self._record(task_id)) is not None}
        tasks = {task_id: task_or_none(record) for task_id, record in records.items()}
        found = {task_id: task for task_id, task in tasks.items() if task is not None}
        return BatchRead(found, frozenset(tasks.keys() - found.keys()))

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        _check_key(transition.task_id)
        transition = self._layout.filed(transition)
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
        if not self._layout.classic_index:
            return page_of_status(self, self._scan, status, limit=limit, cursor=cursor)
        with self._lock:
            taken, more, size = self._take(self._index.after(str(status), cursor, newest_first, limit + 1), limit)
            tasks = tuple(task for _, task_id in taken if (task := self._task(task_id)) is not None)
        return Page(tasks, {"after": taken[-1]} if more else None, _units(size))

    def layout(self) -> Layout:
        return self._layout

    def change_layout(self, layout: Layout) -> None:
        """Have the table laid out otherwise from now on, for new writes and all reads."""
        self._layout = layout

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        require_room(limit)
        with self._lock:
            keys = self._dispatch.after(partition, cursor, False, limit + 1)
            due = [key for key in keys if until is None or key[0] <= until]
            taken, more, size = self._take(due, limit, _shown)
            tasks = tuple(_entry(self._items[task_id]) for _, task_id in taken)
        return Page(tasks, {"after": taken[-1]} if more else None, _units(size))

    def put_record(self, record: Mapping[str, Any]) -> None:
        """Write an item as another program would: whole, without a condition. For tests."""
        with self._lock:
            self._replace(record[Attr.TASK_ID], {str(name): _stored(str(name), value) for name, value in record.items()})

    def put_item(self, item: Mapping[str, Any]) -> None:
        """Write an item as it is to stand in the table, numbers as Decimal. For tests."""
        with self._lock:
            self._replace(item[Attr.TASK_ID], dict(item))

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
        for index in (self._index, self._dispatch):
            index.add(item)

    def _unindex(self, task_id: str) -> None:
        for index in (self._index, self._dispatch):
            index.remove(self._items.get(task_id, {}))

    def _take(
        self, keys: list[_Key], limit: int, shown: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda item: item
    ) -> tuple[list[_Key], bool, int]:
        """The keys of one page, whether it was full, and the bytes that it read."""
        taken: list[_Key] = []
        size = 0
        for key in keys[:limit]:
            if size >= PAGE_BYTES:
                break
            taken.append(key)
            size += record_size(shown(self._items[key[1]]))
        return taken, len(taken) < len(keys) or len(taken) == limit, size

    def _scan(self, status: Status, limit: int, cursor: Cursor | None) -> Page:
        """Items of the table in no order, of which those of the status are shown."""
        with self._lock:
            ids = sorted(self._items)
            start = 0 if cursor is None else bisect.bisect_right(ids, cursor["after"])
            read = ids[start : start + limit]
            tasks = tuple(task for each in read if (task := self._task(each)) is not None and task.status is status)
            size = sum(record_size(self._items[each]) for each in read)
        return Page(tasks, {"after": read[-1]} if len(read) == limit else None, _units(size))

    def _record(self, task_id: str) -> dict[str, Any] | None:
        item = self._items.get(task_id)
        return None if item is None else {name: read_attribute(name, value) for name, value in item.items()}

    def _task(self, task_id: str) -> Task | None:
        record = self._record(task_id)
        return None if record is None else task_or_none(record)


def _stored(name: str, value: Any) -> Any:
    """What :func:`read_attribute` gives, as the table holds it. A Decimal is a number of another program's."""
    return encode(value) if name in GIVEN and not isinstance(value, Decimal) else as_stored(value)


def _check_key(task_id: str) -> None:
    if not 0 < len(task_id.encode()) <= TASK_ID_BYTES:
        raise StoreRejected(f"A taskId has 1 to {TASK_ID_BYTES} bytes, and this one {len(task_id.encode())}.")


class _Index:
    """An index over two attributes. An item that lacks one of them is not in it."""

    def __init__(self, partition: Attr, order: Attr) -> None:
        self._partition = partition
        self._order = order
        self._keys: dict[str, list[_Key]] = {}

    def add(self, item: Mapping[str, Any]) -> None:
        if self._has(item):
            bisect.insort(self._keys.setdefault(item[self._partition], []), self._key(item))

    def remove(self, item: Mapping[str, Any]) -> None:
        if self._has(item):
            keys = self._keys[item[self._partition]]
            del keys[bisect.bisect_left(keys, self._key(item))]

    def after(self, partition: str, cursor: Cursor | None, newest_first: bool, count: int) -> list[_Key]:
        """The first ``count`` keys beyond the cursor. No more: a table may have a million."""
        keys = self._keys.get(partition, [])
        if newest_first:
            end = len(keys) if cursor is None else bisect.bisect_left(keys, cursor["after"])
            return keys[max(0, end - count) : end][::-1]
        start = 0 if cursor is None else bisect.bisect_right(keys, cursor["after"])
        return keys[start : start + count]

    def _has(self, item: Mapping[str, Any]) -> bool:
        return self._partition in item and self._order in item

    def _key(self, item: Mapping[str, Any]) -> _Key:
        return item[self._order], item[Attr.TASK_ID]


def _check_index_types(item: Mapping[str, Any]) -> None:
    for attr, kind in _INDEX_TYPES:
        if attr in item and not isinstance(item[attr], kind):
            raise StoreRejected(f"Type mismatch for Index Key {attr}.", operation="PutItem")


_INDEX_TYPES = ((Attr.STATUS, str), (Attr.CREATED_AT, Decimal), (Attr.DISPATCH, str), (Attr.DUE_AT, Decimal))


def _shown(item: Mapping[str, Any]) -> dict[str, Any]:
    """What the dispatch index shows of an item."""
    names = (Attr.TASK_ID, Attr.DISPATCH, Attr.DUE_AT, *PROJECTED)
    return {str(name): item[name] for name in names if name in item}


def _entry(item: Mapping[str, Any]) -> Task:
    return Task.from_record(entry_record({name: read_attribute(name, value) for name, value in _shown(item).items()}))


def _units(size: int) -> float:
    return max(0.5, math.ceil(size / READ_UNIT_BYTES) / 2)
