"""Every pool has a task, and what has gone leaves none: events and listings, late, double, and missing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.cluster import Object
from controller.cycle import PoolCycle, Report
from controller.errors import NotLeading
from controller.registry import Cycles, Limits, Registry
from controller.tell import tell
from controller.watchdog import Watchdog
from tests.controller.fakecluster import unavailable
from tests.controller.world import World, spec
from thunderagent.metrics import ControllerMetrics
from thunderagent.testing.loop import VirtualTimeLoop

LIMITS = Limits(cycle=60, stall=60, listing=30)


class Served:
    """A world whose pools are served by a registry, on the world's clock."""

    def __init__(self) -> None:
        self.world = World()
        self.metrics = ControllerMetrics(CollectorRegistry())
        self.watchdog = Watchdog(self.world.clock.since_start)
        self.reports: list[tuple[float, str]] = []
        self.is_lost = False
        self.tell: Callable[[Object, Report, float], None] = self._tell
        self.make: Callable[[str], Cycles] = partial(PoolCycle, around=self.world.around)

    def run(self, body: Callable[[Registry], Coroutine[Any, Any, None]]) -> None:
        clock = self.world.clock
        with asyncio.Runner(loop_factory=partial(VirtualTimeLoop, clock.since_start, clock.advance)) as runner:
            runner.run(self._with_registry(body))

    async def _with_registry(self, body: Callable[[Registry], Coroutine[Any, Any, None]]) -> None:
        registry = Registry(
            self.world.cluster,
            lambda uid: self.make(uid),
            self.watchdog,
            LIMITS,
            random.Random(0),
            tell=lambda resource, report, seconds: self.tell(resource, report, seconds),
            gone=lambda pool: self.metrics.forget(pool["metadata"]["namespace"], pool["metadata"]["name"]),
            lost=self._lose,
        )
        listing = asyncio.create_task(registry.list_forever())
        settling = asyncio.create_task(self._settle())
        try:
            await body(registry)
        finally:
            listing.cancel()
            settling.cancel()
            await registry.stop()

    def _tell(self, resource: Object, report: Report, seconds: float) -> None:
        self.reports.append((self.world.clock.since_start(), resource["metadata"]["name"]))
        tell(self.metrics, resource, report, seconds)

    def _lose(self) -> None:
        self.is_lost = True

    async def _settle(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.world.cluster.settle()

    def cycles_of(self, name: str) -> list[float]:
        return [at for at, who in self.reports if who == name]


def test_a_pool_that_no_event_told_of_is_found_by_the_listing() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        await asyncio.sleep(5)
        served.world.cluster.create_pool(spec())
        served.world.enqueue(2)
        await asyncio.sleep(35)

    served.run(body)
    assert served.world.cluster.replicas() == 2


def test_a_pool_of_an_event_is_served_at_once_and_then_every_poll() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        await asyncio.sleep(1)
        registry.on_event("ADDED", served.world.cluster.create_pool(spec(pollSeconds=5)))
        await asyncio.sleep(21)

    served.run(body)
    assert served.cycles_of("reports") == [1.0, 6.0, 11.0, 16.0, 21.0]


def test_an_edit_is_followed_at_once_and_a_status_of_our_own_is_not() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        registry.on_event("ADDED", served.world.cluster.create_pool(spec(pollSeconds=300)))
        await asyncio.sleep(10)
        registry.on_event("MODIFIED", served.world.cluster.pool_object())
        await asyncio.sleep(10)
        served.world.cluster.edit_pool(lambda spec: spec["scaling"].update(minReplicas=2))
        registry.on_event("MODIFIED", served.world.cluster.pool_object())
        await asyncio.sleep(1)

    served.run(body)
    assert served.cycles_of("reports") == [0.0, 20.0]
    assert served.world.cluster.replicas() == 2


def test_a_pool_that_has_gone_leaves_no_task_no_series_and_no_memory() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        pool = served.world.cluster.create_pool(spec())
        served.world.cluster.create_pool(spec(), name="other")
        await asyncio.sleep(10)
        assert b'pool="reports"' in generate_latest(served.metrics.registry)
        before = len(asyncio.all_tasks())
        served.world.cluster.delete_pool()
        registry.on_event("DELETED", pool)
        await asyncio.sleep(0.1)
        assert len(asyncio.all_tasks()) == before - 1
        assert registry.uids == {served.world.cluster.pool_object("other")["metadata"]["uid"]}
        series = generate_latest(served.metrics.registry)
        assert b'pool="reports"' not in series
        assert b'pool="other"' in series

    served.run(body)
    assert len(served.world.readings._table_of) == 0
    assert served.world.readings.tables == set()


def test_a_deletion_that_no_event_told_of_is_found_by_the_listing() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        served.world.cluster.create_pool(spec())
        await asyncio.sleep(10)
        served.world.cluster.delete_pool()
        await asyncio.sleep(30)
        assert registry.uids == set()
        assert served.watchdog.problem() is None

    served.run(body)


def test_a_listing_that_fails_removes_nobody() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        served.world.cluster.create_pool(spec())
        await asyncio.sleep(10)
        served.world.cluster.errors["pools"] = unavailable(20)
        await asyncio.sleep(120)
        assert len(registry.uids) == 1

    served.run(body)


def test_a_pool_that_came_while_the_listing_was_under_way_stays() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        await asyncio.sleep(10)
        real = served.world.cluster.pools

        async def slow() -> list[Object]:
            listed = await real()
            await asyncio.sleep(5)
            return listed

        served.world.cluster.pools = slow  # type: ignore[method-assign]
        await asyncio.sleep(22)
        registry.on_event("ADDED", served.world.cluster.create_pool(spec()))
        await asyncio.sleep(10)
        assert len(registry.uids) == 1

    served.run(body)


def test_a_pause_that_came_while_the_listing_was_under_way_holds() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        served.world.cluster.create_pool(spec())
        await asyncio.sleep(10)
        real = served.world.cluster.pools

        async def slow() -> list[Object]:
            listed = await real()
            await asyncio.sleep(5)
            return listed

        served.world.cluster.pools = slow  # type: ignore[method-assign]
        await asyncio.sleep(22)
        served.world.cluster.annotate_pool(paused="true")
        registry.on_event("MODIFIED", served.world.cluster.pool_object())
        await asyncio.sleep(6)
        served.world.enqueue(5)
        await asyncio.sleep(20)

    served.run(body)
    assert served.world.cluster.replicas() == 0


def test_a_pool_made_anew_under_its_old_name_is_another_one() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        first = served.world.cluster.create_pool(spec())
        await asyncio.sleep(10)
        served.world.cluster.delete_pool()
        second = served.world.cluster.create_pool(spec())
        await asyncio.sleep(40)
        assert registry.uids == {second["metadata"]["uid"]} != {first["metadata"]["uid"]}

    served.run(body)
    (owner,) = served.world.cluster.manifest()["metadata"]["ownerReferences"]
    assert owner["uid"] == served.world.cluster.pool_object()["metadata"]["uid"]


def test_a_pool_that_is_being_deleted_is_left_in_peace() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        pool = served.world.cluster.create_pool(spec(), deletionTimestamp="2026-12-01T00:00:00Z", finalizers=["other/thing"])
        registry.on_event("ADDED", pool)
        await asyncio.sleep(60)
        assert registry.uids == set()

    served.run(body)
    assert not served.world.cluster.has_deployment()


class Dying:
    """Cycles that die of a mistake of ours, but for the first of some."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.runs = 0

    async def run(self, resource: Object) -> Report:
        self.runs += 1
        await asyncio.sleep(0)
        raise self.error

    def forget(self) -> None:
        pass


def test_a_task_that_dies_is_begun_again_and_takes_no_other_with_it() -> None:
    served = Served()
    dying = Dying(RuntimeError("a mistake"))
    real = served.make
    bad = served.world.cluster.create_pool(spec(), name="bad")["metadata"]["uid"]
    served.world.cluster.create_pool(spec(), name="good")
    served.make = lambda uid: dying if uid == bad else real(uid)

    async def body(registry: Registry) -> None:
        for _ in range(600):
            await asyncio.sleep(1)
            assert served.watchdog.problem() is None

    served.run(body)
    assert dying.runs > 10
    assert len(served.cycles_of("good")) > 100


def test_a_metric_that_cannot_be_set_ends_no_task(caplog: pytest.LogCaptureFixture) -> None:
    """The windows and cooldowns that a pool's cycles remember would be lost with it."""
    served = Served()
    made: list[str] = []

    def make(uid: str) -> Cycles:
        made.append(uid)
        return PoolCycle(uid, served.world.around)

    def fail(resource: Object, report: Report, seconds: float) -> None:
        served.reports.append((served.world.clock.since_start(), resource["metadata"]["name"]))
        raise ValueError("Incorrect label count")

    served.make, served.tell = make, fail

    async def body(registry: Registry) -> None:
        registry.on_event("ADDED", served.world.cluster.create_pool(spec(pollSeconds=5)))
        await asyncio.sleep(21)

    served.run(body)
    assert len(served.cycles_of("reports")) == 5
    assert len(made) == 1
    assert [record.message for record in caplog.records if record.exc_info] == ["a cycle could not be told"]


def test_a_task_that_may_no_longer_write_ends_the_process() -> None:
    served = Served()
    served.make = lambda uid: Dying(NotLeading("no"))
    served.world.cluster.create_pool(spec())

    async def body(registry: Registry) -> None:
        await asyncio.sleep(10)

    served.run(body)
    assert served.is_lost


def test_a_leader_that_changes_in_the_middle_of_a_step_writes_nothing_more() -> None:
    """The old leader has decided; before it writes, its lease ends. The new one decides from what is there."""
    world = World()
    world.grown(3)
    resource = world.cluster.pool_object()
    old, new = world.cycle_of("old"), PoolCycle(resource["metadata"]["uid"], world.around)
    world.enqueue(8)

    def fence() -> None:
        raise NotLeading("another one leads")

    async def body() -> None:
        world.cluster.fence = fence
        try:
            await old.run(resource)
        except NotLeading:
            pass
        else:
            raise AssertionError("it must not go on")
        world.cluster.fence = lambda: None
        assert world.cluster.replicas() == 3
        await new.run(resource)

    asyncio.run(body())
    assert world.cluster.replicas() == 8


def test_an_outage_of_everything_is_no_reason_to_restart() -> None:
    """ARC#3204, #4432 the other way round: liveness is about the operator, not about what it talks to."""
    served = Served()

    async def body(registry: Registry) -> None:
        served.world.cluster.create_pool(spec())
        await asyncio.sleep(10)
        served.world.cluster.errors["*"] = unavailable(10_000)
        for _ in range(900):
            await asyncio.sleep(1)
            assert served.watchdog.problem() is None
        served.world.cluster.errors.clear()
        served.world.enqueue(4)
        await asyncio.sleep(90)

    served.run(body)
    assert served.world.cluster.replicas() == 4


def test_a_cycle_that_hangs_is_given_up_and_told() -> None:
    served = Served()

    async def body(registry: Registry) -> None:
        served.world.cluster.create_pool(spec())
        await asyncio.sleep(10)
        real = served.world.cluster.deployment

        async def hanging(namespace: str, name: str) -> Object | None:
            await asyncio.sleep(10_000)
            return await real(namespace, name)

        served.world.cluster.deployment = hanging  # type: ignore[method-assign]
        await asyncio.sleep(120)
        assert served.watchdog.problem() is None
        served.world.cluster.deployment = real  # type: ignore[method-assign]
        assert served.world.ready() == ("False", "CycleTimedOut")
        served.world.enqueue(2)
        await asyncio.sleep(90)

    served.run(body)
    assert served.world.cluster.replicas() == 2


def test_a_task_that_hangs_for_good_makes_the_operator_unhealthy() -> None:
    served = Served()

    class Hanging(Dying):
        async def run(self, resource: Object) -> Report:
            await asyncio.sleep(1e9)
            raise self.error

    served.make = lambda uid: Hanging(RuntimeError())
    served.world.cluster.create_pool(spec())

    async def body(registry: Registry) -> None:
        await asyncio.sleep(400)
        problem = served.watchdog.problem()
        assert problem is not None
        assert "overdue" in problem

    served.run(body)
