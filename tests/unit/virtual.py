"""Agents on a virtual clock, over one table in memory that can be taken away from each of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from thunderagent import AgentSettings, Router
from thunderagent.agent.agent import Agent
from thunderagent.agent.events import Events
from thunderagent.agent.handler import RouteTable
from thunderagent.agent.runner import RunEnd, RunListener
from thunderagent.agent.table import Contact, Table
from thunderagent.errors import StoreUnavailable
from thunderagent.metrics import AgentMetrics
from thunderagent.queue import TaskQueue
from thunderagent.store.base import Applied, BatchRead, Cursor, Page
from thunderagent.store.layout import Layout
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Outcome, OutcomeKind, Status, Task
from thunderagent.testing.harness import START, Clock
from thunderagent.testing.loop import VirtualTimeLoop
from thunderagent.transitions import Transition

T = TypeVar("T")


class Wire:
    """One agent's way to the table: the store, except while it is cut."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.cut = False
        self.calls = 0

    def now(self) -> int:
        return self._store.now()

    def lease_end(self, seconds: float) -> int:
        return self._store.lease_end(seconds)

    def get(self, task_id: str) -> Task | None:
        return self._through().get(task_id)

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        return self._through().get_many(task_ids)

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        return self._through().apply(transition, want_task=want_task)

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        return self._through().page(status, limit=limit, cursor=cursor, newest_first=newest_first)

    def layout(self) -> Layout:
        return self._store.layout()

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        return self._through().entries(partition, limit=limit, until=until, cursor=cursor)

    def _through(self) -> MemoryStore:
        self.calls += 1
        if self.cut:
            raise StoreUnavailable("The network is down.", operation="any")
        return self._store


class ScriptedRun:
    """A run that lasts until the test ends it or the agent stops it."""

    def __init__(self, task: Task, ends_at_stop: bool) -> None:
        self.task = task
        self.end: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self.lost = False
        self.stopped = False
        self._ends_at_stop = ends_at_stop

    def tell_lost(self, lost: bool) -> None:
        self.lost = lost

    def tell_saved(self, ok: bool) -> None:
        """No test of these saves."""

    async def stop(self, grace: float) -> None:
        self.stopped = True
        if not self.end.done():
            self.end.set_result(RunEnd(Outcome(OutcomeKind.RETRY), stopped=True))

    def finish(self, result: Mapping[str, Any] | None = None) -> None:
        self.end.set_result(RunEnd(Outcome(OutcomeKind.SUCCESS, result)))


class ScriptedRunner:
    """In place of child processes: keeps the runs for the test. ``free`` says whether a process is there for a run."""

    def __init__(self, router: Router, on_begin: Callable[[ScriptedRun], None]) -> None:
        self.runs: list[ScriptedRun] = []
        self.free = asyncio.Event()
        self.free.set()
        self._router = router
        self._on_begin = on_begin

    async def start(self) -> RouteTable:
        return self._router.table()

    def begin(self, task: Task, listener: RunListener) -> ScriptedRun | None:
        if not self.free.is_set():
            return None
        run = ScriptedRun(task, True)
        self.runs.append(run)
        self._on_begin(run)
        return run

    def freed(self) -> asyncio.Future[bool]:
        return asyncio.ensure_future(self.free.wait())

    async def close(self) -> None:
        """Nothing to end."""


class World:
    """The table, the clock, and the agents of one test."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = Clock(START)
        self.store = MemoryStore(self.clock.now)
        self.queue = TaskQueue(store=self.store, rng=random.Random(seed))
        self._seed = seed

    def run(self, scenario: Callable[[], Awaitable[T]]) -> T:
        """Run a scenario on the virtual clock."""
        with asyncio.Runner(loop_factory=partial(VirtualTimeLoop, self.clock.since_start, self.clock.advance)) as runner:
            return runner.run(_awaited(scenario))

    def table(self) -> Table:
        """A way to the table for a part of an agent, which needs no loop to be made."""
        return Table(self.store, self.store, _inline, _inline, Contact(self.clock.since_start, 60.0))

    def events(self) -> Events:
        """Somebody who hears of everything."""
        return Events(AgentMetrics(CollectorRegistry(), ""), "-/part/1")

    def agent(
        self, name: str, settings: AgentSettings, router: Router, on_begin: Callable[[ScriptedRun], None] = lambda run: None
    ) -> tuple[Agent, Wire, ScriptedRunner]:
        """An agent that has not been started, its way to the table, and its runs."""
        wire = Wire(self.store)
        runner = ScriptedRunner(router, on_begin)
        agent = Agent(
            settings,
            Table(wire, wire, _inline, _inline, Contact(self.clock.since_start, settings.renew)),
            runner,
            events=Events(AgentMetrics(CollectorRegistry(), ""), f"-/{name}/1"),
            rng=random.Random(f"{self._seed} {name}"),
        )
        return agent, wire, runner


async def until(condition: Callable[[], bool], seconds: float = 3600) -> None:
    """Let virtual time pass until the condition holds."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not come"
        await asyncio.sleep(0.1)


async def _awaited(scenario: Callable[[], Awaitable[T]]) -> T:
    return await scenario()


async def _inline(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    await asyncio.sleep(0)
    return function(*args, **kwargs)
