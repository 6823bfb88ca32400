"""One history: a plan is carried out, its writes are checked, faults end, and then everything has to come to rest."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast
from unittest import mock

from tests.simulation import application, chaos
from tests.simulation.agents import Setting
from tests.simulation.checker import Checker, Violation
from tests.simulation.fleet import FixedFleet, Fleet, PooledFleet
from tests.simulation.loop import SimulatedLoop
from tests.simulation.plan import Fault, Plan
from tests.simulation.table import MOST_LAG, SimulatedTable
from tests.simulation.trace import Line, Trace
from tests.simulation.wire import Weather
from thunderagent.store.backlog import BacklogReader
from thunderagent.store.base import Store
from thunderagent.store.layout import Layout
from thunderagent.transitions import Transition

LOOK = 2.0
"""Seconds between two looks at whether all is at rest."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A rule taken away: a change to each write before the table carries it out, or code put in the place of other code."""

    name: str
    change: Callable[[Transition], Transition] | None = None
    patches: tuple[tuple[object, str, Any], ...] = ()

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for target, attribute, replacement in self.patches:
                stack.enter_context(mock.patch.object(target, attribute, replacement))
            yield


NOTHING = Mutation("nothing")


@dataclass(frozen=True, slots=True)
class History:
    """What became of a plan."""

    plan: Plan
    violations: tuple[Violation, ...]
    digest: str
    writes: int
    seconds: float
    lines: tuple[Line, ...] = field(repr=False, default=())

    def story(self, most: int = 60) -> str:
        """What led to the first violation, to be read."""
        if not self.violations:
            return "\n".join(map(str, self.lines[-most:]))
        first = self.violations[0]
        wanted = {*first.task_ids, ""}
        lines = [line for line in self.lines if line.at <= first.at and (line.task_id in wanted or not first.task_ids)]
        return "\n".join([*map(str, lines[-most:]), f"{first}"])

    def in_short(self) -> History:
        """The same without what happened, which is long."""
        return replace(self, lines=())


def simulate(plan: Plan, mutation: Mutation = NOTHING) -> History:
    """Carry out a plan. The same plan gives the same history, whatever else the process has done."""
    with _seeded_tokens(plan.rng("tokens")), mutation.in_force(), silence():
        return _Simulation(plan, mutation).run()


