"""Who goes first, and how many may go. The order is the ReplicaSet's own; nothing here may count on a kinder one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from thunderagent.scaling import (
    Candidate,
    Decision,
    Observation,
    Pause,
    Phase,
    Replica,
    ScalingRules,
    decide,
    deletion_cost,
    deletion_costs,
    initial_state,
    read_cost,
    replicas_now,
    safe_to_remove,
    victim_order,
    victims,
)

NOW = 1_000_000.0
COST = "controller.kubernetes.io/pod-deletion-cost"


def pod(name: str, **given: Any) -> Candidate:
    """A ready pod on a node of its own, ready and created an hour ago."""
    made = {"name": name, "node": f"node-{name}", "ready_since": NOW - 3600, "created": NOW - 3600, "uid": name}
    return Candidate(**{**made, **given})


def order(*candidates: Candidate) -> str:
    """The names in the order of removal; the same whatever order they come in."""
    orders = set()
    for seed in range(20):
        shuffled = list(candidates)
        random.Random(seed).shuffle(shuffled)
        orders.add("".join(candidate.name for candidate in victim_order(shuffled, NOW)))
    (only,) = orders
    return only


def late(name: str, **given: Any) -> Candidate:
    """A pod that every rule after the one in question would take last."""
    return pod(name, ready_since=NOW - 900_000, created=NOW - 900_000, **given)


REFERENCE = [
    pytest.param(
        (pod("a", running=9, ready=False), late("b", node="", phase=Phase.PENDING)), "ba", id="1 unassigned before assigned"
    ),
    pytest.param(
        (pod("a", phase=Phase.RUNNING), late("b", phase=Phase.UNKNOWN), late("c", phase=Phase.PENDING)),
        "cba",
        id="2 pending before unknown before running",
    ),
    pytest.param((pod("a", cost=-9), late("b", ready=False, cost=9)), "ba", id="3 not ready before ready, whatever the cost"),
    pytest.param((pod("a", cost=2, node="n"), late("b", cost=1)), "ba", id="4 lower deletion cost"),
    pytest.param((pod("a", cost=0), late("b", cost=-1)), "ba", id="4 a negative cost is lower than none"),
    pytest.param(
        (pod("a", ready_since=NOW - 1), late("b", node="n"), pod("c", node="n", ready_since=NOW - 100)),
        "cba",
        id="5 more pods of the set on the same node",
    ),
    pytest.param((pod("a", restarts=9), pod("b", ready_since=NOW - 100)), "ba", id="6 ready for a shorter time"),
    pytest.param(
        (pod("a", ready_since=NOW - 3000), pod("b", ready_since=NOW - 3001)), "ab", id="6 ages within a power of two: by uid"
    ),
    pytest.param(
        (pod("b", ready_since=NOW - 3001), pod("a", ready_since=NOW - 3000, uid="z")), "ba", id="6 and the uid decides"
    ),
    pytest.param((pod("a"), pod("b", ready_since=None)), "ba", id="6 a time that is not known counts as the shortest"),
    pytest.param((pod("a", created=NOW - 1), pod("b", restarts=3)), "ba", id="7 more restarts"),
    pytest.param((pod("a"), pod("b", created=NOW - 100)), "ba", id="8 created later"),
    pytest.param(
        (
            pod("g", cost=3),
            pod("f", cost=1),
            pod("e"),
            pod("d", ready=False),
            pod("c", phase=Phase.UNKNOWN, ready=False),
            pod("b", phase=Phase.PENDING, ready=False),
            pod("a", node="", phase=Phase.PENDING, ready=False),
        ),
        "abcdefg",
        id="all of the first four together",
    ),
]


@pytest.mark.parametrize(("candidates", "names"), REFERENCE)
def test_the_order_is_the_replica_sets(candidates: tuple[Candidate, ...], names: str) -> None:
    assert order(*candidates) == names


def costed(name: str, running: int, **given: Any) -> Candidate:
    """A pod whose cost has settled."""
    return pod(name, running=running, cost=deletion_cost(running), **given)


SAFE = [
    pytest.param((), 0, id="nobody there"),
    pytest.param((costed("a", 0), costed("b", 0)), 2, id="all idle"),
    pytest.param((costed("a", 0), costed("b", 1), costed("c", 0)), 2, id="two idle, one busy"),
    pytest.param((costed("a", 1), costed("b", 5)), 0, id="all busy"),
    pytest.param(
        (costed("a", 0), costed("b", 1, ready=False)), 0, id="a busy one that is not ready would go before the idle one"
    ),
    pytest.param(
        (costed("a", 0), costed("b", 0, ready=False), costed("c", 1, ready=False), costed("d", 0)),
        1,
        id="only the victims before it are safe",
    ),
    pytest.param(
        (costed("a", 1), costed("b", 0, phase=Phase.PENDING, ready=False)), 1, id="replicas that still pull images go first"
    ),
    pytest.param(
        (pod("a", running=0, cost=0), pod("b", running=2, cost=0)), 0, id="a cost that is not written yet saves nobody"
    ),
    pytest.param((pod("a", running=0, cost=3), pod("b", running=2, cost=2)), 0, id="costs of a past that has changed"),
    pytest.param(
        (pod("a", running=0, cost=0), pod("b", running=2, cost=0, ready_since=NOW - 900_000)),
        0,
        id="age does not save a busy one: the ReplicaSet has its own clock",
    ),
]


@pytest.mark.parametrize(("candidates", "count"), SAFE)
def test_safe_to_remove(candidates: tuple[Candidate, ...], count: int) -> None:
    assert safe_to_remove(candidates) == count


@pytest.mark.parametrize("seed", range(200))
def test_safe_victims_are_idle_in_the_replica_sets_own_order(seed: int) -> None:
    chance = random.Random(seed)
    candidates = [
        pod(
            f"p{number}",
            running=chance.choice((0, 0, 1, 4)),
            node=chance.choice(("", "n1", "n2")),
            phase=chance.choice(tuple(Phase)),
            ready=chance.random() < 0.7,
            cost=chance.choice((0, 0, 1, 3)),
            ready_since=NOW - chance.choice((5, 50, 5000)),
            restarts=chance.choice((0, 2)),
        )
        for number in range(8)
    ]
    for drift in (0.0, 3.0, 4000.0):
        first = victim_order(candidates, NOW + drift)[: safe_to_remove(candidates)]
        assert all(candidate.is_idle for candidate in first)


COSTS = [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (1000, 10)]


@pytest.mark.parametrize(("running", "cost"), COSTS)
def test_cost_grows_with_each_doubling(running: int, cost: int) -> None:
    assert deletion_cost(running) == cost


def test_only_costs_that_changed_are_written() -> None:
    candidates = (pod("a", running=1, cost=0), pod("b", running=0, cost=1), pod("c", running=3, cost=2), pod("d"))
    assert deletion_costs(candidates) == {"a": 1, "b": 0}
    assert deletion_costs([costed("a", 5), costed("b", 0)]) == {}


ANNOTATIONS = [
    ("5", 5),
    ("0", 0),
    ("-3", -3),
    ("+5", 0),
    ("05", 0),
    ("", 0),
    ("five", 0),
    ("1_000", 0),
    (" 5", 0),
    ("5\n", 0),
    ("2147483647", 2147483647),
    ("2147483648", 0),
    ("-2147483649", 0),
]


@pytest.mark.parametrize(("text", "cost"), ANNOTATIONS)
def test_cost_is_read_as_kubernetes_reads_it(text: str, cost: int) -> None:
    assert read_cost({COST: text}) == cost


def test_no_annotation_is_no_cost() -> None:
    assert read_cost({}) == 0


def lowered(current: int, target: int, *running: int) -> Decision:
    """A decision to go from ``current`` to ``target``, as far as the busy ones let it."""
    replicas = tuple(Replica(f"pool/{number}/1", running=tasks) for number, tasks in enumerate(running))
    rules = ScalingRules(max_replicas=100, pause=Pause(at_replicas=target))
    return decide(rules, initial_state(current, 0), Observation(current, replicas), 0)


NOW_ROWS = [
    pytest.param(lowered(2, 5), (costed("a", 1),), 5, id="upwards at once"),
    pytest.param(lowered(3, 3), (costed("a", 0),), 3, id="no change"),
    pytest.param(lowered(3, 1), (costed("a", 1), costed("b", 0), costed("c", 0)), 1, id="down to the target"),
    pytest.param(lowered(3, 0), (costed("a", 1), costed("b", 0), costed("c", 0)), 1, id="not the one that became busy since"),
    pytest.param(
        lowered(3, 1), (costed("a", 1, ready=False), costed("b", 0), costed("c", 0)), 3, id="not while a busy one is first"
    ),
    pytest.param(lowered(5, 0), (costed("a", 1), costed("b", 0)), 1, id="replicas that were never created go freely"),
    pytest.param(
        lowered(3, 0),
        (costed("a", 1), costed("b", 1), costed("c", 0), costed("d", 0), costed("e", 0)),
        2,
        id="one is on its way out",
    ),
    pytest.param(
        lowered(1, 0), (costed("a", 1), costed("b", 1)), 1, id="never upwards by a lowering, were more there than asked for"
    ),
    pytest.param(lowered(3, 0), (), 0, id="nobody is there"),
]


@pytest.mark.parametrize(("decision", "candidates", "replicas"), NOW_ROWS)
def test_replicas_now(decision: Decision, candidates: tuple[Candidate, ...], replicas: int) -> None:
    assert replicas_now(decision, candidates) == replicas


def test_who_removes_replicas_itself_gets_idle_ones_only() -> None:
    candidates = [costed("a", 2), costed("b", 0), costed("c", 0, ready=False), costed("d", 0)]
    assert [candidate.name for candidate in victims(candidates, 2, NOW)] == ["c", "b"]
    assert [candidate.name for candidate in victims(candidates, 0, NOW)] == ["c", "b", "d"]
    assert victims(candidates, 4, NOW) == victims(candidates, 9, NOW) == []
