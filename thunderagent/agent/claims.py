"""Claiming: a task that is ready, one whose lease has ended, and the claim whose reply was lost."""

from __future__ import annotations

import asyncio
import random

from thunderagent import transitions
from thunderagent.agent.decisions import DAY, retry_delays, settle, wait_before_start
from thunderagent.agent.events import Events
from thunderagent.agent.table import Table
from thunderagent.backoff import full_jitter
from thunderagent.errors import NotATask, StoreError, StoreRejected
from thunderagent.queue import new_token
from thunderagent.settings import AgentSettings
from thunderagent.task import Attr, Outcome, OutcomeKind, Status, Task, as_str
from thunderagent.transitions import Lease

BACKOFF_BASE, BACKOFF_CAP = 0.5, 10.0
SEEN = 10_000
"""Entries of the index remembered as tried, so that one which lags behind the table is not tried again at once. An entry that
still stands there after the time of a lease is tried anew: whatever kept the claim from it may be over."""

_Entry = tuple[object, ...]


class Claims:
    """Writes claims and remembers which index entries were tried."""

    def __init__(self, settings: AgentSettings, table: Table, events: Events, rng: random.Random) -> None:
        self._settings = settings
        self._table = table
        self._owner = events.owner
        self._events = events
        self._rng = rng
        self._seen: dict[_Entry, int] = {}

    def tried_lately(self, task: Task) -> bool:
        """Whether this very entry was tried lately: then the index has not caught up yet."""
        tried_at = self._seen.get(_entry(task))
        return tried_at is not None and tried_at > self._table.store.now() - self._settings.lease

    def remember(self, task: Task) -> None:
        """Note that an entry is being tried."""
        entry = _entry(task)
        self._seen.pop(entry, None)  # so that the oldest try stays first
        self._seen[entry] = self._table.store.now()
        while len(self._seen) > SEEN:
            del self._seen[next(iter(self._seen))]

    async def claim(self, candidate: Task) -> Lease | None:
        """Claim or take over a candidate. None where somebody else was first, or where it had to be released again."""
        store = self._table.store
        token, now, lease_end = new_token(), store.now(), store.lease_end(self._settings.lease)
        expired = candidate.status is Status.RUNNING
        build = transitions.take_over if expired else transitions.claim
        transition = build(candidate, now=now, lease_end=lease_end, owner=self._owner, token=token)
        try:
            applied = await self._table.do(store.apply, transition, want_task=True)
        except StoreRejected as error:
            self._events.claim_refused(candidate, error)
            return None
        except StoreError as error:
            self._events.claim_unknown(candidate, error)
            await self._resolve(candidate.task_id, token, lease_end)
            self._seen.pop(_entry(candidate), None)
            return None
        self._events.recovered("claim")
        if not applied.ok or applied.task is None:
            self._events.claim_lost()
            return None
        lease = Lease(applied.task, token, self._owner, now, (lease_end,))
        if expired:
            self._events.taken_over(lease, candidate.lock_owner)
        self._events.claimed(lease, wait_before_start(candidate, now))
        return lease

    async def bury(self, task: Task) -> None:
        """End a task whose lease has ended and which has no retry left."""
        now = self._table.store.now()
        expires_at = now + int(self._settings.keep_days * DAY)
        try:
            applied = await self._table.do(self._table.store.apply, transitions.bury(task, now=now, expires_at=expires_at))
        except StoreRejected as error:
            self._events.claim_refused(task, error)  # another program's item, too full to be written to: on to the next
            return
        if applied.ok:
            self._events.buried(task)

    async def _resolve(self, task_id: str, token: str, lease_end: int) -> None:
        """A claim without a reply: read the task until it can be read, and release it where the claim had gone through."""
        failures = 0
        while True:
            try:
                if await self._released(task_id, token, lease_end):
                    return
            except NotATask:
                return
            except StoreError as error:
                self._events.trouble("claim", error)
            failures += 1
            await asyncio.sleep(full_jitter(self._rng, failures, base=BACKOFF_BASE, cap=BACKOFF_CAP))

    async def _released(self, task_id: str, token: str, lease_end: int) -> bool:
        store = self._table.store
        task = await self._table.do(store.get, task_id)
        self._events.recovered("claim")
        if task is None or task.lock_token != token:
            return True
        lease = Lease(task, token, self._owner, task.updated_at, (lease_end,))
        release = settle(
            lease,
            Outcome(OutcomeKind.RELEASED),
            now=store.now(),
            delays=retry_delays(None, self._settings),
            keep_days=self._settings.keep_days,
            progress=None,
            rng=self._rng,
        )
        await self._table.do(store.apply, release)
        return True


def _entry(task: Task) -> _Entry:
    """What tells one state of a task from another: it changes with every write that makes a task claimable.

    Times are whole seconds, so they alone do not: a task may be enqueued, looked at and unblocked within one, or redriven.
    """
    token, enqueued = task.lock_token or task.last_token, as_str(task.record.get(Attr.ENQUEUE_TOKEN))
    return (task.task_id, task.updated_at, task.lock_time, token, enqueued, task.waiting_for)
