"""The agent's own loop on a virtual clock: rates, outages, drains, and the moments at which two things happen at once."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from tests.unit.virtual import ScriptedRun, World, until
from thunderagent import AgentSettings, Router, RunningTask, Status
from thunderagent.agent.agent import LAST_WRITES
from thunderagent.agent.claims import Claims
from thunderagent.agent.decisions import StopReason
from thunderagent.agent.table import Contact
from thunderagent.errors import StoreRejected, StoreThrottled, StoreUnavailable
from thunderagent.store.finder import Finder
from thunderagent.store.layout import CLASSIC, Layout, dispatch_layout
from thunderagent.testing import Harness
from thunderagent.transitions import unblock

SETTINGS = AgentSettings(start_delay_min=0, start_delay_max=0, processes=4)


@pytest.fixture
def router() -> Router:
    router = Router()
    router.default(lambda task: None)
    return router


# --- slots and rates ------------------------------------------------------------------------------------------------------


def test_a_rate_holds_over_any_stretch_of_time() -> None:
    router = Router()
    began: list[float] = []

    @router.task("limited", rate=2)
    def limited(task: RunningTask) -> None:
        began.append(harness.clock.now())

    harness = Harness(router, settings=replace(SETTINGS, batch=30))
    for _ in range(20):
        harness.queue.enqueue({}, task_type="limited")
    harness.run_until_idle()

    # Two may start at once, and then two a second: in any stretch no more than two beyond what its length allows.
    assert len(began) == 20
    for first in range(20):
        for last in range(first, 20):
            assert last - first + 1 <= 2 + 2 * (began[last] - began[first]) + 1e-6


def test_a_type_without_a_rate_is_not_held_up_by_one_that_has_one() -> None:
    router = Router()
    order: list[str | None] = []
    router.task("limited", rate=0.01)(lambda task: order.append(task.task_type))
    router.task("free")(lambda task: order.append(task.task_type))
    harness = Harness(router, settings=SETTINGS)
    for _ in range(5):
        harness.queue.enqueue({}, task_type="limited")
    for _ in range(5):
        harness.queue.enqueue({}, task_type="free")
    harness.run_for(60)

    assert sorted(filter(None, order)) == ["free"] * 5 + ["limited"]


@pytest.mark.parametrize(
    ("own", "longest"),
    [
        pytest.param({}, 20, id="the agent's own policy"),
        pytest.param({"retry_cap": 5}, 5, id="a type with a lower cap"),
        pytest.param({"retry_base": 1, "retry_cap": 1}, 1, id="a type that retries soon"),
    ],
)
def test_a_retry_waits_as_its_type_says(own: dict[str, float], longest: float) -> None:
    router = Router()
    waits: list[float] = []

    @router.task("failing", **own)
    def failing(task: RunningTask) -> None:
        raise ValueError

    harness = Harness(router, settings=replace(SETTINGS, retry_base=10, retry_cap=20))
    for _ in range(20):
        harness.queue.enqueue({}, task_type="failing", max_retry=1)
    harness.run_for(0.5)
    for task in harness.queue.tasks(Status.PENDING):
        waits.append((task.lock_time or 0) - task.updated_at)

    assert waits
    assert max(waits) <= longest + 1  # the table's times are whole seconds
    assert min(waits) < max(waits) or longest == 1


# --- what was tried already -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [CLASSIC, dispatch_layout(shards=1)], ids=["classic", "dispatch"])
@pytest.mark.parametrize("change", ["unblocked", "cancelled and redriven"])
def test_a_task_that_changed_within_the_second_of_its_last_look_is_tried_again_at_once(
    router: Router, layout: Layout, change: str
) -> None:
    world = World()
    world.store.change_layout(layout)
    claims = Claims(SETTINGS, world.table(), world.events(), random.Random(0))
    depends_on = ["first"] if change == "unblocked" else []
    world.queue.enqueue({}, task_id="t", depends_on=depends_on, check_dependencies=False)
    finder = Finder(world.store, random.Random(0))
    (seen,) = finder.poll(10, lambda task: True, world.store.now()).tasks
    claims.remember(seen)
    assert claims.tried_lately(seen)

    if change == "unblocked":
        assert world.store.apply(unblock(seen, now=world.store.now())).ok
    else:
        world.queue.cancel("t")
        world.queue.redrive("t")
    (changed,) = finder.poll(10, lambda task: True, world.store.now()).tasks

    assert changed.lock_time == seen.lock_time, "all within one second"
    assert not claims.tried_lately(changed)


# --- the dispatch layout --------------------------------------------------------------------------------------------------


def test_renewals_move_an_entry_only_where_others_would_look_at_it_before_the_next_one(router: Router) -> None:
    world = World()
    world.store.change_layout(dispatch_layout(shards=1))
    world.queue.enqueue({}, task_id="t")
    ends: list[float | None] = []
    looks: list[float | None] = []

    async def scenario() -> None:
        settings = AgentSettings(start_delay_min=0, start_delay_max=0, lease=300, renew=60)
        agent, _, runner = world.agent("A", settings, router)
        running = asyncio.create_task(agent.run())
        await until(lambda: bool(runner.runs))
        for _ in range(590):
            await asyncio.sleep(1)
            (entry,) = world.store.entries("default!0", limit=1).tasks
            task = world.queue.get("t")
            assert world.store.now() < (entry.lock_time or 0) <= (task.lock_time or 0)
            ends.append(task.lock_time)
            looks.append(entry.lock_time)
        running.cancel()

    world.run(scenario)

    assert len(set(ends)) - 1 >= 9, "renewals"
    assert len(set(looks)) - 1 == 2, "of which so many wrote to the index"


# --- what a handler enqueues ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ahead", "tried_after"), [(0, 0), (1, 1), (2, 2), (3, None)])
def test_a_task_of_a_clock_that_is_ahead_is_tried_once_it_is_due_here(
    router: Router, ahead: int, tried_after: int | None
) -> None:
    world = World()
    tried: list[float] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        settings = replace(SETTINGS, wait_busy=600, wait_quiet=600, wait_idle=600)
        agent, _, _ = world.agent("A", settings, router, lambda run: tried.append(loop.time()))
        running = asyncio.create_task(agent.run())
        await asyncio.sleep(10)  # its only poll for ten minutes is over
        world.queue.enqueue({}, task_id="t", not_before=world.store.now() + ahead)
        hinted_at = loop.time()
        agent.hint("t")
        await asyncio.sleep(60)
        assert [at - hinted_at for at in tried] == ([] if tried_after is None else [pytest.approx(tried_after, abs=0.1)])
        running.cancel()

    world.run(scenario)


# --- outages ----------------------------------------------------------------------------------------------------------------


def test_after_an_outage_that_hit_every_agent_each_goes_on_with_what_it_held(router: Router) -> None:
    world = World()
    ids = [world.queue.enqueue({}).task_id for _ in range(8)]

    async def scenario() -> None:
        parts = [world.agent(name, SETTINGS, router) for name in "AB"]
        running = [asyncio.create_task(agent.run()) for agent, _, _ in parts]
        await until(lambda: sum(agent.busy for agent, _, _ in parts) == 8)
        tokens = {task_id: world.queue.get(task_id).lock_token for task_id in ids}
        for _, wire, _ in parts:
            wire.cut = True
        await asyncio.sleep(3 * SETTINGS.lease)
        runs = [run for _, _, runner in parts for run in runner.runs]
        assert all(run.lost and not run.stopped for run in runs)

        for _, wire, _ in parts:
            wire.cut = False
        await asyncio.sleep(SETTINGS.lease)

        assert {task_id: world.queue.get(task_id).lock_token for task_id in ids} == tokens
        assert not any(run.lost or run.stopped for run in runs)
        for run in runs:
            run.finish()
        for agent, _, _ in parts:
            agent.stop()
        await asyncio.gather(*running)

    world.run(scenario)
    assert {world.queue.get(task_id).status for task_id in ids} == {Status.SUCCESS}
    assert all(world.queue.get(task_id).retry_count == 0 for task_id in ids)


def test_an_agent_that_alone_lost_the_table_loses_its_tasks_to_one_that_did_not(router: Router) -> None:
    world = World()
    world.queue.enqueue({}, task_id="t")

    async def scenario() -> None:
        cut_off, wire, first = world.agent("A", SETTINGS, router)
        other, _, second = world.agent("B", SETTINGS, router)
        tasks = [asyncio.create_task(cut_off.run())]
        await until(lambda: cut_off.busy == 1)
        wire.cut = True
        tasks.append(asyncio.create_task(other.run()))
        await until(lambda: other.busy == 1)
        wire.cut = False
        await until(lambda: first.runs[0].stopped)
        assert not second.runs[0].stopped

        second.runs[0].finish({"by": "B"})
        cut_off.stop()
        other.stop()
        await asyncio.gather(*tasks)

    world.run(scenario)
    task = world.queue.get("t")
    assert (task.result, task.retry_count) == ({"by": "B"}, 1)


# --- drains -----------------------------------------------------------------------------------------------------------------


def test_a_drain_without_a_table_ends_and_leaves_the_task_to_the_end_of_its_lease(router: Router) -> None:
    world = World()
    world.queue.enqueue({}, task_id="t")
    settings = replace(SETTINGS, drain=30)

    async def scenario() -> float:
        agent, wire, runner = world.agent("A", settings, router)
        running = asyncio.create_task(agent.run())
        await until(lambda: agent.busy == 1)
        wire.cut = True
        began = asyncio.get_running_loop().time()
        agent.stop()
        await running
        assert runner.runs[0].stopped
        return asyncio.get_running_loop().time() - began

    took = world.run(scenario)

    assert took <= settings.drain + settings.stop_grace + LAST_WRITES + 1
    assert world.queue.get("t").status is Status.RUNNING


def test_a_drain_releases_at_once_what_waits_for_a_process(router: Router) -> None:
    world = World()
    world.queue.enqueue({}, task_id="t")

    async def scenario() -> float:
        agent, _, runner = world.agent("A", SETTINGS, router)
        runner.free.clear()
        running = asyncio.create_task(agent.run())
        await until(lambda: world.queue.get("t").status is Status.RUNNING)
        began = asyncio.get_running_loop().time()
        agent.stop()
        await running
        return asyncio.get_running_loop().time() - began

    took = world.run(scenario)

    task = world.queue.get("t")
    assert took < 1
    assert (task.status, task.retry_count, task.release_count) == (Status.PENDING, 0, 1)


def test_a_stop_that_comes_while_a_run_begins_is_not_missed(router: Router) -> None:
    """The reason to stop is there before anybody waits for it."""
    world = World()
    world.queue.enqueue({}, task_id="t")

    async def scenario() -> None:
        def cancelled(run: ScriptedRun) -> None:
            for held in agent._held.values():
                held.stop(StopReason.CANCELLED)

        agent, _, runner = world.agent("A", SETTINGS, router, cancelled)
        running = asyncio.create_task(agent.run())
        await until(lambda: bool(runner.runs) and runner.runs[0].stopped, 60)
        agent.stop()
        await running

    world.run(scenario)


def test_a_process_that_was_paused_looks_for_expired_leases_only_after_a_while(router: Router) -> None:
    """The whole machine may have been asleep, and with it the agents whose leases have ended meanwhile."""
    world = World()
    world.queue.enqueue({}, task_id="t")

    async def scenario() -> None:
        agent, wire, runner = world.agent("A", SETTINGS, router)
        other, _, _ = world.agent("B", SETTINGS, router)
        tasks = [asyncio.create_task(agent.run())]
        await until(lambda: agent.busy == 1)
        tasks.append(asyncio.create_task(other.run()))
        await asyncio.sleep(1)
        world.clock.advance(3 * SETTINGS.lease)  # nothing ran meanwhile, and A's network comes back a little later
        wire.cut = True
        await asyncio.sleep(5)
        wire.cut = False
        await asyncio.sleep(SETTINGS.renew)
        assert not runner.runs[0].stopped
        runner.runs[0].finish()
        for each in (agent, other):
            each.stop()
        await asyncio.gather(*tasks)

    world.run(scenario)
    assert world.queue.get("t").retry_count == 0


# --- contact ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("silence", "allowed"),
    [
        pytest.param(59.0, True, id="a break shorter than a renewal interval changes nothing"),
        pytest.param(61.0, False, id="after a longer one nothing is taken over at once"),
    ],
)
def test_contact_after_a_break(silence: float, allowed: bool) -> None:
    now = 0.0
    contact = Contact(lambda: now, 60.0)
    contact.good()
    contact.bad()
    assert not contact.may_take_over
    now = silence
    contact.good()

    assert contact.may_take_over is allowed
    now += 60.0
    assert contact.may_take_over


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        pytest.param(StoreThrottled(""), False, id="a throttled call has reached the table"),
        pytest.param(StoreRejected(""), False, id="a refused call has reached the table"),
        pytest.param(StoreUnavailable(""), True, id="a call without a reply has not"),
    ],
)
def test_what_counts_as_contact(router: Router, error: Exception, broken: bool) -> None:
    world = World()

    async def scenario() -> bool:
        agent, _, _ = world.agent("A", SETTINGS, router)
        table = agent._table
        with pytest.raises(type(error)):
            await table.do(fails)
        return table.contact.broken

    def fails() -> None:
        raise error

    assert world.run(scenario) is broken
