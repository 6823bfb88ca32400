"""One agent: it looks for work, claims it for free slots, has it run under a lease, and drains when told to stop.

Everything here runs in one event loop; blocking calls go through :class:`~thunderagent.agent.table.Table`. Time comes from the
event loop, chance from ``rng``, so the same code runs in production, in users' tests and in simulation.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Coroutine, Iterable
from typing import Any

from thunderagent.agent.candidates import Candidates
from thunderagent.agent.claims import Claims
from thunderagent.agent.decisions import (
    StopReason,
    outcome_of_end,
    time_limit,
)
from thunderagent.agent.dependencies import Dependencies
from thunderagent.agent.events import Events
from thunderagent.agent.handler import RouteTable, parse_type_settings
from thunderagent.agent.held import Held
from thunderagent.agent.pulse import Pulse
from thunderagent.agent.runner import RunEnd, RunHandle, Runner
from thunderagent.agent.slots import Slots
from thunderagent.agent.table import Table
from thunderagent.backoff import full_jitter
from thunderagent.errors import StoreError
from thunderagent.settings import AgentSettings
from thunderagent.store.finder import Finder
from thunderagent.task import Outcome, OutcomeKind, Status, Task
from thunderagent.transitions import Lease

BEAT = 5.0
"""Longest time in seconds that the poll loop waits without showing that it is alive."""

HEARTBEAT = 60.0
"""Seconds between two lines that say the agent is alive and what it has done so far."""

POLL_BACKOFF_BASE, POLL_BACKOFF_CAP = 1.0, 30.0
HINTS = 1000
"""Ids just enqueued here that are remembered, to be tried before the index shows them."""
CLOCKS_APART = 2
"""Seconds by which two clocks that were set by the table's replies may differ, both rounded to whole seconds."""

LAST_WRITES = 30.0
"""Seconds after a drain in which outcomes may still be written; what cannot be is left to the end of its lease."""


