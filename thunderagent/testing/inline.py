"""Running handlers in this process: the stand-in for child processes in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from thunderagent import transitions
from thunderagent.agent.handler import (
    Route,
    Router,
    RouteTable,
    RunningTask,
    outcome_of_exception,
    outcome_of_return,
)
from thunderagent.agent.held import Held
from thunderagent.agent.runner import RunEnd, RunListener
from thunderagent.errors import LeaseLost
from thunderagent.queue import TaskQueue
from thunderagent.store.base import Store
from thunderagent.task import Task


class InlineRun:
    """A run in this process, and its handler's link. A sync handler blocks the loop while it runs, and time stands still."""

    def __init__(self, task: Task, held: Held, runner: InlineRunner) -> None:
        self.end: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self._task = task
        self._held = held
        self._runner = runner
        self._lost = False
        self._running: asyncio.Task[None] | None = None

    def start(self, route: Route) -> None:
        self._running = asyncio.create_task(self._run(route, RunningTask(self._task, self)))

    # --- as the agent sees it

    def tell_lost(self, lost: bool) -> None:
        self._lost = lost

    def tell_saved(self, ok: bool) -> None:
        """Saves that wait are written at once here, so there is nobody to tell."""

    async def stop(self, grace: float) -> None:
        self._lost = True
        if self._running is not None and not self._running.done():
            self._running.cancel()
        await asyncio.wait({self.end}, timeout=grace)
        self._finish(RunEnd(outcome_of_exception(asyncio.CancelledError()), stopped=True))

    # --- as the handler sees it

    def save(self, progress: Mapping[str, Any], *, wait: bool) -> None:
        if not wait:
            self._held.on_save(self, progress, False)
            return
        lease = self._held.lease
        renewal = transitions.renew(lease, lease_end=lease.ends, progress=progress)
        if not self._runner.store.apply(renewal).ok:
            raise LeaseLost(f"The progress of {self._task.task_id} was not saved: another agent may have the task.")

    def lease_lost(self) -> bool:
        return self._lost

    def queue(self) -> TaskQueue:
        return self._runner.queue

    async def _run(self, route: Route, running: RunningTask) -> None:
        stopped = False
        try:
            value = route.handler(running)
            outcome = outcome_of_return(await value if route.is_async else value, self._task)
        except asyncio.CancelledError as error:
            outcome, stopped = outcome_of_exception(error), True
        except BaseException as error:
            outcome = outcome_of_exception(error)
        self._finish(RunEnd(outcome, stopped))

    def _finish(self, end: RunEnd) -> None:
        if not self.end.done():
            self.end.set_result(end)


class InlineRunner:
    """Runs the handlers of a router here, without processes. Time limits stop async handlers only."""

    def __init__(self, router: Router, store: Store, queue: TaskQueue) -> None:
        self.store = store
        self.queue = queue
        self._router = router

    async def start(self) -> RouteTable:
        return self._router.table()

    def begin(self, task: Task, listener: RunListener) -> InlineRun:
        route = self._router.route(task.task_type)
        assert route is not None, "the agent claims only types that have a handler"
        assert isinstance(listener, Held), "the agent hands over the task that it holds"
        run = InlineRun(task, listener, self)
        run.start(route)
        return run

    def freed(self) -> asyncio.Future[bool]:
        """Never: there is always a place here."""
        return asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """Nothing is left running: the agent has waited for every run."""
