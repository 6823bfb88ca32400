"""The application: it enqueues the planned tasks by the real TaskQueue, cancels some of them and redrives others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

from tests.simulation.agents import Setting
from tests.simulation.blocking import BlockingStore
from tests.simulation.loop import Process
from tests.simulation.plan import Fault, PlannedTask
from thunderagent.errors import StoreError, TaskStateError
from thunderagent.queue import TaskQueue
from thunderagent.task import Status, Task


class _Caller:
    """One caller of TaskQueue, with its own way to the table."""

    def __init__(self, setting: Setting, name: str) -> None:
        self.setting = setting
        self.rng = setting.plan.rng(name)
        process = Process(name)
        self._store = BlockingStore(setting.wire(process, setting.machine(name)))
        self.queue = TaskQueue(
            store=self._store,
            rng=random.Random(self.rng.random()),
            sleep=self._store.sleep,
            monotonic=setting.loop.time,
        )

    async def do(self, function: Callable[[], Any]) -> None:
        """Call the queue; what it says about the task's state, or the network's, is an answer like any other."""
        try:
            await self._store.run(function)
        except (StoreError, TaskStateError):
            return

    def pick(self, *statuses: Status) -> Task | None:
        tasks = [task for task in self.setting.table.tasks.values() if task.status in statuses]
        return self.rng.choice(tasks) if tasks else None


def work(setting: Setting) -> list[Coroutine[Any, Any, None]]:
    """All that the application does, each to run beside the others; each ends once faults have."""
    parts = [_enqueue(setting)]
    if Fault.CANCEL in setting.plan.faults:
        parts.append(_cancel(setting))
    if Fault.REDRIVE in setting.plan.faults:
        parts.append(_redrive(setting))
    return parts


async def _enqueue(setting: Setting) -> None:
    caller = _Caller(setting, "application")
    for task in sorted(setting.plan.tasks, key=lambda task: task.at):
        await asyncio.sleep(max(0.0, task.at - setting.loop.time()))
        await _enqueue_one(caller, task)


async def _enqueue_one(caller: _Caller, task: PlannedTask) -> None:
    """Until it is in the table: an application tries again with the same id."""

    def enqueue() -> Task:
        return caller.queue.enqueue(
            {"n": 1},
            task_id=task.task_id,
            max_retry=task.max_retry,
            delay=task.delay or None,
            depends_on=task.depends_on,
            check_dependencies=False,
        )

    while task.task_id not in caller.setting.table.tasks:
        await caller.do(enqueue)
        if caller.rng.random() < 0.1:
            await caller.do(enqueue)  # a caller that does not know that it has done so already


async def _cancel(setting: Setting) -> None:
    caller = _Caller(setting, "canceller")
    async for task in _now_and_then(caller, Status.PENDING, Status.RUNNING):
        await caller.do(partial(caller.queue.cancel, task.task_id))
        if Fault.REDRIVE in setting.plan.faults and caller.rng.random() < 0.5:
            await caller.do(partial(caller.queue.redrive, task.task_id))


async def _redrive(setting: Setting) -> None:
    """Two people who see the same failed task, and do not know of each other."""
    one, other = (_Caller(setting, f"redriver-{number}") for number in (1, 2))
    async for task in _now_and_then(one, Status.FAILED):
        dependents = one.rng.random() < 0.3
        await asyncio.gather(
            one.do(partial(one.queue.redrive, task.task_id, dependents=dependents)),
            other.do(partial(other.queue.redrive, task.task_id)),
        )


async def _now_and_then(caller: _Caller, *statuses: Status) -> AsyncIterator[Task]:
    """A task in one of these states, at random times until faults end."""
    setting = caller.setting
    every = setting.plan.calm_at / caller.rng.choice([5, 10, 30])
    while not setting.weather.calm:
        await asyncio.sleep(caller.rng.expovariate(1 / every))
        task = caller.pick(*statuses)
        if task is not None and not setting.weather.calm:
            yield task
