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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.backlog import PAYLOAD
from benchmarks.report import Figure, Goal
from thunderagent import transitions
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Outcome, OutcomeKind
from thunderagent.transitions import Lease, Transition
from thunderagent.values import encode, record_size

UNIT_BYTES = 1024
NOW = 1_800_000_000
TASK_ID = "5f0c6a4e9b8d4c1e8f3a2b7d6c5e4f3a"
OWNER = "reports/reports-7c9d8f6b5-x2x9k/0f5e2c1a-1111-2222-3333-444455556666-a1b2c3"

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Index:
    """An index by the attributes of its key. It projects all attributes, so every change of an item changes its entry."""

    keys: tuple[str, ...]

    def entry_units(self, before: Item, after: Item) -> int:
        """Units for the entry of an item that changes from ``before`` to ``after``."""
        old, new = self._entry(before), self._entry(after)
        if old is not None and new is not None and self._key(old) == self._key(new):
            return 0 if old == new else max(size_units(old), size_units(new))
        return sum(size_units(entry) for entry in (old, new) if entry is not None)

    def _entry(self, item: Item) -> Item | None:
        return item if all(key in item for key in self.keys) else None

    def _key(self, item: Item) -> tuple[Any, ...]:
        return tuple(item[key] for key in self.keys)


CLASSIC = Index(("status", "createdAt"))


def size_units(item: Item) -> int:
    """Units of a write of an item of this size; 1 for none, since a condition that fails is charged too."""
    return max(1, math.ceil(record_size(item) / UNIT_BYTES))


def write_units(before: Item, after: Item, indexes: Iterable[Index] = (CLASSIC,)) -> int:
    """Units of one write that changes an item (empty: not there) from ``before`` to ``after``."""
    return max(size_units(before), size_units(after)) + sum(index.entry_units(before, after) for index in indexes)


def task_units(renewals: int) -> int:
    """Units of a task from enqueue to SUCCESS on the classic layout, with so many renewals."""
    store = MemoryStore(lambda: NOW)
    units = _units_of(store, transitions.enqueue(TASK_ID, PAYLOAD, now=NOW, token="e" * 32))
    task = store.get(TASK_ID)
    assert task is not None
    units += _units_of(store, transitions.claim(task, now=NOW, lease_end=NOW + 300, owner=OWNER, token="c" * 32))
    lease = Lease(task, "c" * 32, OWNER, NOW, (NOW + 300,))
    for number in range(1, renewals + 1):
        lease_end = NOW + 300 + 60 * number
        units += _units_of(store, transitions.renew(lease.trying(lease_end), lease_end=lease_end))
        lease = lease.renewed(lease_end)
    ended = Outcome(OutcomeKind.SUCCESS, {"pages": 12, "file": "stocks-2026-11.html"})
    return units + _units_of(store, transitions.complete(lease, ended, now=NOW + 60 * renewals, expires_at=NOW + 14 * 86400))


def _units_of(store: MemoryStore, transition: Transition) -> int:
    before = _item(store, transition.task_id)
    if not store.apply(transition).ok:
        raise RuntimeError(f"The write {transition.name} was refused.")
    return write_units(before, _item(store, transition.task_id))


def _item(store: MemoryStore, task_id: str) -> dict[str, Any]:
    return {name: encode(value, name) for name, value in store.records().get(task_id, {}).items()}


def measure() -> list[Figure]:
    """Units a task without a renewal, with one, and with ten."""
    rows = ((0, "no renewal", 8), (1, "one renewal", 10), (10, "ten renewals", 28))
    return [
        Figure(
            f"write units a task, {text}",
            task_units(renewals),
            "units",
            "one put, one claim, one completion, and what the index costs",
            "an item below 1 KB on the classic index; computed from the writes by DynamoDB's documented rules",
            Goal(goal),
        )
        for renewals, text, goal in rows
    ]
