"""From a task table to an overview of it, at a cost that does not grow with the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from thunderagent.cli.live.collect import readable_error
from thunderagent.cli.live.overview import AgentRow, FailureRow, Overview, RunRow
from thunderagent.cli.live.snapshot import TaskCounts
from thunderagent.store.backlog import BacklogReader
from thunderagent.store.base import Page, Store
from thunderagent.task import Status, Task

NO_OWNER = "(no owner)"


class TableLook:
    """Looks at a table again and again: five queries and a reading of the backlog, each up to ``limit`` tasks.

    ``units`` gives the read units consumed so far, by which each look knows its own.
    """

    def __init__(self, store: Store, name: str, limit: int, rng: Random, units: Callable[[], float]) -> None:
        self._store = store
        self._name = name
        self._limit = limit
        self._units = units
        self._backlog = BacklogReader(store, rng)

    def look(self) -> Overview:
        """One look. Raises a StoreError."""
        before = self._units()
        backlog = self._backlog.read(self._limit)
        pages = {status: self._page(status) for status in Status}
        running = [task for task in pages[Status.RUNNING].tasks if task.status is Status.RUNNING]
        now = backlog.at
        return Overview(
            table=self._name,
            backlog=backlog,
            tasks=TaskCounts(
                {status: len(page.tasks) for status, page in pages.items()},
                backlog.waiting,
                cut=frozenset(status for status, page in pages.items() if page.cursor is not None),
            ),
            agents=agents_of(running, now),
            running=tuple(_run(task, now) for task in sorted(running, key=lambda task: task.created_at)),
            failures=failures_of(pages[Status.FAILED].tasks, now),
            units=self._units() - before,
        )

    def _page(self, status: Status) -> Page:
        return self._store.page(status, limit=self._limit, newest_first=status.is_final)


def agents_of(running: Iterable[Task], now: float) -> tuple[AgentRow, ...]:
    """The agents that hold the tasks, those with the most of them first."""
    by_owner: dict[str, list[Task]] = {}
    for task in running:
        by_owner.setdefault(task.lock_owner or NO_OWNER, []).append(task)
    rows = [_agent(owner, tasks, now) for owner, tasks in by_owner.items()]
    return tuple(sorted(rows, key=lambda row: (-row.expired, -row.running, row.owner)))


def failures_of(tasks: Iterable[Task], now: float) -> tuple[FailureRow, ...]:
    """The tasks that FAILED, the latest first. The index gives them by when they were enqueued."""
    failed = sorted((task for task in tasks if task.status is Status.FAILED), key=lambda task: -task.updated_at)
    return tuple(FailureRow(each.task_id, each.task_type or "", now - each.updated_at, readable_error(each)) for each in failed)


def _agent(owner: str, tasks: list[Task], now: float) -> AgentRow:
    expired = sum(task.is_due(now) for task in tasks)
    return AgentRow(owner, len(tasks) - expired, expired, max(0.0, now - min(task.created_at for task in tasks)))


def _run(task: Task, now: float) -> RunRow:
    lease = 0.0 if task.lock_time is None else task.lock_time - now
    age = max(0.0, now - task.created_at)
    return RunRow(task.task_id, task.task_type or "", task.lock_owner or NO_OWNER, age, lease, task.retry_count)
