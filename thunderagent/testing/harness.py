"""The harness: a queue, a clock and an agent for a test of handlers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from thunderagent.agent.agent import Agent
from thunderagent.agent.events import Events
from thunderagent.agent.handler import Handler, Router, as_router
from thunderagent.agent.table import Contact, Table
from thunderagent.errors import ThunderAgentError
from thunderagent.metrics import AgentMetrics
from thunderagent.queue import TaskQueue
from thunderagent.settings import AgentSettings
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status
from thunderagent.testing.inline import InlineRunner
from thunderagent.testing.loop import VirtualTimeLoop

T = TypeVar("T")

START = 1_800_000_000
"""Epoch seconds at which a harness's clock begins where no other start is given."""

YEAR = 365 * 86400
STEP, LONGEST_STEP = 0.25, 8.0
"""Seconds between two looks at whether all tasks have ended: they grow while nothing runs, as in a long wait."""

QUIET = 60.0
"""Where nothing is due for longer than this many seconds, the clock jumps to just before the next thing that is."""


class NotIdle(ThunderAgentError):
    """Tasks had not ended after the virtual time that was allowed. The message names them."""


class Clock:
    """Virtual time in epoch seconds. It stands still unless something waits for it or advances it."""

    def __init__(self, start: float = START) -> None:
        self._start = float(start)
        self._elapsed = 0.0

    def now(self) -> float:
        return self._start + self._elapsed

    def since_start(self) -> float:
        """Seconds since the start. The event loop counts these: they keep the digits that epoch seconds have no room for."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Move time on; a handler that is to seem slow does so from inside."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self._elapsed += seconds


class Harness:
    """A task table in memory and an agent for it, on a clock of their own::

        def test_report():
            harness = Harness(handle)
            harness.queue.enqueue({"month": "2026-11"}, task_id="report")
            harness.run_until_idle()
            assert harness.queue.get("report").result == {"pages": 3}

    The agent is the one that runs in production; handlers run in this process, so a debugger and monkeypatch reach them.
    ``settings`` are the agent's; ``seed`` fixes what is random in it, such as the delay of a retry.
    """

    def __init__(
        self,
        handler: Handler | Router,
        *,
        settings: AgentSettings | None = None,
        start: float = START,
        seed: int = 0,
    ) -> None:
        self.clock = Clock(start)
        self.store = MemoryStore(self.clock.now)
        self.queue = self._queue(seed)
        self._router = as_router(handler)
        self._settings = replace(settings or AgentSettings(), start_delay_min=0.0, start_delay_max=0.0)
        self._rng = random.Random(seed)

    def run_until_idle(self, limit: float = YEAR) -> None:
        """Run until every task has ended, retries, waits and delays included. Time passes at once, ``limit`` seconds at most.

        Raises NotIdle where some task has not ended by then.
        """
        deadline = self.clock.now() + limit
        self._run(lambda agent: self._until_idle(agent, deadline))

    def run_for(self, seconds: float) -> None:
        """Run for this much virtual time; what runs at its end may finish."""
        self._run(lambda agent: asyncio.sleep(seconds))

    def _run(self, until: Callable[[Agent], Awaitable[None]]) -> None:
        with asyncio.Runner(loop_factory=partial(VirtualTimeLoop, self.clock.since_start, self.clock.advance)) as runner:
            runner.run(self._agent_until(until))

    async def _agent_until(self, until: Callable[[Agent], Awaitable[None]]) -> None:
        contact = Contact(self.clock.since_start, self._settings.renew)
        agent: Agent
        queue = self._queue(self._rng.random(), lambda task_id: agent.hint(task_id))
        runner = InlineRunner(self._router, self.store, queue)
        agent = Agent(
            self._settings,
            Table(self.store, self.store, _inline, _inline, contact),
            runner,
            events=Events(AgentMetrics(CollectorRegistry(), self._settings.pool), "-/harness/1"),
            rng=self._rng,
        )
        running = asyncio.create_task(agent.run())
        try:
            await until(agent)
        finally:
            agent.stop()
            await running

    def _queue(self, seed: float, on_enqueued: Callable[[str], None] | None = None) -> TaskQueue:
        return TaskQueue(
            store=self.store,
            on_enqueued=on_enqueued,
            rng=random.Random(seed),
            sleep=self.run_for,
            monotonic=self.clock.since_start,
        )

    async def _until_idle(self, agent: Agent, deadline: float) -> None:
        step = STEP
        while self._any_open():
            if self.clock.now() >= deadline:
                raise NotIdle(f"These tasks have not ended: {', '.join(self._open_tasks())}.")
            await asyncio.sleep(min(step, deadline - self.clock.now()))
            step = STEP if agent.busy else min(2 * step, LONGEST_STEP)
            self._skip_quiet_time(agent, deadline)

    def _skip_quiet_time(self, agent: Agent, deadline: float) -> None:
        if agent.busy == 0:
            due = min((task.lock_time or 0 for task in self._all(Status.PENDING, Status.RUNNING)), default=0)
            if due > self.clock.now() + QUIET:
                self.clock.advance(max(0.0, min(due, deadline) - self.clock.now() - STEP))

    def _any_open(self) -> bool:
        return any(self.store.page(status, limit=1).tasks for status in (Status.PENDING, Status.RUNNING))

    def _open_tasks(self) -> list[str]:
        return [f"{task.task_id} ({task.status})" for task in self._all(Status.PENDING, Status.RUNNING)][:20]

    def _all(self, *statuses: Status) -> list[Any]:
        return [task for status in statuses for task in self.queue.tasks(status)]


async def _inline(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    await asyncio.sleep(0)
    return function(*args, **kwargs)
