"""A task that this agent holds: its lease is renewed, its run is written down, and never are two of its writes under way."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Mapping
from typing import Any

from thunderagent import transitions
from thunderagent.agent.decisions import GONE, StopReason, refused_outcome, retry_delays, settle
from thunderagent.agent.events import Events
from thunderagent.agent.handler import RouteInfo
from thunderagent.agent.pulse import Pulse
from thunderagent.agent.runner import RunHandle
from thunderagent.agent.table import Table
from thunderagent.backoff import full_jitter
from thunderagent.errors import StoreError, StoreRejected
from thunderagent.settings import AgentSettings
from thunderagent.store.base import Applied
from thunderagent.task import ErrorType, Outcome, Status, Task
from thunderagent.transitions import Lease, Progress, Transition

TRIED_ENDS = 20
"""Lease ends of unanswered renewals that are remembered; any of them may be the one in the table."""

REFUSALS = 5
"""Refused outcomes after which a task is left alone: an item that other programs filled to the limit takes none at all."""

BACKOFF_BASE, BACKOFF_CAP = 0.5, 5.0
"""Seconds between tries of a write that this agent owes the table."""


class Held:
    """One held task. Its writes take turns on ``_turn``, so that a renewal never races with the write that ends the run."""

    def __init__(self, lease: Lease, table: Table, settings: AgentSettings, rng: random.Random, events: Events) -> None:
        self.lease = lease
        self.handle: RunHandle | None = None
        self.stop_reason: StopReason | None = None
        self.stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once the run is to be stopped. A future can be waited for beside others, without a task around it."""
        self._table = table
        self._settings = settings
        self._rng = rng
        self._events = events
        self._turn = asyncio.Lock()
        self._wake = Pulse()
        self._unsaved: Progress = None
        self._saved_at = self._retry_at = float("-inf")
        self._renew_at = self._now() + self._interval()
        self._keeping: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_at(self._renew_at, self._keep_on)
        self._look_at = lease.ends
        """When others look whether the lease has ended; never after its end."""
        self.confirmed_at = self._now()
        """When the table last said that the task is ours, in the event loop's time."""
        self._savers = 0
        self._told_lost = False
        self._over = False

    @property
    def task(self) -> Task:
        return self.lease.task

    def stop(self, reason: StopReason) -> None:
        """Have the run stopped. The first reason stands, unless the table has said since that the lease is somebody else's."""
        if self.stop_reason is None or reason in GONE:
            self.stop_reason = reason
        if not self.stopping.done():
            self.stopping.set_result(None)

    @property
    def gone(self) -> bool:
        """Whether the table has said that this agent no longer holds the task."""
        return self.stop_reason in GONE

    def renew_soon(self) -> None:
        """Renew now rather than at the next interval: the table is back after an outage."""
        self._renew_at = self._retry_at = self._now()
        self._keep_on()

    # --- what the handler saves ---

    def attach(self, handle: RunHandle) -> None:
        """The run has begun."""
        self.handle = handle
        if self._told_lost:
            handle.tell_lost(True)

    def on_save(self, handle: RunHandle, progress: Mapping[str, Any], wait: bool) -> None:
        self.handle = handle
        self._unsaved = progress
        self._savers += wait
        self._keep_on()

    # --- renewing ---

    def _keep_on(self) -> None:
        """Renew what is due. A task of its own does it from the first renewal on, which most runs do not live to see."""
        if self._keeping is None and not self._over:
            self._keeping = asyncio.create_task(self._keep())
        self._wake.fire()

    async def close(self) -> None:
        """Renew no more."""
        self._over = True
        self._timer.cancel()
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping

    async def _keep(self) -> None:
        """Renew until the run has been written down or the lease is gone. A failed renewal is tried again, never given up."""
        failures = 0
        while not self._over and not self.gone:
            if self._now() < self._next_at():
                await self._wake.wait(self._next_at() - self._now())
                continue
            failures = 0 if await self._renew() else failures + 1
            self._renew_at = self._now() + self._interval()
            if failures:
                self._renew_at = self._retry_at = self._now() + self._backoff(failures)

    def _next_at(self) -> float:
        """When the next renewal is due: by the interval, or because the handler has saved something."""
        at = self._renew_at
        if self._unsaved is not None:
            at = min(at, self._now() if self._savers else self._saved_at + self._settings.checkpoint)
        return max(at, self._retry_at)

    def _interval(self) -> float:
        return self._settings.renew * self._rng.uniform(0.9, 1.0)

    def _backoff(self, failures: int) -> float:
        return full_jitter(self._rng, failures, base=BACKOFF_BASE, cap=BACKOFF_CAP)

    async def _renew(self) -> bool:
        """One renewal. True where the table answered."""
        async with self._turn:
            if self._over:
                return True
            progress, self._unsaved = self._unsaved, None
            savers, self._savers = self._savers, 0
            try:
                applied = await self._write_renewal(progress)
            except StoreError as error:
                self._renewal_failed(error, progress, savers)
                return False
            self._after_renewal(applied, progress, savers)
            return True

    def _renewal_failed(self, error: StoreError, progress: Progress, savers: int) -> None:
        """Keep what was to be saved for the next try, unless it is what the table refuses."""
        if isinstance(error, StoreRejected) and progress is not None:
            self._events.progress_refused(self.task, error)
            self._tell_saved(savers, False)
        else:
            self._unsaved = progress if self._unsaved is None else self._unsaved
            self._savers += savers
            self._events.renewal_failed(self.task, error)
        self._note_end_of_lease()

    async def _write_renewal(self, progress: Progress) -> Applied:
        lease_end = self._table.renewals.lease_end(self._settings.lease)
        tried = self.lease.trying(lease_end)
        if len(tried.written) > TRIED_ENDS:
            tried = tried.without_oldest_try()
        self.lease = tried
        look_at = lease_end if self._looked_at_before_next() else None
        applied = await self._table.renew(
            self._table.renewals.apply, transitions.renew(tried, lease_end=lease_end, progress=progress, look_at=look_at)
        )
        if applied.ok:
            self.lease = tried.renewed(lease_end)
            self._look_at = look_at or self._look_at
        return applied

    def _looked_at_before_next(self) -> bool:
        """Whether others would look at the lease before the renewal after this one, which they need not."""
        return self._look_at <= self._table.renewals.lease_end(self._settings.renew)

    def _after_renewal(self, applied: Applied, progress: Progress, savers: int) -> None:
        self._tell_saved(savers, applied.ok)
        if not applied.ok:
            self._lose(applied.task)
            return
        self.confirmed_at = self._now()
        if progress is not None:
            self._saved_at = self._now()
        if self._told_lost:
            self._tell_lost(False)
        self._events.renewed(self.task)

    def _tell_saved(self, savers: int, ok: bool) -> None:
        for _ in range(savers):
            if self.handle is not None:
                self.handle.tell_saved(ok)

    def _note_end_of_lease(self) -> None:
        """Tell the handler once the lease may have ended: from then on another agent can have the task."""
        ended = self._table.renewals.lease_end(0) >= self.lease.ends
        if ended and not self._told_lost:
            self._events.lease_ended(self.task)
            self._tell_lost(True)

    def _tell_lost(self, lost: bool) -> None:
        self._told_lost = lost
        if self.handle is not None:
            self.handle.tell_lost(lost)

    def _lose(self, now_there: Task | None) -> None:
        cancelled = (
            now_there is not None
            and now_there.status is Status.FAILED
            and now_there.error is not None
            and now_there.error.type == ErrorType.CANCELLED
        )
        reason = StopReason.CANCELLED if cancelled else StopReason.TAKEN
        self._tell_lost(True)
        self._events.lost(self.task, reason, now_there)
        self.stop(reason)

    # --- writing the outcome ---

    async def write_outcome(self, outcome: Outcome, info: RouteInfo | None) -> Transition | None:
        """Write the run's end, trying until the table answers. None where the task was not ours any more: nothing written."""
        failures = refusals = 0
        while not self.gone and refusals < REFUSALS:
            try:
                transition = await self._try_outcome(outcome, info)
            except StoreRejected as error:
                self._events.outcome_refused(self.task, error)
                self._unsaved = None
                outcome = refused_outcome(outcome)
                refusals += 1
            except StoreError as error:
                self._events.write_failed(self.task, error)
                failures += 1
            else:
                self._finish()
                return transition
            await asyncio.sleep(self._backoff(failures + refusals))
        if not self.gone:
            self._events.outcome_given_up(self.task)
        self._finish()
        return None

    async def _try_outcome(self, outcome: Outcome, info: RouteInfo | None) -> Transition | None:
        async with self._turn:
            if self.gone:
                return None
            transition = settle(
                self.lease,
                outcome,
                now=self._table.store.now(),
                delays=retry_delays(info, self._settings),
                keep_days=self._settings.keep_days,
                progress=self._unsaved,
                rng=self._rng,
            )
            applied = await self._table.do(self._table.store.apply, transition)
            if applied.ok:
                return transition
            self._lose(applied.task)
            return None

    def _finish(self) -> None:
        self._over = True
        self._wake.fire()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