class _Simulation:
    def __init__(self, plan: Plan, mutation: Mutation) -> None:
        self.plan = plan
        self.loop = SimulatedLoop()  # type: ignore[abstract]  # what a simulation needs of a loop, and no more
        self.trace = Trace()
        self.weather = Weather()
        lag = plan.rng("lag").uniform(0.0, MOST_LAG) if Fault.LAG in plan.faults else 0.0
        change = mutation.change or (lambda transition: transition)
        self.table = SimulatedTable(self.loop, plan.rng("index"), lag, change, layout=plan.layout)
        self.setting = Setting(plan, self.loop, self.table, self.weather, self.trace)
        self.violations: list[Violation] = []
        self.stop = self.loop.create_future()
        self.checker = Checker(plan.settings, plan.layout, self.setting.wires, self.table.tasks, self.trace, self.found)
        self.table.on_write, self.table.on_refused = self.checker.wrote, self.checker.refused

    def found(self, violation: Violation) -> None:
        self.violations.append(violation)
        if not self.stop.done():
            self.stop.set_result(None)

    def run(self) -> History:
        self.loop.run(self._run())
        for mistake in self.loop.mistakes:
            self.found(Violation("no code of ours fails", self.loop.time(), mistake))
        violations, lines = tuple(self.violations), tuple(self.trace.lines)
        return History(self.plan, violations, self.trace.digest(), len(self.table.history), self.loop.time(), lines)

    async def _run(self) -> None:
        work = self.loop.create_task(self._live())
        await asyncio.wait({work, self.stop}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if work.done():
                work.result()
        finally:
            await self._end()

    async def _end(self) -> None:
        """Leave nothing to the garbage collector, which comes when it likes."""
        self.table.on_write = self.table.on_refused = _ignore
        for wire in self.setting.wires.values():
            wire.process.is_over = True
            wire.process.go_on(self.loop)
        others = asyncio.all_tasks(self.loop) - {asyncio.current_task()}
        while others:
            for task in others:
                task.cancel()
            await asyncio.wait(others)
            others = asyncio.all_tasks(self.loop) - {asyncio.current_task()}

    async def _live(self) -> None:
        fleet: Fleet = PooledFleet(self.setting, self.found) if self.plan.pool else FixedFleet(self.setting)
        doing = [*fleet.start(), *application.work(self.setting), *chaos.of_table(self.setting)]
        await self._until_calm(doing)
        fleet.mend()
        await self._until(self._is_idle, self.plan.patience, "nothing is stuck once faults have ended", self._open)
        await self._rest(fleet)

    async def _until_calm(self, doing: list[Coroutine[Any, Any, None]]) -> None:
        tasks = [asyncio.ensure_future(each) for each in doing]
        await asyncio.sleep(self.plan.calm_at)
        self.weather.calm, self.weather.outage = True, False
        self.setting.note("world", "all faults end")
        await asyncio.gather(*tasks)

    async def _rest(self, fleet: Fleet) -> None:
        """Nothing is left: no entry that asks for an agent, no busy slot, no write; and every agent ends when asked to."""
        await asyncio.sleep(2 * MOST_LAG)
        writes = len(self.table.history)
        backlog = BacklogReader(cast("Store", _Reader(self.table)), random.Random(0)).read(1000)
        counts = (backlog.ready, backlog.waiting, backlog.scheduled, backlog.expired, len(backlog.running))
        self._check("at rest everything is 0", not any(counts) and not fleet.busy, f"{counts}, busy {fleet.busy}")
        fleet.end()
        await self._until(lambda: fleet.is_gone, fleet.patience, "at rest every agent is gone", lambda: ())
        more = len(self.table.history) - writes
        self._check("at rest nothing is written", more == 0, f"{more} writes")

    def _is_idle(self) -> bool:
        return all(task.status.is_final for task in self.table.tasks.values())

    def _open(self) -> tuple[str, ...]:
        return tuple(task_id for task_id, task in self.table.tasks.items() if not task.status.is_final)

    def _check(self, rule: str, holds: bool, what: str) -> None:
        if not holds:
            self.found(Violation(rule, self.loop.time(), what))

    async def _until(self, done: Callable[[], bool], seconds: float, rule: str, who: Callable[[], tuple[str, ...]]) -> None:
        deadline = self.loop.time() + seconds
        while not done():
            if self.loop.time() > deadline:
                self.found(Violation(rule, self.loop.time(), f"not within {seconds:g} s: {', '.join(who())}", who()))
                return
            await asyncio.sleep(LOOK)


def _ignore(event: object) -> None:
    """Nobody listens any more."""


class _Reader:
    """The table as a reading of the backlog needs it, without a network."""

    def __init__(self, table: SimulatedTable) -> None:
        self._table = table

    def now(self) -> int:
        return int(self._table.time())

    def page(self, status: Any, *, limit: int, cursor: Any = None, newest_first: bool = False) -> Any:
        return self._table.page(status, limit, cursor, newest_first)

    def layout(self) -> Layout:
        return self._table.layout

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Any = None) -> Any:
        return self._table.entries(partition, limit, until, cursor)

    def get_many(self, task_ids: Any) -> Any:
        return self._table.get_many(task_ids)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A thousand histories log more than anybody reads; the trace tells what happened."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _seeded_tokens(rng: random.Random) -> Iterator[None]:
    """The one source of chance that is not passed in: tokens. Those of a history come from its seed."""

    def new_token() -> str:
        return f"{rng.getrandbits(128):032x}"

    with mock.patch("thunderagent.agent.claims.new_token", new_token), mock.patch("thunderagent.queue.new_token", new_token):
        yield
