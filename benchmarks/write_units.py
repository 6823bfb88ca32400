"""Write units a task, computed from the writes that agents really make, by the rules that DynamoDB documents.

Computed, not read from replies: the stand-ins do not count what an index costs. The rules, from the developer guide:

- A write costs 1 unit for each KB, begun ones whole, of the item before it or after it, whichever is larger (Read and write
  operations).
- Each index whose entry changes costs a write of its own: one where an entry is made, removed or changed, and two where its key
  changes, since the old entry is removed and a new one is made; none where no attribute of it changes (Using global secondary
  indexes, section Provisioned throughput considerations).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.backlog import PAYLOAD
from benchmarks.report import Figure, Goal
from thunderagent import transitions
from thunderagent.store.layout import CLASSIC, PROJECTED, Way, dispatch_layout
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Attr, Outcome, OutcomeKind
from thunderagent.transitions import Lease, Transition
from thunderagent.values import encode, record_size

UNIT_BYTES = 1024
LEASE, RENEW = 300, 60
TASKS_A_SECOND = 500
"""Tasks a second and shard that the goal is set for."""

KEY_UNITS = 1000
"""Write units a second that DynamoDB takes for one partition key value (Best practices for partition keys)."""

NOW = 1_800_000_000
TASK_ID = "5f0c6a4e9b8d4c1e8f3a2b7d6c5e4f3a"
OWNER = "reports/reports-7c9d8f6b5-x2x9k/0f5e2c1a-1111-2222-3333-444455556666-a1b2c3"

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Index:
    """An index by the attributes of its key, and what else it projects: a write that changes none of it costs it nothing."""

    keys: tuple[str, ...]
    projected: frozenset[str] | None = None
    """None: every attribute."""

    def entry_units(self, before: Item, after: Item) -> int:
        """Units for the entry of an item that changes from ``before`` to ``after``."""
        old, new = self._entry(before), self._entry(after)
        if old is not None and new is not None and self._key(old) == self._key(new):
            return 0 if old == new else max(size_units(old), size_units(new))
        return sum(size_units(entry) for entry in (old, new) if entry is not None)

    def partition_units(self, before: Item, after: Item) -> Counter[str]:
        """The same, by the value of the index's first key that each unit goes to."""
        old, new = self._entry(before), self._entry(after)
        if old is not None and new is not None and self._key(old) == self._key(new):
            return Counter({new[self.keys[0]]: self.entry_units(before, after)})
        units: Counter[str] = Counter()
        for entry in (old, new):
            if entry is not None:
                units[entry[self.keys[0]]] += size_units(entry)
        return units

    def _entry(self, item: Item) -> Item | None:
        if not all(key in item for key in self.keys):
            return None
        if self.projected is None:
            return item
        return {name: value for name, value in item.items() if name in self.projected or name in (*self.keys, Attr.TASK_ID)}

    def _key(self, item: Item) -> tuple[Any, ...]:
        return tuple(item[key] for key in self.keys)


CLASSIC_INDEX = Index(("status", "createdAt"))
INDEXES = {
    Way.CLASSIC: CLASSIC_INDEX,
    Way.DISPATCH: Index(("dispatch", "dueAt"), frozenset(attr.value for attr in PROJECTED)),
}
LAYOUTS = {Way.CLASSIC: CLASSIC, Way.DISPATCH: dispatch_layout()}


def size_units(item: Item) -> int:
    """Units of a write of an item of this size; 1 for none, since a condition that fails is charged too."""
    return max(1, math.ceil(record_size(item) / UNIT_BYTES))


def write_units(before: Item, after: Item, indexes: Iterable[Index] = (CLASSIC_INDEX,)) -> int:
    """Units of one write that changes an item (empty: not there) from ``before`` to ``after``."""
    return max(size_units(before), size_units(after)) + sum(index.entry_units(before, after) for index in indexes)


def task_units(renewals: int, way: Way = Way.CLASSIC) -> int:
    """Units of a task from enqueue to SUCCESS on a layout, with so many renewals."""
    return _run_one(renewals, way).units


