"""The backlog of every pool, each table read once a poll however many pools it has.

Reading blocks, so it runs in threads of its own, one a table at most: a table that hangs keeps its own pools waiting and
nobody else's. Pools of one table fall into step by themselves, since each plans its next cycle from when the table was read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from thunderagent.errors import StoreUnavailable
from thunderagent.pool import Pool
from thunderagent.settings import TableSettings
from thunderagent.store.backlog import Backlog, BacklogReader
from thunderagent.store.base import Applied, BatchRead, Cursor, Page, Store
from thunderagent.store.classic import Wanted
from thunderagent.store.layout import Layout
from thunderagent.task import Status, Task
from thunderagent.transitions import Transition

T = TypeVar("T")
Call = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that blocks somewhere else, and gives what it returns."""

READ_LIMIT = 20.0
"""Seconds that a pool waits for a reading before it counts as failed. The reading itself goes on; it has time-outs."""

CALL_LIMITS: Mapping[str, Any] = {"connect_timeout": 3.0, "read_timeout": 5.0, "attempts": 2, "connections": 4}
"""Limits of one call to DynamoDB. A poll comes again in seconds, so there is no use in trying for long."""


class ReadTimedOut(StoreUnavailable, TimeoutError):
    """The table has not been read in time. Nothing is known about its backlog."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a pool asks of its table: tasks to count up to, the queue and types that it claims, and the readings it shares.

    ``poll``: seconds between two readings; one that is younger and that the pool has not had yet is as good as a new one.
    """

    settings: TableSettings
    needed: int
    task_types: frozenset[str]
    queue: str
    identity: str
    poll: float


@dataclass(frozen=True, slots=True)
class Reading:
    """A backlog, and the monotonic second at which its reading began."""

    backlog: Backlog
    began: float


class Readings:
    """All tables that pools name. ``open_store`` opens one of them, ``now`` gives monotonic seconds."""

    def __init__(
        self, open_store: Callable[[TableSettings], Store], call: Call, now: Callable[[], float], rng: random.Random
    ) -> None:
        self._open_store = open_store
        self._call = call
        self._now = now
        self._rng = rng
        self._tables: dict[TableSettings, _Table] = {}
        self._table_of: dict[str, TableSettings] = {}

    async def read(self, uid: str, ask: Ask) -> Reading:
        """The backlog of the pool with this uid. Raises a StoreError; an error is never a zero."""
        if self._table_of.get(uid) not in {None, ask.settings}:
            self.forget(uid)
        self._table_of[uid] = ask.settings
        table = self._tables.get(ask.settings)
        if table is None:
            table = self._tables[ask.settings] = _Table(self._open_store(ask.settings), self._call, self._now, self._rng)
        return await table.read(uid, ask)

    def forget(self, uid: str) -> None:
        """The pool is gone. A table that was its alone is forgotten, too."""
        settings = self._table_of.pop(uid, None)
        table = None if settings is None else self._tables[settings]
        if settings is not None and table is not None and not table.leave(uid):
            del self._tables[settings]
            table.close()

    @property
    def tables(self) -> Collection[TableSettings]:
        """The tables that are read at present."""
        return self._tables.keys()


@dataclass(slots=True)
class _Member:
    """A pool of a table: how it counts, and the last reading that it has had."""

    ask: Ask
    reader: BacklogReader
    had: int = 0


@dataclass(frozen=True, slots=True)
class _Done:
    """A reading of the table that has ended well."""

    number: int
    began: float
    backlogs: Mapping[str, Backlog]


