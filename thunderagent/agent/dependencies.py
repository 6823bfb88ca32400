"""Looking at waiting tasks: their dependencies are read, and each task is claimed, unblocked, deferred or abandoned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from thunderagent import transitions
from thunderagent.agent.decisions import DAY, GiveUp, Met, WaitOn, judge_dependencies
from thunderagent.agent.events import Events
from thunderagent.agent.table import Table
from thunderagent.errors import StoreRejected
from thunderagent.settings import AgentSettings
from thunderagent.task import Task
from thunderagent.transitions import Transition

LOOKS = 50
"""Waiting tasks looked at in one poll; the others are still due at the next."""


class Dependencies:
    """Decides about waiting tasks that are due for a look.

    ``beat`` is called to show that the work goes on, ``remember`` with each entry whose write has been answered.
    """

    def __init__(
        self, settings: AgentSettings, table: Table, events: Events, beat: Callable[[], None], remember: Callable[[Task], None]
    ) -> None:
        self._settings = settings
        self._table = table
        self._events = events
        self._beat = beat
        self._remember = remember

    async def look(self, tasks: Sequence[Task], *, room: int, takes: Callable[[Task], bool], now: int) -> list[Task]:
        """Those of the waiting tasks that may be claimed now, ``room`` at most, each with a slot; the rest is written down."""
        tasks = tasks[:LOOKS]
        ids = {task_id for task in tasks for task_id in task.unmet}
        if not ids:
            return []
        read = await self._table.do(self._table.store.get_many, ids)
        claimable: list[Task] = []
        writes = []
        for task in tasks:
            verdict = judge_dependencies(task, read, now, self._settings)
            if isinstance(verdict, Met) and len(claimable) < room and takes(task):
                self._events.dependency("met", task)
                claimable.append(task)
            else:
                writes.append(self._write(task, verdict, now))
        await asyncio.gather(*writes)
        return claimable

    async def _write(self, task: Task, verdict: Met | WaitOn | GiveUp, now: int) -> None:
        match verdict:
            case Met():
                await self._apply("unblocked", task, transitions.unblock(task, now=now))
            case WaitOn(wait, unmet):
                await self._apply("deferred", task, transitions.defer(task, now=now, wait=wait, unmet=unmet))
            case GiveUp(error):
                expires_at = now + int(self._settings.keep_days * DAY)
                await self._apply("abandoned", task, transitions.abandon(task, error, now=now, expires_at=expires_at), error)

    async def _apply(self, result: str, task: Task, transition: Transition, error: object = None) -> None:
        """Another agent may have looked at the same moment; then its write stands and this one does nothing."""
        try:
            applied = await self._table.do(self._table.store.apply, transition)
        except StoreRejected as refused:
            self._events.trouble(f"writing the wait of {task.task_id}", refused)
            return
        self._remember(task)  # the index shows it as it was for a while
        self._beat()  # many writes to a slow table are no stall
        if applied.ok and not applied.repeated:  # what stood there already is told by whoever wrote it, in the same second
            self._events.dependency(result, task, error)
