"""Fresh tables with a backlog of small tasks in them."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from benchmarks.servers import Server
from thunderagent import NewTask, Status, TableSettings, Task, TaskQueue
from thunderagent.store.admin import create_table, wait_until_active
from thunderagent.store.dynamo import DynamoStore

PAYLOAD = {"report": "stocks", "month": "2026-11", "symbols": ["AAPL", "AMZN", "GOOG", "IBM", "MSFT"], "limit": 250}
"""The kind of payload that the system's first user enqueues; the whole item stays below 1 KB."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """A table of its own, and the ids of the tasks in it, oldest first."""

    table: TableSettings
    task_ids: tuple[str, ...]

    def check_all_ended(self) -> None:
        """Raises RuntimeError where a task did not end as SUCCESS: a figure about work not done is none."""
        not_ended = self.not_ended()
        if not_ended:
            records = "\n".join(str(dict(task.record)) for task in not_ended[:3])
            raise RuntimeError(f"{len(not_ended)} of {len(self.task_ids)} tasks did not end as SUCCESS:\n{records}")

    def not_ended(self) -> list[Task]:
        """The tasks that have not ended as SUCCESS."""
        store = DynamoStore(self.table)
        try:
            found = store.get_many(self.task_ids).found
        finally:
            store.close()
        return [found[task_id] for task_id in self.task_ids if found[task_id].status is not Status.SUCCESS]


def make_backlog(server: Server, count: int) -> Backlog:
    """A new table with ``count`` ready tasks, all of which the index shows.

    dynalite 4.0 keys an index entry by createdAt and 24 bits of the taskId's hash. Once in some thousand backlogs two tasks of
    one second share an entry, which goes with the first of them, and nobody finds the second; such a backlog is made anew.
    """
    while True:
        backlog = _make(server, count)
        if _shown_by_index(backlog) == count:
            return backlog


def _make(server: Server, count: int) -> Backlog:
    settings = TableSettings(table=f"bench-{uuid.uuid4().hex[:8]}", endpoint=server.endpoint)
    store = DynamoStore(settings)
    try:
        create_table(store)
        wait_until_active(store, time.sleep, pause=0.1)
        tasks = [NewTask(PAYLOAD) for _ in range(count)]
        TaskQueue(store=store).enqueue_many(tasks)
    finally:
        store.close()
    return Backlog(settings, tuple(task.task_id for task in tasks))


def _shown_by_index(backlog: Backlog) -> int:
    store = DynamoStore(backlog.table)
    try:
        return sum(1 for _ in TaskQueue(store=store).tasks(Status.PENDING))
    finally:
        store.close()