def busiest_key_units(renewals: int, way: Way) -> float:
    """Units a task that go to the one value of the index's first key that gets most; with shards, the even share of it."""
    shards = LAYOUTS[way].shards
    return max(_run_one(renewals, way).by_key.values()) / shards


def ended_bytes(way: Way) -> int:
    """Bytes of the item of a task that has ended."""
    return record_size(_run_one(0, way).item(TASK_ID))


def _run_one(renewals: int, way: Way) -> _Metered:
    table = _Metered(way)
    table.apply(transitions.enqueue(TASK_ID, PAYLOAD, now=NOW, token="e" * 32))
    task = table.store.get(TASK_ID)
    assert task is not None
    table.apply(transitions.claim(task, now=NOW, lease_end=NOW + LEASE, owner=OWNER, token="c" * 32))
    lease, look_at = Lease(task, "c" * 32, OWNER, NOW, (NOW + LEASE,)), NOW + LEASE
    for number in range(1, renewals + 1):
        now = NOW + RENEW * number
        moved = now + LEASE if look_at <= now + RENEW else None
        table.apply(transitions.renew(lease.trying(now + LEASE), lease_end=now + LEASE, look_at=moved))
        lease, look_at = lease.renewed(now + LEASE), moved or look_at
    ended = Outcome(OutcomeKind.SUCCESS, {"pages": 12, "file": "stocks-2026-11.html"})
    table.apply(transitions.complete(lease, ended, now=NOW + RENEW * renewals, expires_at=NOW + 14 * 86400))
    return table


class _Metered:
    """A table that adds up what its writes cost."""

    def __init__(self, way: Way) -> None:
        self.store = MemoryStore(lambda: NOW, LAYOUTS[way])
        self.units = 0
        self.by_key: Counter[str] = Counter()
        self._index = INDEXES[way]

    def apply(self, transition: Transition) -> None:
        before = self.item(transition.task_id)
        if not self.store.apply(transition).ok:
            raise RuntimeError(f"The write {transition.name} was refused.")
        after = self.item(transition.task_id)
        self.units += write_units(before, after, (self._index,))
        self.by_key += self._index.partition_units(before, after)

    def item(self, task_id: str) -> dict[str, Any]:
        """The item as it is stored; empty where there is none."""
        return {name: encode(value, name) for name, value in self.store.records().get(task_id, {}).items()}


def measure() -> list[Figure]:
    """Units a task without a renewal, with one, and with ten, on each layout."""
    rows = (
        (Way.CLASSIC, 0, "no renewal", 8),
        (Way.CLASSIC, 1, "one renewal", 10),
        (Way.CLASSIC, 10, "ten renewals", 28),
        (Way.DISPATCH, 0, "no renewal", 7),
        (Way.DISPATCH, 1, "one renewal", 8),
        (Way.DISPATCH, 10, "ten renewals", 21),
    )
    units = [
        Figure(
            f"write units a task, {text}, {way}",
            task_units(renewals, way),
            "units",
            "one put, one claim, one completion, and what the index costs",
            f"an item below 1 KB on the {way} layout; computed from the writes by DynamoDB's documented rules",
            Goal(goal),
        )
        for way, renewals, text, goal in rows
    ]
    return [*units, *(_of_busiest_key(way, renewals) for way in Way for renewals in (0, 1, 10))]


def _of_busiest_key(way: Way, renewals: int) -> Figure:
    """What one value of an index's first key gets a second at the rate that the layout is made for."""
    shards = LAYOUTS[way].shards
    return Figure(
        f"write units of the busiest index key, {TASKS_A_SECOND * shards:,} tasks/s, {renewals} renewals, {way}",
        busiest_key_units(renewals, way) * TASKS_A_SECOND * shards,
        "units/s",
        f"DynamoDB takes {KEY_UNITS:,} a second for one key",
        f"{TASKS_A_SECOND} tasks a second and shard, {shards} shard{'s' * (shards > 1)}, spread evenly; computed as above",
        Goal(KEY_UNITS) if renewals == 0 else None,
    )
