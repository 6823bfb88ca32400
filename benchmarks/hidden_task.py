"""Pages read until a ready task behind very many that wait is found, by the agents' own finder.

The table is in memory and pages as DynamoDB does: by count or by 1 MB. Agents take turns, a poll each, as they do in time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.report import Figure, Goal
from thunderagent.store.base import Cursor, Page
from thunderagent.store.finder import Finder
from thunderagent.store.layout import CLASSIC, Layout, Way, dispatch_layout
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status, Task

NOW = 1_800_000_000
WAITING = 100_000
READY = "ready"
BATCH = 10
PAYLOAD = {"text": "x" * 600}
"""The whole item has about 800 bytes."""

PLACES = {"oldest": 0.0, "somewhere in the middle": 0.6, "newest": 1.0}
TRIES = 5
"""The finder begins a sweep from a random end, so a place is tried several times."""


class CountedTable(MemoryStore):
    """A table that counts the pages of work that are read from it. Its waiting tasks are alike, so one is read for all."""

    pages = 0
    waiting: Task | None = None

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        self.pages += 1
        return super().page(status, limit=limit, cursor=cursor, newest_first=newest_first)

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        self.pages += 1
        return super().entries(partition, limit=limit, until=until, cursor=cursor)

    def _task(self, task_id: str) -> Task | None:
        return super()._task(task_id) if task_id == READY else self.waiting


@dataclass(frozen=True, slots=True)
class Found:
    """``pages``: read by all agents together. ``polls``: of the agent that found it."""

    pages: int
    polls: int


def table_of(waiting: int, layout: Layout) -> CountedTable:
    """A table with so many tasks that wait for a time to come, made one a second."""
    table = CountedTable(lambda: NOW, layout)
    for number in range(waiting):
        record = _record(layout, f"waiting-{number}", number, NOW + 86_400)
        table.put_record(record)
        table.waiting = Task.from_record(record)
    return table


def look_for_one(table: CountedTable, layout: Layout, created: float, agents: int, seed: int) -> Found:
    """Put one ready task among the waiting ones and have the agents look for it."""
    table.put_record(_record(layout, READY, created, NOW))
    table.pages = 0
    finders = [Finder(table, random.Random(f"{seed} {agent}")) for agent in range(agents)]
    polls = 0
    while True:
        polls += 1
        for finder in finders:
            if finder.poll(BATCH, lambda task: True, NOW).tasks:
                table.delete_record(READY)
                return Found(table.pages, polls)


def _record(layout: Layout, task_id: str, created: float, ready_at: int) -> dict[str, object]:
    record: dict[str, object] = {
        "taskId": task_id,
        "status": "PENDING",
        "payload": PAYLOAD,
        "createdAt": int(created),
        "lockTime": ready_at,
        "waitingFor": [],
    }
    if layout.keyed:
        record |= {"dispatch": f"{layout.queues[0]}#{layout.shard_of(task_id)}", "dueAt": ready_at}
    return record


def measure(waiting: int = WAITING) -> list[Figure]:
    """For each layout and place: pages by one agent and, on classic, by four that share the sweep."""
    figures = []
    for layout, fleets in ((CLASSIC, (1, 4)), (dispatch_layout(1), (1,))):
        table = table_of(waiting, layout)
        for place, share in PLACES.items():
            for agents in fleets:
                found = [look_for_one(table, layout, share * waiting, agents, seed) for seed in range(TRIES)]
                figures += _figures(layout.way, place, agents, waiting, found)
    return figures


def _figures(way: Way, place: str, agents: int, waiting: int, found: list[Found]) -> list[Figure]:
    name = f"a ready task among {waiting:,} waiting, {place}, {way}, {agents} agent{'s' * (agents > 1)}"
    how = f"in memory, pages of 1 MB or what was asked for, batch {BATCH}, items of 800 bytes; worst of {TRIES}"

    def row(what: str, of: Callable[[Found], int], goal: Goal | None) -> Figure:
        samples = tuple(float(of(each)) for each in found)
        return Figure(f"{name}: {what}", max(samples), what.split(maxsplit=1)[0], "", how, goal, samples)

    first_poll = Goal(1) if way is Way.DISPATCH or place == "oldest" else None
    return [
        row("pages read by all", lambda each: each.pages, None),
        row("polls until it is found", lambda each: each.polls, first_poll),
    ]