class _Table:
    """One table and the pools that scale with it."""

    def __init__(self, store: Store, call: Call, now: Callable[[], float], rng: random.Random) -> None:
        self._store = store
        self._pages = _Pages(store)
        self._call = call
        self._now = now
        self._rng = rng
        self._members: dict[str, _Member] = {}
        self._running: asyncio.Task[_Done] | None = None
        self._latest = _Done(0, 0.0, {})
        self._number = 0

    async def read(self, uid: str, ask: Ask) -> Reading:
        member = self._join(uid, ask)
        done = self._latest
        if not self._serves(done, uid, member):
            done = await self._next()
            if uid not in done.backlogs:  # it had begun before this pool was there
                done = await self._next()
        member.had = done.number
        return Reading(done.backlogs[uid], done.began)

    def leave(self, uid: str) -> int:
        """Pools that are left."""
        self._members.pop(uid, None)
        return len(self._members)

    def close(self) -> None:
        close = getattr(self._store, "close", None)
        if close is not None:
            close()

    def _join(self, uid: str, ask: Ask) -> _Member:
        member = self._members.get(uid)
        if member is None or member.ask != ask:
            reader = BacklogReader(self._pages, self._rng, _wanted(ask), ask.queue)
            self._members[uid] = member = _Member(ask, reader, had=self._latest.number)
        return member

    def _serves(self, done: _Done, uid: str, member: _Member) -> bool:
        """Whether a reading of before will do. A pool never has one twice: two low readings in a row have to be two."""
        return done.number > member.had and uid in done.backlogs and self._now() - done.began < member.ask.poll

    async def _next(self) -> _Done:
        if self._running is None or self._running.done():
            self._number += 1
            self._running = asyncio.create_task(self._read(self._number, dict(self._members)))
            self._running.add_done_callback(_look_at)
        try:
            return await asyncio.wait_for(asyncio.shield(self._running), READ_LIMIT)
        except TimeoutError as error:
            if isinstance(error, ReadTimedOut):
                raise
            raise ReadTimedOut(f"The table has not been read within {READ_LIMIT:g} s.", operation="Query") from None

    async def _read(self, number: int, members: Mapping[str, _Member]) -> _Done:
        began = self._now()
        backlogs = await self._call(lambda: self._read_all(members))
        if self._now() - began > READ_LIMIT:
            raise ReadTimedOut(f"The table was read in {self._now() - began:.0f} s: too late to be of use.", operation="Query")
        self._latest = _Done(number, began, backlogs)
        return self._latest

    def _read_all(self, members: Mapping[str, _Member]) -> dict[str, Backlog]:
        self._pages.begin(max(member.ask.needed for member in members.values()))
        try:
            return {uid: member.reader.read(member.ask.needed) for uid, member in members.items()}
        finally:
            self._pages.pages.clear()


@dataclass(slots=True)
class _Pages:
    """A store that reads each page of the index once a reading, large enough for all who ask for it."""

    inner: Store
    needed: int = 1
    pages: dict[tuple[Any, ...], Page] = field(default_factory=dict)
    time: int | None = None

    def begin(self, needed: int) -> None:
        """Begin a new reading, whose pages have room for ``needed`` tasks."""
        self.needed, self.time = needed, None
        self.pages.clear()

    def now(self) -> int:
        if self.time is None:
            self.time = self.inner.now()
        return self.time

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        read = partial(self.inner.page, status, cursor=cursor, newest_first=newest_first)
        return self._shared((status, newest_first, _text(cursor)), read, limit)

    def layout(self) -> Layout:
        return self.inner.layout()

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        read = partial(self.inner.entries, partition, until=until, cursor=cursor)
        return self._shared((partition, until, _text(cursor)), read, limit)

    def _shared(self, key: tuple[Any, ...], read: Callable[..., Page], limit: int) -> Page:
        if key not in self.pages:
            self.pages[key] = read(limit=max(limit, self.needed))
        return self.pages[key]

    def lease_end(self, seconds: float) -> int:
        return self.inner.lease_end(seconds)

    def get(self, task_id: str) -> Task | None:
        return self.inner.get(task_id)

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        return self.inner.get_many(task_ids)

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        return self.inner.apply(transition, want_task=want_task)


def _text(cursor: Cursor | None) -> str | None:
    return None if cursor is None else repr(sorted(cursor.items(), key=str))


def table_settings(pool: Pool) -> TableSettings:
    """The pool's table, spoken to as suits a poll."""
    return TableSettings(**pool.table_settings(), **CALL_LIMITS)


def _wanted(ask: Ask) -> Wanted:
    """What the pool's agents could claim, and what they hold of whatever type: pods of before a change of types, too."""
    if not ask.task_types:
        return lambda task: True
    own = f"{ask.identity}/"
    return lambda task: (
        task.task_type in ask.task_types or (task.status is Status.RUNNING and (task.lock_owner or "").startswith(own))
    )


def _look_at(reading: asyncio.Task[_Done]) -> None:
    """Fetch an error that nobody waits for any more, or asyncio would complain of it."""
    if not reading.cancelled():
        reading.exception()
