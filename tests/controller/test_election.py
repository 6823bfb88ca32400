"""Who leads: one at a time, whatever fails, and another one soon."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from controller.cluster import WRITE_TIMEOUT
from controller.election import DEADLINE, DURATION, Candidacy, Election
from controller.errors import ClusterUnavailable, NotLeading
from tests.builders import NOW
from tests.controller.fakecluster import FakeCluster
from thunderagent.testing.harness import Clock
from thunderagent.testing.loop import VirtualTimeLoop

Body = Callable[["Council"], Coroutine[Any, Any, None]]


class Council:
    """Replicas that stand for one Lease, on a clock of their own. ``led`` are (second, name), from first to last."""

    def __init__(self) -> None:
        self.clock = Clock(NOW)
        self.cluster = FakeCluster(self.clock.now)
        self.down: set[str] = set()
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.elections: dict[str, Election] = {}
        self.led: list[tuple[float, str]] = []

    def stand(self, name: str) -> Election:
        leases = _Unreliable(self.cluster, lambda: name in self.down)
        candidacy = Candidacy("operators", "operator", name)
        election = Election(leases, candidacy, self.clock.since_start, self.clock.now, random.Random(name))
        self.elections[name] = election
        self.tasks[name] = asyncio.create_task(self._serve(name, election))
        return election

    def kill(self, name: str) -> None:
        self.tasks.pop(name).cancel()
        del self.elections[name]

    def leaders(self) -> list[str]:
        return [name for name, election in self.elections.items() if election.is_leading]

    async def _serve(self, name: str, election: Election) -> None:
        await election.acquire()
        self.led.append((self.clock.since_start(), name))
        await election.keep()
        self.led.append((self.clock.since_start(), f"not {name}"))


class _Unreliable:
    """Leases that cannot be reached while ``is_down`` says so."""

    def __init__(self, cluster: FakeCluster, is_down: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._is_down = is_down

    async def lease(self, namespace: str, name: str) -> Any:
        await self._reach()
        return await self._cluster.lease(namespace, name)

    async def create_lease(self, body: Any) -> Any:
        await self._reach()
        return await self._cluster.create_lease(body)

    async def replace_lease(self, body: Any) -> Any:
        await self._reach()
        return await self._cluster.replace_lease(body)

    async def _reach(self) -> None:
        if self._is_down():
            await asyncio.sleep(WRITE_TIMEOUT)
            raise ClusterUnavailable("no answer")


def held(body: Body) -> Council:
    """Run a test's body on virtual time; the council afterwards."""
    council = Council()
    with asyncio.Runner(loop_factory=partial(VirtualTimeLoop, council.clock.since_start, council.clock.advance)) as runner:
        runner.run(body(council))
    return council


async def watched(council: Council, seconds: float) -> None:
    """Let time pass; at no moment may two lead."""
    for _ in range(int(seconds * 4)):
        await asyncio.sleep(0.25)
        assert len(council.leaders()) <= 1


def test_one_leads_and_goes_on_leading() -> None:
    async def body(council: Council) -> None:
        council.stand("a")
        council.stand("b")
        await watched(council, 300)

    assert len(held(body).led) == 1


def test_a_leader_that_is_killed_is_replaced_within_20_seconds() -> None:
    async def body(council: Council) -> None:
        council.stand("a")
        await watched(council, 10)
        council.stand("b")
        await watched(council, 10)
        council.kill("a")
        await watched(council, 20)

    council = held(body)
    assert council.led[-1][1] == "b"
    assert council.led[-1][0] <= 40


def test_a_leader_that_leaves_is_replaced_at_once() -> None:
    async def body(council: Council) -> None:
        election = council.stand("a")
        await watched(council, 10)
        council.stand("b")
        await watched(council, 5)
        council.tasks["a"].cancel()
        await election.release()
        await watched(council, 2)

    council = held(body)
    assert [name for _, name in council.led] == ["a", "b"]


def test_a_leader_that_is_cut_off_stops_before_another_one_begins() -> None:
    async def body(council: Council) -> None:
        council.stand("a")
        await watched(council, 10)
        council.stand("b")
        await watched(council, 10)
        council.down.add("a")
        await watched(council, 40)

    council = held(body)
    assert [name for _, name in council.led] == ["a", "not a", "b"]
    assert council.led[2][0] - council.led[1][0] >= 0


def test_a_write_that_was_just_begun_has_ended_before_another_one_leads() -> None:
    assert DEADLINE + WRITE_TIMEOUT < DURATION


def test_an_api_server_that_is_away_ends_the_leadership_and_a_new_process_leads_again() -> None:
    async def body(council: Council) -> None:
        election = council.stand("a")
        await watched(council, 10)
        council.down.add("a")
        await watched(council, 300)
        with pytest.raises(NotLeading):
            election.check()
        council.down.clear()
        council.stand("a-again")
        await watched(council, 20)

    council = held(body)
    assert council.led[-1][1] == "a-again"


def test_one_failed_renewal_is_no_loss() -> None:
    async def body(council: Council) -> None:
        council.stand("a")
        await watched(council, 10)
        council.down.add("a")
        await asyncio.sleep(3)
        council.down.clear()
        await watched(council, 60)

    assert [name for _, name in held(body).led] == ["a"]


def test_a_renewal_whose_reply_was_lost_is_no_loss() -> None:
    async def body(council: Council) -> None:
        council.stand("a")
        await watched(council, 10)
        await _renewed_behind_its_back(council.cluster)
        await watched(council, 60)

    assert [name for _, name in held(body).led] == ["a"]


async def _renewed_behind_its_back(cluster: FakeCluster) -> None:
    lease: Any = await cluster.lease("operators", "operator")
    await cluster.replace_lease(lease)


def test_a_lease_that_somebody_else_took_by_force_ends_the_leadership() -> None:
    async def body(council: Council) -> None:
        council.stand("a")
        await watched(council, 10)
        lease: Any = await council.cluster.lease("operators", "operator")
        lease["spec"]["holderIdentity"] = "a person with kubectl"
        await council.cluster.replace_lease(lease)
        await watched(council, 5)

    assert [name for _, name in held(body).led] == ["a", "not a"]


def test_a_wall_clock_that_jumps_changes_nothing() -> None:
    async def body(council: Council) -> None:
        council.stand("a")
        await watched(council, 10)
        council.elections["a"]._wall = lambda: 0.0
        council.stand("b")
        await watched(council, 60)

    assert [name for _, name in held(body).led] == ["a"]
