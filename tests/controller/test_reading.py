"""Reading backlogs: one read a poll for all pools of a table, and a table that hangs holds up its own pools alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from controller.reading import READ_LIMIT, Ask, Readings, ReadTimedOut
from tests.builders import NOW, foreign_record, put_pending
from tests.controller.world import Table
from tests.unreliable import UnreliableStore
from thunderagent.errors import StoreUnavailable
from thunderagent.settings import TableSettings
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status
from thunderagent.testing.harness import Clock
from thunderagent.testing.loop import VirtualTimeLoop

ASK = Ask(TableSettings(), needed=100, task_types=frozenset(), queue="default", identity="team.reports", poll=5)


class Room:
    """Tables in memory by name, and readings of them, on a clock of their own. ``slow`` are seconds that a table takes."""

    def __init__(self) -> None:
        self.clock = Clock(NOW)
        self.tables: dict[str, Table] = {}
        self.slow: dict[str, float] = {}
        self.opened: list[str] = []
        self.readings = Readings(self._open, self._call, self.clock.since_start, random.Random(0))

    def table(self, name: str = "TaskTable") -> Table:
        return self.tables.setdefault(name, Table(MemoryStore(self.clock.now)))

    def put(self, count: int, name: str = "TaskTable", **attributes: Any) -> None:
        inner = self.table(name).inner
        assert isinstance(inner, MemoryStore)
        put_pending(inner, *(f"{attributes.get('taskType', 't')}-{number}" for number in range(count)), **attributes)

    def run(self, body: Callable[[], Any]) -> None:
        with asyncio.Runner(loop_factory=partial(VirtualTimeLoop, self.clock.since_start, self.clock.advance)) as runner:
            runner.run(body())

    def _open(self, settings: TableSettings) -> UnreliableStore:
        self.opened.append(settings.table)
        return self.table(settings.table)

    async def _call(self, function: Callable[[], Any]) -> Any:
        await asyncio.sleep(max(self.slow.values(), default=0.0))
        return function()


def ask(**changes: Any) -> Ask:
    table = changes.pop("table", "TaskTable")
    return replace(ASK, settings=TableSettings(table=table), **changes)


def test_two_pools_of_one_table_share_a_read_a_poll() -> None:
    room = Room()
    room.put(7, taskType="report")
    room.put(5, taskType="mail")

    async def pool(uid: str, begins: float, asked: Ask, seen: list[int]) -> None:
        await asyncio.sleep(begins)
        for _ in range(20):
            reading = await room.readings.read(uid, asked)
            seen.append(reading.backlog.ready)
            await asyncio.sleep(asked.poll - (room.clock.since_start() - reading.began))

    async def body() -> None:
        reports: list[int] = []
        mails: list[int] = []
        await asyncio.gather(
            pool("a", 0, ask(task_types=frozenset({"report"})), reports),
            pool("b", 2, ask(task_types=frozenset({"mail"}), needed=10), mails),
        )
        assert (set(reports), set(mails)) == ({7}, {5})
        assert len(reports) == len(mails) == 20

    room.run(body)
    assert room.opened == ["TaskTable"]
    assert room.table().pages <= 2 * 22  # one page of each partition, once a poll; the second pool had to fall into step


def test_no_pool_has_one_reading_twice() -> None:
    """Two low readings in a row have to be two readings."""
    room = Room()

    async def body() -> None:
        first = await room.readings.read("a", ask())
        await asyncio.sleep(1)
        second = await room.readings.read("a", ask())
        assert second.began == first.began + 1

    room.run(body)


def test_a_pool_that_comes_while_its_table_is_read_waits_for_a_reading_with_itself() -> None:
    room = Room()
    room.put(3)
    room.slow["TaskTable"] = 2

    async def late() -> None:
        await asyncio.sleep(1)
        assert (await room.readings.read("b", ask())).backlog.ready == 3

    async def body() -> None:
        await asyncio.gather(room.readings.read("a", ask()), late())

    room.run(body)


def test_an_error_is_everybodys_who_shares_the_table_and_is_read_anew() -> None:
    room = Room()
    room.table().error = StoreUnavailable("no reply")

    async def body() -> None:
        results = await asyncio.gather(*(room.readings.read(uid, ask()) for uid in "ab"), return_exceptions=True)
        assert [type(result) for result in results] == [StoreUnavailable, StoreUnavailable]
        room.table().error = None
        assert (await room.readings.read("a", ask())).backlog.ready == 0

    room.run(body)


def test_a_table_that_hangs_is_a_failed_read_and_no_second_call() -> None:
    room = Room()
    room.slow["TaskTable"] = 1000

    async def body() -> None:
        for _ in range(3):
            began = room.clock.since_start()
            with pytest.raises(ReadTimedOut):
                await room.readings.read("a", ask())
            assert room.clock.since_start() - began == pytest.approx(READ_LIMIT)

    room.run(body)
    assert room.table().pages == 0


def test_a_reading_that_comes_too_late_is_none() -> None:
    room = Room()
    room.slow["TaskTable"] = READ_LIMIT + 5

    async def body() -> None:
        for _ in range(2):
            with pytest.raises(ReadTimedOut):
                await room.readings.read("a", ask())
        room.slow.clear()
        assert (await room.readings.read("a", ask())).began == room.clock.since_start()

    room.run(body)


def test_what_a_pools_own_agents_run_counts_whatever_its_type() -> None:
    """Pods of before a change of taskTypes are busy, too."""
    room = Room()
    inner = room.table().inner
    assert isinstance(inner, MemoryStore)
    for owner in ("team.reports/p/u-x", "team.other/p/u-x"):
        inner.put_record(foreign_record(owner, status="RUNNING", lockOwner=owner, lockTime=NOW + 300, taskType="old"))

    async def body() -> None:
        reading = await room.readings.read("a", ask(task_types=frozenset({"new"})))
        assert reading.backlog.running == {"team.reports/p/u-x": 1}

    room.run(body)


def test_a_table_that_no_pool_names_any_more_is_forgotten() -> None:
    room = Room()

    async def body() -> None:
        await room.readings.read("a", ask())
        await room.readings.read("b", ask())
        room.readings.forget("a")
        assert len(room.readings.tables) == 1
        await room.readings.read("b", ask(table="Other"))
        assert [settings.table for settings in room.readings.tables] == ["Other"]
        room.readings.forget("b")
        room.readings.forget("never seen")
        assert not room.readings.tables

    room.run(body)


def test_a_change_of_what_is_needed_is_followed() -> None:
    room = Room()
    room.put(50)

    async def body() -> None:
        assert (await room.readings.read("a", ask(needed=10))).backlog.cut
        assert not (await room.readings.read("a", ask(needed=100))).backlog.cut

    room.run(body)


def test_reads_are_of_the_two_partitions_alone() -> None:
    room = Room()
    asked: list[Status] = []
    table = room.table()
    real = table.page

    def page(status: Status, **arguments: Any) -> Any:
        asked.append(status)
        return real(status, **arguments)

    table.page = page  # type: ignore[method-assign]

    async def body() -> None:
        await room.readings.read("a", ask())

    room.run(body)
    assert asked == [Status.PENDING, Status.RUNNING]