class Agent:
    """See the module. ``run`` returns once the agent has drained."""

    def __init__(
        self,
        settings: AgentSettings,
        table: Table,
        runner: Runner,
        *,
        events: Events,
        rng: random.Random,
    ) -> None:
        self._settings = settings
        self._table = table
        self._runner = runner
        self._events = events
        self._rng = rng
        self._finder = Finder(table.store, random.Random(rng.random()), settings.queue)
        self._claims = Claims(settings, table, events, rng)
        self._dependencies = Dependencies(settings, table, events, self._beat, self._claims.remember)
        self._slots = Slots(settings, RouteTable({}, None), self._now)
        self._routes = RouteTable({}, None)
        self._candidates = Candidates(self._now)
        self._hints: deque[str] = deque(maxlen=HINTS)
        self._held: dict[str, Held] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._changed = Pulse()
        self._blocked = False
        self._backlog = False
        """Whether the last poll found more than there were slots for."""
        self._returned_at = float("-inf")
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self.ready = asyncio.Event()
        """Set once the handler is imported. It does not wait for the table: an outage must not fail the start of an agent."""
        self.last_turn = self._now()
        """When the poll loop last showed that it is alive, in the event loop's time."""
        table.on_return = self._on_return

    # --- from outside ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Drain: claim nothing more, let running tasks finish within the drain time. A second call hurries it."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()
        self._changed.fire()

    def hint(self, task_id: str) -> None:
        """A task that was just enqueued here: try it first, by its key."""
        self._hints.append(task_id)
        self._changed.fire()

    @property
    def busy(self) -> int:
        return self._slots.busy

    @property
    def slots(self) -> int:
        return self._slots.total

    async def run(self) -> None:
        """Run until stopped and drained. Raises InvalidHandler where the handler cannot be imported."""
        try:
            self._prepare(await self._runner.start())
            await self._until_stopped()
            await self._drain()
        finally:
            await self._runner.close()
            self._events.stopped(len(self._held))

    def _prepare(self, routes: RouteTable) -> None:
        task_types = [each.strip() for each in self._settings.task_types.split(",") if each.strip()]
        self._routes = routes.with_settings(parse_type_settings(self._settings.types)).limited_to(task_types)
        self._slots = Slots(self._settings, self._routes, self._now)
        self.ready.set()

    async def _until_stopped(self) -> None:
        loops = [asyncio.create_task(each) for each in (self._poll_loop(), self._expired_loop(), self._heartbeat_loop())]
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({*loops, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for loop in loops:
                if loop.done():
                    loop.result()  # a loop ends only by a fault of its own: show it
        finally:
            for each in (*loops, stopping):
                each.cancel()
            await asyncio.gather(*loops, stopping, return_exceptions=True)

    # --- finding work ---------------------------------------------------------------------------------------------------

    async def _poll_loop(self) -> None:
        await self._learn_time()
        self._events.started(self._slots.total)
        await self._pause(self._rng.uniform(self._settings.start_delay_min, self._settings.start_delay_max))
        failures = empty = 0
        while True:
            self._beat()
            await self._renew_first()
            if self._start_candidates():
                empty = 0
                await asyncio.sleep(0)
                continue
            if self._slots.free == 0 and not self._looks_ahead and await self._slot_freed():
                continue
            try:
                found = await self._look()
            except StoreError as error:
                self._events.poll_failed(error)
                failures += 1
                await self._pause(full_jitter(self._rng, failures, base=POLL_BACKOFF_BASE, cap=POLL_BACKOFF_CAP))
                continue
            failures = 0
            self._backlog = len(found) > self._slots.free
            self._candidates.replace(found)
            if not found and self._slots.free > 0:
                await self._idle(empty)
                empty += 1

    async def _learn_time(self) -> None:
        failures = 0
        while True:
            self._beat()
            try:
                await self._table.do(self._table.store.now)
            except StoreError as error:
                self._events.trouble("reaching the table", error)
                failures += 1
                await self._pause(full_jitter(self._rng, failures, base=POLL_BACKOFF_BASE, cap=POLL_BACKOFF_CAP))
            else:
                self._events.recovered("reaching the table")
                return

    @property
    def _looks_ahead(self) -> bool:
        """Whether to read more while all slots are taken: the first one that comes free then need not wait for a poll."""
        return self._backlog and not self._candidates

    async def _slot_freed(self) -> bool:
        """Wait for a free slot. False after the longest wait: waiting tasks are looked at even while all slots are taken."""
        until = self._now() + self._settings.wait_idle * self._rng.uniform(0.75, 1.25)
        while self._slots.free == 0 and self._now() < until:
            self._beat()
            await self._changed.wait(min(BEAT, until - self._now()))
        return self._slots.free > 0

    async def _look(self) -> list[Task]:
        """One poll: candidates that are ready, in a shuffled order so that agents do not fight for the same head."""
        now = self._table.store.now()
        self._blocked = bool(self._candidates)  # those left over wait for a slot
        hinted = await self._hinted(now)
        limit = self._settings.batch * self._candidates.width
        found = await self._table.do(self._finder.poll, limit, self._wanted, now)
        tasks = {task.task_id: task for task in (*hinted, *found.tasks)}.values()
        ready = [task for task in tasks if not task.is_waiting]
        waiting = [task for task in tasks if task.is_waiting]
        self._rng.shuffle(waiting)
        room = self._slots.free - len(ready)
        ready += await self._dependencies.look(
            waiting, room=room, takes=lambda task: self._slots.takes(task.task_type), now=now
        )
        self._events.polled(len(ready), now)
        self._rng.shuffle(ready)
        first = {task.task_id for task in hinted}
        return sorted(ready, key=lambda task: task.task_id not in first)[: self._settings.batch]

    async def _hinted(self, now: int) -> list[Task]:
        ids = [self._hints.popleft() for _ in range(min(len(self._hints), self._settings.batch))]
        if not ids:
            return []
        read = await self._table.do(self._table.store.get_many, ids)
        pending = [task for task in read.found.values() if task.status is Status.PENDING]
        self._hint_when_due(task for task in pending if not task.is_due(now))
        return [task for task in pending if task.is_due(now) and self._wanted(task)]

    def _hint_when_due(self, tasks: Iterable[Task]) -> None:
        """Whoever enqueued a task reads another clock, so it may be due here only a moment later."""
        for task in tasks:
            seconds = (task.lock_time or 0) - self._table.store.now()
            if seconds <= CLOCKS_APART:
                asyncio.get_running_loop().call_later(seconds, self.hint, task.task_id)

    def _wanted(self, task: Task) -> bool:
        """Whether a task could be started by the next free slot, or waits and could be looked at. Notes one that lacks more.

        An entry that was tried lately is not: a page full of such, which the index still shows, must hide nothing behind it.
        """
        if self._claims.tried_lately(task):
            return False
        if self._slots.takes_next(task.task_type) or (task.is_waiting and self._slots.knows(task.task_type)):
            return True
        if self._slots.knows(task.task_type):
            self._blocked = True
        return False

    async def _idle(self, empty: int) -> None:
        """Wait after the ``empty``-th poll in a row that found nothing; less where a task waits for a slot or a rate."""
        waits = self._settings.poll_waits
        seconds = waits[min(empty, len(waits) - 1)] * self._rng.uniform(0.75, 1.25)
        if self._blocked:
            seconds = min(seconds, self._slots.next_token_in())
        until = self._now() + seconds
        while self._now() < until and not self._hints:
            self._beat()
            fired = await self._changed.wait(min(BEAT, until - self._now()))
            if fired and self._blocked:
                return

    async def _pause(self, seconds: float) -> None:
        until = self._now() + seconds
        while self._now() < until:
            self._beat()
            await asyncio.sleep(min(BEAT, until - self._now()))

    async def _expired_loop(self) -> None:
        """Look for leases of others that have ended. Every agent does, so no one has to be in charge of it."""
        while True:
            slept = await self._sleep(self._settings.expired_look * self._rng.uniform(0.5, 1.5))
            if slept > self._settings.renew or not self._table.contact.may_take_over:
                continue  # where this process was paused, the whole machine may have been, and others are about to renew
            try:
                found = await self._table.do(self._finder.expired, self._table.store.now())
                await self._take_expired(found.tasks)
            except StoreError as error:
                self._events.trouble("looking for expired leases", error)
            else:
                self._events.recovered("looking for expired leases")

    async def _sleep(self, seconds: float) -> float:
        """Sleep, and return by how many seconds it became longer."""
        until = self._now() + seconds
        await asyncio.sleep(seconds)
        return self._now() - until

    async def _take_expired(self, tasks: Iterable[Task]) -> None:
        held = {each.task.task_id for each in self._held.values()}
        for task in tasks:
            if task.task_id in held:  # the index may show a lease that it had before
                continue
            if task.retries_left == 0:
                await self._claims.bury(task)
            elif self._slots.knows(task.task_type):
                self._candidates.add_expired(task)
                self._blocked = True
        self._changed.fire()

    async def _heartbeat_loop(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            self._events.heartbeat(self._slots.busy, self._slots.total)

    # --- after an outage ------------------------------------------------------------------------------------------------

    def _on_return(self) -> None:
        """The table is back after longer than a renewal interval: what is held is renewed before anything is claimed."""
        self._returned_at = self._now()
        for held in self._held.values():
            held.renew_soon()

    async def _renew_first(self) -> None:
        while not self._table.contact.broken and any(each.confirmed_at < self._returned_at for each in self._held.values()):
            self._beat()
            await self._changed.wait(1.0)

    # --- running a task -------------------------------------------------------------------------------------------------

    def _start_candidates(self) -> int:
        """Start what fits into free slots; the rest stays for the slots that come free next. Returns how many were started."""
        if not self._table.contact.may_take_over:
            self._candidates.drop_expired()
        if self._slots.free == 0:
            return 0  # most turns under a backlog end here
        started = self._candidates.take(lambda task: self._slots.take(task.task_type))
        for task in started:
            self._claims.remember(task)
            self._spawn(self._carry(task))
        self._events.slots_busy(self._slots.busy)
        return len(started)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work_done)

    def _work_done(self, task: asyncio.Task[None]) -> None:
        """A fault of our own costs one task its lease, never the agent."""
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._events.fault(error)

    async def _carry(self, candidate: Task) -> None:
        """One candidate from claim to outcome; it has a slot until its handler has ended."""
        with contextlib.ExitStack() as slot:
            slot.callback(self._give_back, candidate.task_type)
            if self._stop.is_set():
                return
            lease = await self._claims.claim(candidate)
            self._candidates.note_claim(lease is not None)
            if lease is not None:
                await self._hold(lease, slot)

    def _give_back(self, task_type: str | None) -> None:
        self._slots.give_back(task_type)
        self._events.slots_busy(self._slots.busy)
        self._changed.fire()

    async def _hold(self, lease: Lease, slot: contextlib.ExitStack) -> None:
        held = Held(lease, self._table, self._settings, self._rng, self._events)
        self._held[lease.token] = held
        try:
            began = self._now()
            outcome = await self._outcome(held)
            if len(self._held) - self._slots.busy < self._slots.total:  # outcomes that cannot be written must not pile up
                slot.close()  # the next task is claimed while this one's outcome is written
            await self._write(held, outcome, self._now() - began)
        finally:
            del self._held[lease.token]
            await held.close()

    async def _outcome(self, held: Held) -> Outcome:
        """Have the handler run. What it came to, whether it ended by itself or was stopped."""
        if self._stop.is_set():
            return Outcome(OutcomeKind.RELEASED)
        handle = await self._begin(held)
        if handle is None:
            return Outcome(OutcomeKind.RELEASED)
        held.attach(handle)
        limit = time_limit(self._routes.info(held.task.task_type), self._settings)
        end = await self._end(held, handle, limit)
        return outcome_of_end(end, held.stop_reason, limit)

    async def _begin(self, held: Held) -> RunHandle | None:
        """Start the handler as soon as a process is there for it; None where the run was stopped before."""
        while (handle := self._runner.begin(held.task, held)) is None:
            first: set[asyncio.Future[Any]] = {self._runner.freed(), held.stopping}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if held.stopping.done():
                return None
        return handle

    async def _end(self, held: Held, handle: RunHandle, limit: float | None) -> RunEnd:
        if held.stop_reason is None:
            ends: set[asyncio.Future[Any]] = {handle.end, held.stopping}
            await asyncio.wait(ends, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if not handle.end.done():
            if held.stop_reason is None:
                held.stop(StopReason.TIMED_OUT)
            await handle.stop(self._settings.stop_grace)
        return await handle.end

    async def _write(self, held: Held, outcome: Outcome, run_s: float) -> None:
        transition = await held.write_outcome(outcome, self._routes.info(held.task.task_type))
        if transition is not None:
            kind = OutcomeKind.FAILED if transition.name == "fail" else outcome.kind
            self._events.settled(held.lease, kind, transition.name, run_s, outcome.error)

    # --- draining -------------------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Let what runs finish within the drain time, stop the rest, and write down how each run ended."""
        self._candidates.clear()
        self._events.draining(len(self._held), self._settings.drain)
        hurry = asyncio.create_task(self._hurry.wait())
        for held in self._held.values():
            if held.handle is None:  # it waits for a process that is being replaced
                held.stop(StopReason.DRAINED)
        try:
            await self._until_idle(self._settings.drain, hurry)
            for held in list(self._held.values()):
                held.stop(StopReason.DRAINED)
            await self._until_idle(self._settings.stop_grace + LAST_WRITES, None)
        finally:
            hurry.cancel()
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)

    async def _until_idle(self, seconds: float, hurry: asyncio.Task[Any] | None) -> None:
        until = self._now() + seconds
        while self._work and self._now() < until and not (hurry and hurry.done()):
            self._beat()
            waiting: set[asyncio.Task[Any]] = {*self._work, *([hurry] if hurry else [])}
            await asyncio.wait(waiting, timeout=min(BEAT, until - self._now()), return_when=asyncio.FIRST_COMPLETED)

    def _beat(self) -> None:
        self.last_turn = self._now()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
