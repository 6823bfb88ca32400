"""What ThunderAgent costs at DynamoDB: dollars for a million tasks, and for a month of a pool with nothing to do.

Units come from the writes and reads that agents really make, prices from AWS's list. docs/cost.md shows the same rows.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from benchmarks.backlog import PAYLOAD
from benchmarks.backlog_reads import units_of_a_poll
from benchmarks.first_user_loop import BATCH, EMPTY_SLEEP
from benchmarks.idle import reads_an_hour
from benchmarks.report import Figure
from benchmarks.write_units import LAYOUTS, NOW, ended_bytes, task_units
from thunderagent import transitions
from thunderagent.settings import AgentSettings
from thunderagent.store.finder import Finder
from thunderagent.store.layout import Way
from thunderagent.store.memory import MemoryStore

WRITE, READ = 0.625, 0.125
"""Dollars for a million write or read request units: on demand, Standard class, US East (N. Virginia), December 2026
(https://aws.amazon.com/dynamodb/pricing/on-demand/)."""

STORED = 0.25
"""Dollars for a GB a month, same list."""

OVERHEAD_BYTES = 100
"""Added to each item that is stored, in the table and in an index (Item sizes and formats, in the developer guide)."""

MILLION, GB = 1_000_000, 1_000_000_000
MONTH_DAYS = 30
POLL_SECONDS = 5
"""Seconds between two readings of the operator; the default of ``pollSeconds``."""

FIRST_USER_UNITS = 8
"""Of the first user's loop: one put of 2 units, a claim and a completion of 3 each; it renews nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table in docs/cost.md; ``dollars`` by column."""

    name: str
    dollars: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.dollars)

    def __str__(self) -> str:
        cells = " | ".join(f"{dollars:.2f}" for dollars in (*self.dollars, *((self.total,) if len(self.dollars) > 1 else ())))
        return f"| {self.name} | {cells} |"


def million_tasks() -> list[Row]:
    """Writes, reads to find the tasks, and what they take of the storage until TTL removes them."""
    first_user = Row(
        "the first user's loop, no renewals",
        (FIRST_USER_UNITS * WRITE, finding_units(Way.CLASSIC, BATCH) * READ, _storage(Way.CLASSIC)),
    )
    ours = [
        Row(
            f"{way}, {renewals or 'no'} renewal{'s' * (renewals != 1)}",
            (task_units(renewals, way) * WRITE, finding_units(way, AgentSettings().batch) * READ, _storage(way)),
        )
        for way in Way
        for renewals in (0, 1, 10)
    ]
    return [first_user, *ours]


def idle_month() -> list[Row]:
    """Reads of a month in which nothing is enqueued."""
    hours = MONTH_DAYS * 24
    polls = hours * 3600 / EMPTY_SLEEP
    rows = [Row("the first user's loop, one agent", (polls * 0.5 * READ / MILLION,))]
    for way in Way:
        _, units = reads_an_hour(layout=LAYOUTS[way])
        readings = hours * 3600 / POLL_SECONDS * units_of_a_poll(0, 0, LAYOUTS[way])
        shards = f", {LAYOUTS[way].shards} shards" if way is Way.DISPATCH else ""
        rows.append(Row(f"{way}{shards}: a pool at zero, the operator's readings", (readings * READ / MILLION,)))
        rows.append(Row(f"{way}{shards}: one agent that is kept", (hours * units * READ / MILLION,)))
    return rows


def finding_units(way: Way, batch: int) -> float:
    """Read units a task of one poll that finds as many tasks as it may."""
    store = MemoryStore(lambda: NOW, LAYOUTS[way])
    for number in range(batch * 2 * LAYOUTS[way].shards):
        store.apply(transitions.enqueue(f"{number:032d}", PAYLOAD, now=NOW, token="e" * 32))
    found = Finder(store, random.Random(0)).poll(batch, lambda task: True, NOW)
    return found.units / len(found.tasks)


def measure() -> list[Figure]:
    """The totals of both tables."""
    tasks = [_figure(f"a million tasks, {row.name}", row.total) for row in million_tasks()]
    return [*tasks, *(_figure(f"an idle month, {row.name}", row.total) for row in idle_month())]


def _storage(way: Way) -> float:
    """Dollars of a million ended tasks for the days that they are kept. The classic index shows them all that time."""
    copies = 2 if way is Way.CLASSIC else 1
    gigabytes = MILLION * copies * (ended_bytes(way) + OVERHEAD_BYTES) / GB
    return gigabytes * STORED * AgentSettings().keep_days / MONTH_DAYS


def _figure(name: str, dollars: float) -> Figure:
    cents = math.ceil(100 * dollars) / 100
    how = f"{WRITE} and {READ} dollars a million write and read units, {STORED} a GB and month; computed"
    return Figure(name, cents, "dollars", "", how)
