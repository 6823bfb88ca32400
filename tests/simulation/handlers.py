"""The stand-in for child processes: runs that take their time, save, fail, snooze, crash or hang, as the seed says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.plan import LONGEST_CALM_RUN, LONGEST_DELAY, Fault, Plan
from tests.simulation.wire import Weather
from thunderagent.agent.handler import Router, RouteTable
from thunderagent.agent.runner import RunEnd, RunListener
from thunderagent.task import ErrorType, Outcome, OutcomeKind, Task, TaskError

SUCCESS = Outcome(OutcomeKind.SUCCESS, {"ok": True})
DONE = Outcome(OutcomeKind.DONE)
FAILED = Outcome(OutcomeKind.FAILED, error=TaskError("Fail", "no use"))
RAISED = Outcome(OutcomeKind.RETRY, error=TaskError("ValueError", "broken"))
CRASHED = Outcome(OutcomeKind.RETRY, error=TaskError(ErrorType.CHILD_DIED, "The process that ran the handler ended."))


@dataclass(frozen=True, slots=True)
class Script:
    """What one run will do. ``seconds``: None for a handler that hangs. ``saves``: when it saves progress, and whether it waits
    for that. ``obeys``: it ends when it is asked to stop, rather than being killed."""

    outcome: Outcome
    seconds: float | None
    saves: tuple[tuple[float, bool], ...] = ()
    obeys: bool = True


def script(plan: Plan, weather: Weather, rng: random.Random) -> Script:
    """Draw what a run will do. Once faults have ended, every handler succeeds, and soon."""
    if weather.calm:
        return Script(SUCCESS, rng.uniform(0.0, LONGEST_CALM_RUN))
    long = rng.uniform(0.0, max(2 * plan.settings.lease, plan.settings.timeout))
    seconds = rng.choice([0.0, rng.uniform(0.0, 5.0), long, long])
    saves = tuple((seconds * rng.random(), rng.random() < 0.3) for _ in range(rng.choice([0, 0, 1, 3])))
    if Fault.HANDLER not in plan.faults:
        return Script(SUCCESS, seconds, saves)
    outcome = rng.choice([SUCCESS, SUCCESS, SUCCESS, DONE, FAILED, RAISED, RAISED, CRASHED, None, "snooze"])
    obeys = rng.random() < 0.7
    if outcome is None:
        return Script(RAISED, None, saves, obeys)
    if isinstance(outcome, str):
        return Script(Outcome(OutcomeKind.SNOOZED, delay=rng.uniform(0.0, LONGEST_DELAY)), seconds, saves, obeys)
    return Script(outcome, seconds, saves, obeys)


class SimulatedRun:
    """A run under way, as the agent sees it."""

    def __init__(self, script: Script, task: Task, listener: RunListener, say: Callable[[str, str], None]) -> None:
        self.end: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self.lost = False
        self._script = script
        self._task = task
        self._listener = listener
        self._say = say
        self._begin()

    def tell_lost(self, lost: bool) -> None:
        self.lost = lost
        self._say("is told that its lease is lost" if lost else "is told that its lease is good", self._task.task_id)

    def tell_saved(self, ok: bool) -> None:
        """The handler goes on; what it does next is planned."""

    async def stop(self, grace: float) -> None:
        if not self._script.obeys:
            await asyncio.wait({self.end}, timeout=grace)
        self._finish(RunEnd(RAISED, stopped=True))

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        if self._script.seconds is not None:
            loop.call_later(self._script.seconds, self._finish, RunEnd(self._script.outcome))
        for at, wait in self._script.saves:
            loop.call_later(at, self._save, at, wait)

    def _save(self, at: float, wait: bool) -> None:
        if not self.end.done():
            self._listener.on_save(self, {"at": int(at)}, wait)

    def _finish(self, end: RunEnd) -> None:
        if not self.end.done():
            self._say("stopped" if end.stopped else f"handler ends: {end.outcome.kind}", self._task.task_id)
            self.end.set_result(end)


class SimulatedRunner:
    """A Runner without processes: every slot has one at once."""

    def __init__(self, plan: Plan, weather: Weather, rng: random.Random, say: Callable[[str, str], None]) -> None:
        self._plan = plan
        self._weather = weather
        self._rng = rng
        self._say = say
        self._router = Router()
        self._router.default(lambda task: None)

    async def start(self) -> RouteTable:
        return self._router.table()

    def begin(self, task: Task, listener: RunListener) -> SimulatedRun:
        return SimulatedRun(script(self._plan, self._weather, self._rng), task, listener, self._say)

    def freed(self) -> asyncio.Future[bool]:
        """Never: there is always a place here."""
        return asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """Nothing is left running: the agent has waited for every run."""
