"""When a slot is free again, and how soon it is filled.

It is free at the end of the handler, not of the write that follows, unless such writes pile up.
"""

from __future__ import annotations

import asyncio

from tests.unit.virtual import World, until
from thunderagent import AgentSettings, Router, Status
from thunderagent.errors import StoreThrottled
from thunderagent.queue import TaskQueue
from thunderagent.store.base import Applied, Cursor, Page
from thunderagent.store.memory import MemoryStore
from thunderagent.transitions import Transition

SETTINGS = AgentSettings(start_delay_min=0, start_delay_max=0, processes=1)


class NoOutcomes(MemoryStore):
    """A table that throttles each write that ends a run, until it is told otherwise."""

    throttles = True

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        if self.throttles and transition.name == "complete":
            raise StoreThrottled("Throughput exceeds the limit.", operation="UpdateItem")
        return super().apply(transition, want_task=want_task)


def test_a_slot_is_free_while_its_last_outcome_is_written_but_outcomes_do_not_pile_up() -> None:
    world = World()
    store = world.store = NoOutcomes(world.clock.now)
    queue = TaskQueue(store=store)
    for number in range(3):
        queue.enqueue({}, task_id=str(number))
    router = Router()
    router.default(lambda task: None)

    async def scenario() -> None:
        agent, _, runner = world.agent("a", SETTINGS, router)
        running = asyncio.create_task(agent.run())
        await until(lambda: len(runner.runs) == 1)
        runner.runs[0].finish()
        await until(lambda: len(runner.runs) == 2)  # with one slot, and the first outcome not written
        assert store.records()[runner.runs[0].task.task_id]["status"] == Status.RUNNING

        runner.runs[1].finish()
        await asyncio.sleep(60)
        assert len(runner.runs) == 2, "a third task began although two outcomes could not be written"

        store.throttles = False
        await until(lambda: len(runner.runs) == 3)
        runner.runs[2].finish()
        await until(lambda: all(record["status"] == Status.SUCCESS for record in store.records().values()))
        agent.stop()
        await running

    world.run(scenario)


class CountedPages(MemoryStore):
    """Counts the pages of ready tasks that were read."""

    pages = 0

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        self.pages += status is Status.PENDING
        return super().page(status, limit=limit, cursor=cursor, newest_first=newest_first)


def _pages_read_by_the_end_of_each(tasks: int) -> list[int]:
    """Have one slot run so many short tasks, and count the pages read by the end of each."""
    world = World()
    store = world.store = CountedPages(world.clock.now)
    queue = TaskQueue(store=store)
    for _ in range(tasks):
        queue.enqueue({})
    router = Router()
    router.default(lambda task: None)
    pages: list[int] = []

    async def scenario() -> None:
        agent, _, runner = world.agent("a", SETTINGS, router)
        running = asyncio.create_task(agent.run())
        while len(pages) < tasks:
            await until(lambda: len(runner.runs) > len(pages))
            await asyncio.sleep(0.1)
            pages.append(store.pages)
            runner.runs[-1].finish()
        agent.stop()
        await running

    world.run(scenario)
    return pages


def test_under_a_backlog_the_next_page_is_read_before_a_slot_comes_free() -> None:
    assert _pages_read_by_the_end_of_each(SETTINGS.batch + 2) == [1] * (SETTINGS.batch - 1) + [2, 2, 3]


def test_without_a_backlog_nothing_is_read_while_no_slot_is_free() -> None:
    assert _pages_read_by_the_end_of_each(1) == [1]
