"""One process's way to the table: calls take time, get lost or fail, and their replies tell the table's time."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.plan import OF_CALLS, SLOWEST_CALL, Fault, Plan
from tests.simulation.table import SimulatedTable
from tests.simulation.trace import START, Trace
from thunderagent.errors import StoreThrottled, StoreUnavailable, ThunderAgentError
from thunderagent.store.base import Applied, BatchRead, Cursor, Page
from thunderagent.store.clock import MAX_DRIFT, TableClock
from thunderagent.store.layout import Layout
from thunderagent.task import Attr, Status, Task
from thunderagent.transitions import Transition

T = TypeVar("T")

FASTEST, SLOWEST_WAY = 0.002, SLOWEST_CALL / 2.1
"""Seconds that one way of a call takes, at least and at most."""

LATEST = 60.0
"""Seconds after which a request that its sender has given up may still arrive."""


@dataclass
class Weather:
    """What holds for the network as a whole. ``outage``: the table answers nobody; ``calm``: no fault happens any more."""

    outage: bool = False
    calm: bool = False


class Machine:
    """What a process finds on its machine: a wall clock that is wrong and jumps, a monotonic one that drifts, a network."""

    def __init__(self, loop: SimulatedLoop, rng: random.Random, clocks_are_wrong: bool) -> None:
        self._loop = loop
        self.wall_offset = rng.uniform(-600.0, 600.0) if clocks_are_wrong else 0.0
        self._drift = rng.uniform(-MAX_DRIFT, MAX_DRIFT) * 0.9 if clocks_are_wrong else 0.0
        self._booted = rng.uniform(0.0, 1e6)
        self.is_cut = False

    def monotonic(self) -> float:
        return self._booted + self._loop.time() * (1.0 + self._drift)

    def wall(self) -> float:
        return START + self._loop.time() + self.wall_offset


class Wire:
    """A Store, and the ``call`` that carries its functions out: a stand-in for threads, sockets and boto3.

    A function that reads several pages does so at one moment. ``troubled_at``: when this process last had trouble of its own
    (not one of the whole table): from then on it has had every chance to renew what it holds.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        table: SimulatedTable,
        process: Process,
        machine: Machine,
        weather: Weather,
        plan: Plan,
        trace: Trace,
    ) -> None:
        self.clock = TableClock(machine.monotonic)
        self.machine = machine
        self.process = process
        self.troubled_at = loop.time()
        self._loop = loop
        self._table = table
        self._weather = weather
        self._plan = plan
        self._trace = trace
        self._rng = plan.rng(f"wire {process.name}")
        self._kinds = [fault for fault in OF_CALLS if fault in plan.faults]
        self._outside = contextvars.Context()
        self._is_late = False
        self.late: set[str] = set()
        """Tokens of claims that arrived after this process had given them up."""

    # --- the store, as the process sees it ------------------------------------------------------------------------------

    def now(self) -> int:
        return self.clock.now()

    def lease_end(self, seconds: float) -> int:
        return self.clock.lease_end(seconds)

    def get(self, task_id: str) -> Task | None:
        return self._table.get(task_id)

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        return self._table.get_many(task_ids)

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        if self._is_late and Attr.LOCK_TOKEN in transition.puts:
            self.late.add(transition.puts[Attr.LOCK_TOKEN])
        applied = self._table.apply(self.process, transition)
        return applied if want_task or not applied.ok else Applied(True, None, applied.repeated)

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        return self._table.page(status, limit, cursor, newest_first)

    def layout(self) -> Layout:
        return self._table.layout

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        return self._table.entries(partition, limit, until, cursor)

    # --- calls ------------------------------------------------------------------------------------------------------------

    async def call(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Carry a function out on the table's side, with whatever happens on the way there and back. Raises a StoreError."""
        if not self.clock.known:
            await self._exchange(lambda: None)  # as a store does that does not know the table's time yet
        if function == self.now:
            return function()
        return await self._exchange(lambda: function(*args, **kwargs))

    async def _exchange(self, work: Callable[[], T]) -> T:
        sent = self.clock.read()
        reply: asyncio.Future[_Reply] = self._loop.create_future()
        self._send(work, reply)
        answer = await reply
        if answer.date is not None:
            self.clock.observe(answer.date, sent, self.clock.read())
        if answer.error is not None:
            raise answer.error
        return answer.value  # type: ignore[no-any-return]

    def _send(self, work: Callable[[], Any], reply: asyncio.Future[_Reply]) -> None:
        if self.process.is_over:
            return
        there, back = self._way(), self._way()
        if self._weather.outage or self.machine.is_cut:
            self.is_cut_off()
            self._later(self._rng.choice([back, SLOWEST_CALL]), _settle, reply, _UNREACHABLE)
            return
        fault = self._fault()
        if fault is None:
            self._later(there, self._arrive, work, reply, back)
            return
        self.trouble(fault)
        self._meet(fault, work, reply, there, back)

    def _meet(self, fault: Fault, work: Callable[[], Any], reply: asyncio.Future[_Reply], there: float, back: float) -> None:
        if fault is Fault.SLOW:
            self._later(there + self._rng.uniform(0.0, SLOWEST_CALL / 2), self._arrive, work, reply, SLOWEST_CALL / 3)
        elif fault is Fault.THROTTLED:
            self._later(there + back, _settle, reply, _THROTTLED)
        elif fault is Fault.RETRIED:
            self._later(there, self._answer, work)
            self._later(there + SLOWEST_CALL / 2, self._arrive, work, reply, back)
        else:
            self._later(SLOWEST_CALL, _settle, reply, _UNREACHABLE)
        if fault is Fault.LOST_REPLY:
            self._later(there, self._answer, work)
        elif fault is Fault.LATE:
            self._later(SLOWEST_CALL + self._rng.uniform(0.0, LATEST), self._arrive_late, work)

    def _way(self) -> float:
        return FASTEST + min(SLOWEST_WAY, self._rng.expovariate(1.0 / self._plan.latency))

    def _fault(self) -> Fault | None:
        if self._weather.calm or not self._kinds or self._rng.random() >= self._plan.rate:
            return None
        return self._rng.choice(self._kinds)

    def trouble(self, what: str, lasts: float = SLOWEST_CALL) -> None:
        """This process has trouble of its own, for so many seconds from now."""
        self.troubled_at = max(self.troubled_at, self._loop.time() + lasts)
        self._trace.note(self._loop.time(), self.process.name, what)

    def is_cut_off(self) -> None:
        """A call has met a network that is down; if it is down for this process alone, that is its own trouble."""
        if self.machine.is_cut:
            self.troubled_at = max(self.troubled_at, self._loop.time() + SLOWEST_CALL)

    def _later(self, seconds: float, function: Callable[..., Any], *args: Any) -> None:
        self._loop.call_later(seconds, function, *args, context=self._outside)

    def _arrive(self, work: Callable[[], Any], reply: asyncio.Future[_Reply], back: float) -> None:
        self._later(back, _settle, reply, self._answer(work))

    def _arrive_late(self, work: Callable[[], Any]) -> None:
        self._is_late = True
        self._answer(work)
        self._is_late = False

    def _answer(self, work: Callable[[], Any]) -> _Reply:
        """What the table does and says, with the date that it says it at: whole seconds, as in HTTP."""
        date = float(int(self._table.time()))
        try:
            return _Reply(date, work())
        except ThunderAgentError as error:
            return _Reply(date, None, error)


@dataclass(frozen=True, slots=True)
class _Reply:
    """What comes back of a call. ``date``: None where nothing did."""

    date: float | None
    value: Any
    error: ThunderAgentError | None = None


_UNREACHABLE = _Reply(None, None, StoreUnavailable("No reply.", operation="any"))
_THROTTLED = _Reply(None, None, StoreThrottled("Slow down.", operation="any"))


def _settle(reply: asyncio.Future[_Reply], answer: _Reply) -> None:
    if not reply.done():
        reply.set_result(answer)
