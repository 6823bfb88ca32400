"""Decisions on one reading, and on a few in a row. Each row is a rule, or a complaint about a similar system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from thunderagent.scaling import (
    Behaviour,
    Decision,
    FailedRead,
    Fallback,
    Observation,
    Pause,
    Policy,
    PolicyKind,
    ReasonCode,
    Replica,
    ReplicaState,
    ScalingRules,
    ScalingState,
    SelectPolicy,
    decide,
    initial_state,
)

POLL = 5.0
LONG_AGO = -100_000.0
FAILED = "the read fails"

Seen = Observation | FailedRead


def rules(**given: Any) -> ScalingRules:
    return ScalingRules(**{"max_replicas": 10, "tasks_per_replica": 10, **given})


def replicas(*running: int, state: ReplicaState = ReplicaState.READY) -> tuple[Replica, ...]:
    """One replica for each number, which is what it runs."""
    return tuple(Replica(f"pool/{state}/{number}", state, tasks) for number, tasks in enumerate(running))


def starting(count: int) -> tuple[Replica, ...]:
    return replicas(*[0] * count, state=ReplicaState.STARTING)


def terminating(*running: int) -> tuple[Replica, ...]:
    return replicas(*running, state=ReplicaState.TERMINATING)


def rested(desired: int) -> ScalingState:
    """The state of a pool that has had ``desired`` replicas, and no work, for so long that no window remembers anything."""
    return initial_state(desired, LONG_AGO)


def first(asked: ScalingRules, seen: Seen) -> Decision:
    return decide(asked, rested(seen.desired), seen, now=0.0)


def settled(asked: ScalingRules, seen: Observation) -> Decision:
    """The decision on the second of two equal readings, when a low one is believed."""
    return decide(asked, first(asked, seen).state, seen, now=POLL)


def carried_out(asked: ScalingRules, readings: Iterable[Any], *, desired: int, poll: float = POLL) -> list[int]:
    """Targets of a pool whose replicas follow each decision at once. A reading is a number of ready tasks, or FAILED."""
    state, now, targets = initial_state(desired, 0.0), 0.0, []
    for reading in readings:
        now += poll
        seen = FailedRead(desired, "StoreUnavailable") if reading is FAILED else Observation(desired, ready=reading)
        decision = decide(asked, state, seen, now)
        state, desired = decision.state, decision.target
        targets.append(decision.target)
    return targets


WANTED = [
    pytest.param(Observation(0), 0, 0, id="no tasks need no replica"),
    pytest.param(Observation(0, ready=1), 1, 1, id="one task wakes the pool"),
    pytest.param(Observation(0, ready=10), 1, 1, id="tasks up to tasksPerReplica need one"),
    pytest.param(Observation(0, ready=11), 2, 2, id="one task more needs another"),
    pytest.param(Observation(0, ready=95), 10, 10, id="from 0 to N in one step"),
    pytest.param(Observation(0, ready=300), 30, 10, id="never above maxReplicas"),
    pytest.param(Observation(0, ready=300, cut=True), 30, 10, id="a cut count is at least so many, enough to grow"),
    pytest.param(Observation(0, expired=1), 1, 1, id="all agents dead, nothing PENDING: an expired lease wakes the pool"),
    pytest.param(Observation(0, running_gone=1), 1, 1, id="leases of replicas that are gone are work to come"),
    pytest.param(Observation(0, waiting=5000), 0, 0, id="waiting tasks are no work to scale for"),
    pytest.param(Observation(0, waiting=5000, waiting_due=400), 1, 1, id="waiting tasks due for a look add one at most"),
    pytest.param(Observation(1, ready=10, waiting_due=9), 2, 2, id="waiting tasks due for a look add one to ready ones"),
    pytest.param(
        Observation(1, ready=7, expired=3, running_gone=4, replicas=replicas(7)), 3, 3, id="ready, expired and running add up"
    ),
    pytest.param(Observation(0, replicas=terminating(8, 8)), 0, 0, id="what terminating replicas run is not wanted again"),
    pytest.param(Observation(5, ready=45, replicas=starting(5)), 5, 5, id="starting replicas are capacity on its way"),
    pytest.param(
        Observation(5, ready=40, replicas=replicas(10) + starting(4)), 5, 5, id="no second scale-up for the same backlog"
    ),
]


@pytest.mark.parametrize(("seen", "wanted", "target"), WANTED)
def test_wanted(seen: Observation, wanted: int, target: int) -> None:
    decision = settled(rules(), seen)
    assert (decision.wanted, decision.target) == (wanted, target)


FLOOR = [
    pytest.param(
        rules(), Observation(3, replicas=replicas(1, 0, 0)), 1, id="queue reads 0 while work is in flight: the busy stay"
    ),
    pytest.param(rules(), Observation(4, replicas=replicas(1, 1, 1, 1)), 4, id="four tasks of one each hold four replicas"),
    pytest.param(
        rules(max_replicas=2), Observation(5, replicas=replicas(1, 1, 1, 0, 0)), 3, id="the busy win over a lowered maxReplicas"
    ),
    pytest.param(
        rules(), Observation(3, replicas=replicas(0, 0, 0) + terminating(4)), 0, id="terminating replicas hold no floor"
    ),
    pytest.param(
        rules(),
        Observation(2, replicas=replicas(0) + replicas(1, state=ReplicaState.STARTING)),
        1,
        id="a starting one can be busy",
    ),
    pytest.param(
        rules(pause=Pause(at_replicas=0)),
        Observation(3, replicas=replicas(2, 2, 0)),
        2,
        id="pinned at 0, the busy finish first",
    ),
    pytest.param(
        rules(), Observation(2, replicas=replicas(1, 1, 1)), 3, id="replicas taken away by somebody else come back while busy"
    ),
]


@pytest.mark.parametrize(("asked", "seen", "target"), FLOOR)
def test_never_below_the_busy_replicas(asked: ScalingRules, seen: Observation, target: int) -> None:
    assert settled(asked, seen).target == target


def test_the_busy_replicas_are_named_as_the_reason() -> None:
    decision = settled(rules(), Observation(4, replicas=replicas(1, 1, 1, 0)))
    assert (decision.wanted, decision.floor, decision.target) == (1, 3, 3)
    assert ReasonCode.BUSY_REPLICAS in decision.reasons


BOUNDS = [
    pytest.param(rules(min_replicas=2), Observation(0), 2, id="minReplicas holds without work"),
    pytest.param(rules(min_replicas=2), Observation(2), 2, id="idle at minReplicas stays"),
    pytest.param(rules(max_replicas=4), Observation(9, ready=900), 4, id="a lowered maxReplicas is obeyed at once"),
    pytest.param(
        rules(max_replicas=4, scale_down=Behaviour(600, select=SelectPolicy.DISABLED)),
        Observation(9, ready=900),
        4,
        id="neither windows nor policies hold what is above maxReplicas",
    ),
    pytest.param(
        rules(min_replicas=3, scale_up=Behaviour(600, select=SelectPolicy.DISABLED)),
        Observation(1),
        3,
        id="neither windows nor policies hold back minReplicas",
    ),
]


@pytest.mark.parametrize(("asked", "seen", "target"), BOUNDS)
def test_bounds(asked: ScalingRules, seen: Observation, target: int) -> None:
    assert first(asked, seen).target == target


def test_limited_says_that_a_bound_or_policy_kept_the_target_from_the_backlog() -> None:
    assert first(rules(), Observation(0, ready=300)).limited
    assert first(rules(scale_up=Behaviour(policies=(Policy(PolicyKind.PODS, 1, 60),))), Observation(0, ready=50)).limited
    assert not first(rules(), Observation(0, ready=50)).limited


ACTIVATION = [
    pytest.param(Observation(0, ready=5), 0, id="a backlog at the threshold does not wake the pool"),
    pytest.param(Observation(0, ready=6), 1, id="a backlog above the threshold does"),
    pytest.param(Observation(1, ready=1), 1, id="the threshold says nothing to a pool that is awake"),
    pytest.param(Observation(0, expired=1), 1, id="an expired lease wakes it, whatever the threshold"),
    pytest.param(Observation(0, ready=2, expired=1), 1, id="and with it the tasks below the threshold"),
]


@pytest.mark.parametrize(("seen", "target"), ACTIVATION)
def test_activation_threshold(seen: Observation, target: int) -> None:
    assert settled(rules(activation_threshold=5), seen).target == target


def test_min_replicas_stand_whatever_the_activation_threshold() -> None:
    assert first(rules(activation_threshold=5, min_replicas=1), Observation(0, ready=2)).target == 1


TOLERANCE = [
    pytest.param(Observation(4, ready=44), 4, id="10 per cent more work changes nothing"),
    pytest.param(Observation(4, ready=45), 5, id="more than that grows the pool"),
    pytest.param(Observation(4, ready=36), 4, id="10 per cent less work changes nothing"),
    pytest.param(Observation(20, ready=190), 10, id="no tolerance above maxReplicas"),
    pytest.param(Observation(0, ready=1), 1, id="no tolerance at 0 replicas"),
    pytest.param(Observation(1, ready=0), 0, id="no work is never within tolerance"),
]


@pytest.mark.parametrize(("seen", "target"), TOLERANCE)
def test_tolerance(seen: Observation, target: int) -> None:
    assert settled(rules(tolerance_percent=10), seen).target == target


IN_A_ROW = [
    pytest.param([0], [5], id="one reading of zero is not an empty queue"),
    pytest.param([0, 0], [5, 0], id="two in a row are believed"),
    pytest.param([0, 50, 0, 50, 0], [5, 5, 5, 5, 5], id="a high reading in between starts the count again"),
    pytest.param([0, FAILED, 0, 0], [5, 5, 5, 0], id="a failed read in between starts the count again"),
    pytest.param([30, 10], [5, 3], id="of two low readings the higher one counts"),
    pytest.param([30, 10, 10], [5, 3, 1], id="and the next one goes on from there"),
    pytest.param([70], [7], id="growing waits for nothing"),
]


@pytest.mark.parametrize(("readings", "targets"), IN_A_ROW)
def test_two_low_readings_in_a_row_before_any_scale_down(readings: list[Any], targets: list[int]) -> None:
    assert carried_out(rules(), readings, desired=5) == targets


def test_a_low_reading_after_a_high_one_grows_nothing() -> None:
    asked = rules(scale_up=Behaviour(policies=(Policy(PolicyKind.PODS, 1, 5),)))
    assert carried_out(asked, [90, 0, 0], desired=5) == [6, 6, 0]


def test_cut_counts_lower_the_pool_only_after_a_minute_of_them() -> None:
    """One reading of a partition full of waiting tasks sees a part of it; many in a row see all its parts."""
    state, targets = rested(5), []
    for cycle in range(13):
        decision = decide(rules(), state, Observation(5, ready=7 if cycle == 3 else 0, cut=True), cycle * POLL)
        state = decision.state
        targets.append(decision.target)
    assert targets == [5] * 11 + [1, 1]
    assert ReasonCode.COUNT_CUT in decision.reasons


COOLDOWN = [
    pytest.param(0, [0, 0, 0], [5, 0, 0], id="without a cooldown the last replica goes with the others"),
    pytest.param(20, [0, 0, 0, 0], [5, 1, 1, 0], id="the last replica stays until the cooldown is over"),
    pytest.param(20, [0, 0, 1, 0, 0, 0, 0], [5, 1, 1, 1, 1, 1, 0], id="any work begins the cooldown anew"),
    pytest.param(20, [0, 0, FAILED, 0, 0, 0, 0], [5, 1, 1, 1, 1, 1, 0], id="a failed read may hide work and does so too"),
]


@pytest.mark.parametrize(("cooldown", "readings", "targets"), COOLDOWN)
def test_cooldown_before_zero(cooldown: int, readings: list[Any], targets: list[int]) -> None:
    assert carried_out(rules(cooldown_seconds=cooldown), readings, desired=5) == targets


def test_cooldown_says_nothing_where_min_replicas_stay_anyway() -> None:
    assert carried_out(rules(cooldown_seconds=600, min_replicas=2), [0, 0, 0], desired=5) == [5, 2, 2]


def test_cooldown_wakes_nothing() -> None:
    assert carried_out(rules(cooldown_seconds=600), [0, 0], desired=0) == [0, 0]


UP, DOWN = "scale_up", "scale_down"
WINDOWS = [
    pytest.param(DOWN, 20, [50, 10, 10, 10, 10, 10], [5, 5, 5, 5, 1, 1], id="shrinks to the highest of the window"),
    pytest.param(DOWN, 20, [50, 10, 30, 10, 10, 10], [5, 5, 5, 5, 3, 3], id="a peak within the window holds for its length"),
    pytest.param(DOWN, 20, [50, 90, 50], [5, 9, 9], id="a window for shrinking does not hold back growing"),
    pytest.param(DOWN, 12, [0, 0, 0], [5, 5, 0], id="after a restart the window begins with the replicas that are there"),
    pytest.param(UP, 12, [90, 90, 90], [5, 5, 9], id="growing too, where it has a window"),
    pytest.param(UP, 12, [90, 60, 90, 90], [5, 5, 6, 6], id="grows to the lowest of the window"),
    pytest.param(UP, 12, [90, 0, 0], [5, 5, 0], id="a window for growing does not hold back shrinking"),
]


@pytest.mark.parametrize(("way", "window", "readings", "targets"), WINDOWS)
def test_stabilization_window(way: str, window: int, readings: list[int], targets: list[int]) -> None:
    asked = rules(**{way: Behaviour(window)})
    assert carried_out(asked, readings, desired=5) == targets


def policies(*limits: tuple[PolicyKind, int, int], select: SelectPolicy = SelectPolicy.MAX) -> Behaviour:
    return Behaviour(policies=tuple(Policy(*limit) for limit in limits), select=select)


PODS, PERCENT = PolicyKind.PODS, PolicyKind.PERCENT
MAX, MIN, DISABLED = SelectPolicy.MAX, SelectPolicy.MIN, SelectPolicy.DISABLED

GROWING = [
    pytest.param(policies((PODS, 3, 10)), 0, [3, 3, 6, 6, 9, 9, 10], id="3 replicas in any 10 s"),
    pytest.param(policies((PERCENT, 100, 5)), 1, [2, 4, 8, 10], id="doubling each 5 s"),
    pytest.param(policies((PERCENT, 100, 5)), 0, [1, 2, 4, 8, 10], id="a per cent of nothing is one, or 0 would be for ever"),
    pytest.param(policies((PERCENT, 10, 5)), 3, [4, 5, 6, 7, 8, 9, 10], id="a per cent is rounded up when growing"),
    pytest.param(policies((PODS, 4, 5), (PERCENT, 100, 5)), 1, [5, 10], id="of two policies the one that allows more"),
    pytest.param(policies((PODS, 4, 5), (PERCENT, 100, 5), select=MIN), 1, [2, 4, 8, 10], id="or the one that allows less"),
    pytest.param(policies(select=DISABLED), 2, [2, 2, 2], id="Disabled: never"),
    pytest.param(policies(), 0, [10], id="no policy: at once"),
]


@pytest.mark.parametrize(("behaviour", "desired", "targets"), GROWING)
def test_policies_of_scale_up(behaviour: Behaviour, desired: int, targets: list[int]) -> None:
    assert carried_out(rules(scale_up=behaviour), [1000] * len(targets), desired=desired) == targets


SHRINKING = [
    pytest.param(policies((PODS, 3, 10)), [10, 7, 7, 4, 4, 1, 1, 0], id="3 replicas in any 10 s"),
    pytest.param(policies((PERCENT, 50, 5)), [10, 5, 2, 1, 0], id="halving each 5 s, rounded down"),
    pytest.param(policies((PODS, 4, 5), (PERCENT, 10, 5)), [10, 6, 2, 0], id="of two policies the one that allows more"),
    pytest.param(policies((PODS, 4, 5), (PERCENT, 10, 5), select=MIN), [10, 9, 8, 7], id="or the one that allows less"),
    pytest.param(policies(select=DISABLED), [10, 10, 10, 10], id="Disabled: never"),
]


@pytest.mark.parametrize(("behaviour", "targets"), SHRINKING)
def test_policies_of_scale_down(behaviour: Behaviour, targets: list[int]) -> None:
    assert carried_out(rules(scale_down=behaviour), [0] * len(targets), desired=10) == targets


def test_a_policy_counts_what_was_carried_out_not_what_was_decided() -> None:
    """Two of three victims were busy: the one that went leaves room for two more within the same period."""
    asked = rules(scale_down=policies((PODS, 3, 60)))
    state = first(asked, Observation(10)).state
    decision = decide(asked, state, Observation(10), POLL)
    assert decision.target == 7
    assert decide(asked, decision.state, Observation(9), 2 * POLL).target == 7


FAILURES = [
    pytest.param(None, [FAILED] * 200, [4] * 200, id="source down for a quarter of an hour: the replicas stay"),
    pytest.param(Fallback(3, 6), [FAILED] * 5, [4, 4, 6, 6, 6], id="fallback raises after three failed reads in a row"),
    pytest.param(Fallback(3, 2), [FAILED] * 5, [4] * 5, id="fallback never lowers"),
    pytest.param(Fallback(1, 500), [FAILED], [10], id="fallback stays within maxReplicas"),
    pytest.param(Fallback(2, 6), [FAILED, 40, FAILED, 40], [4] * 4, id="a read that works in between starts the count again"),
    pytest.param(Fallback(1, 6), [FAILED, 40, 40], [6, 6, 4], id="fallback ends with the first reading"),
]


@pytest.mark.parametrize(("fallback", "readings", "targets"), FAILURES)
def test_an_error_is_never_a_zero(fallback: Fallback | None, readings: list[Any], targets: list[int]) -> None:
    assert carried_out(rules(fallback=fallback), readings, desired=4) == targets


def test_fallback_ends_also_from_zero_replicas() -> None:
    assert carried_out(rules(fallback=Fallback(1, 3)), [FAILED, FAILED, 0, 0, 0], desired=0) == [3, 3, 3, 0, 0]


def test_fallback_is_told_while_it_holds_and_only_then() -> None:
    asked = rules(fallback=Fallback(2, 3))
    failed = FailedRead(3, "TableMissing", "There is no table TaskTable in eu-west-1.")
    one = decide(asked, initial_state(3, 0), failed, 5)
    two = decide(asked, one.state, failed, 10)
    back = decide(asked, two.state, Observation(3, ready=30), 15)
    assert [decision.fallback for decision in (one, two, back)] == [False, True, False]
    assert two.reasons == (ReasonCode.READ_FAILED, ReasonCode.FALLBACK)
    assert "TableMissing" in two.sentence
    assert "2 times in a row" in two.sentence
    assert (two.wanted, two.floor) == (None, None)


def test_failing_since_is_kept_until_a_read_works() -> None:
    one = decide(rules(), initial_state(3, 0), FailedRead(3, "StoreUnavailable"), 5)
    two = decide(rules(), one.state, FailedRead(3, "StoreUnavailable"), 10)
    back = decide(rules(), two.state, Observation(3), 15)
    assert (one.state.failing_since, two.state.failing_since, back.state.failing_since) == (5, 5, None)


UNREAD_BOUNDS = [
    pytest.param(rules(max_replicas=2), 5, 5, id="a maxReplicas lowered meanwhile waits: what runs cannot be seen"),
    pytest.param(rules(min_replicas=4), 1, 4, id="a minReplicas raised meanwhile is obeyed"),
    pytest.param(rules(pause=Pause(at_replicas=0)), 5, 5, id="pinned lower, it waits as well"),
    pytest.param(rules(pause=Pause(at_replicas=7)), 5, 7, id="pinned higher is obeyed"),
    pytest.param(rules(fallback=Fallback(1, 9), pause=Pause(scale_out=True)), 5, 5, id="paused, there is no fallback"),
    pytest.param(
        rules(fallback=Fallback(1, 9), scale_up=policies((PODS, 2, 60))), 5, 7, id="fallback goes no faster than scaleUp allows"
    ),
]


@pytest.mark.parametrize(("asked", "desired", "target"), UNREAD_BOUNDS)
def test_what_may_change_while_the_backlog_cannot_be_read(asked: ScalingRules, desired: int, target: int) -> None:
    assert first(asked, FailedRead(desired, "StoreUnavailable")).target == target


def test_after_an_outage_the_window_begins_again_with_the_replicas_that_are_there() -> None:
    asked = rules(scale_down=Behaviour(12))
    assert carried_out(asked, [50, *[FAILED] * 50, 0, 0, 0], desired=5)[-4:] == [5, 5, 5, 0]


PAUSES = [
    pytest.param(Pause.everything(), 0, 90, 0, ReasonCode.PAUSED, id="paused: does not grow"),
    pytest.param(Pause.everything(), 5, 0, 5, ReasonCode.PAUSED, id="paused: does not shrink"),
    pytest.param(Pause.everything(), 15, 0, 15, ReasonCode.PAUSED, id="paused: not even to maxReplicas"),
    pytest.param(Pause(scale_in=True), 5, 0, 5, ReasonCode.PAUSED_IN, id="paused in: does not shrink"),
    pytest.param(Pause(scale_in=True), 5, 90, 9, ReasonCode.PAUSED_IN, id="paused in: grows"),
    pytest.param(Pause(scale_out=True), 5, 90, 5, ReasonCode.PAUSED_OUT, id="paused out: does not grow"),
    pytest.param(Pause(scale_out=True), 5, 0, 0, ReasonCode.PAUSED_OUT, id="paused out: shrinks"),
    pytest.param(Pause(at_replicas=3), 0, 90, 3, ReasonCode.PAUSED_AT_REPLICAS, id="paused at 3: grows to 3"),
    pytest.param(Pause(at_replicas=3), 5, 90, 3, ReasonCode.PAUSED_AT_REPLICAS, id="paused at 3: shrinks to 3"),
    pytest.param(Pause(at_replicas=30), 5, 90, 10, ReasonCode.PAUSED_AT_REPLICAS, id="paused at 30: not above maxReplicas"),
    pytest.param(
        Pause(scale_in=True, scale_out=True, at_replicas=3),
        5,
        90,
        3,
        ReasonCode.PAUSED_AT_REPLICAS,
        id="a pin wins over a pause",
    ),
]


@pytest.mark.parametrize(("pause", "desired", "ready", "target", "reason"), PAUSES)
def test_pause(pause: Pause, desired: int, ready: int, target: int, reason: ReasonCode) -> None:
    decision = settled(rules(pause=pause), Observation(desired, ready=ready))
    assert decision.target == target
    assert decision.paused
    assert decision.reasons[-1] is reason


def test_pinned_below_min_replicas_stands() -> None:
    assert first(rules(min_replicas=2, pause=Pause(at_replicas=0)), Observation(2)).target == 0


def test_a_pause_ends_with_its_annotation() -> None:
    """Nothing of a pause is remembered, so nothing can be stuck in it."""
    held = rules(pause=Pause.everything())
    state = rested(0)
    for cycle in range(10):
        state = decide(held, state, Observation(0, ready=90), cycle * POLL).state
    freed = decide(rules(), state, Observation(0, ready=90), 10 * POLL)
    assert (freed.target, freed.paused) == (9, False)


def test_a_restart_of_the_operator_changes_nothing() -> None:
    asked = rules(scale_down=Behaviour(60), cooldown_seconds=60)
    for seen in (Observation(4, ready=40), Observation(4), FailedRead(4, "StoreUnavailable")):
        assert decide(asked, initial_state(4, 1000.0), seen, 1000.0).target == 4


def test_an_edit_of_the_spec_takes_no_busy_replica() -> None:
    seen = Observation(6, replicas=replicas(1, 1, 1, 1, 0, 0))
    for edited in (rules(max_replicas=1), rules(tasks_per_replica=1000), rules(max_replicas=1, pause=Pause(at_replicas=0))):
        assert settled(edited, seen).target == 4


def test_state_does_not_grow() -> None:
    asked = rules(max_replicas=50, scale_down=Behaviour(3600), scale_up=policies((PODS, 1, 60)))
    state = rested(0)
    for cycle in range(2000):
        state = decide(asked, state, Observation(cycle * 7 % 50, ready=cycle * 13 % 500, cut=True), cycle * POLL).state
    assert len(state.recommended) <= 51
    assert len(state.changes) <= 13
    assert len(state.low) <= 12


SENTENCES = [
    pytest.param(
        Observation(0, ready=290, expired=6, running_gone=4),
        "From 0 to 10: 290 ready, 4 running, 6 with an expired lease ask for 30; maxReplicas is 10.",
        id="growing",
    ),
    pytest.param(Observation(0), "Stays at 0: no work was found.", id="idle"),
    pytest.param(
        Observation(3),
        "Stays at 3: no work was found; low reading 1 of the 2 in a row that a scale-down needs.",
        id="a first low reading",
    ),
    pytest.param(Observation(2, ready=20, cut=True), "Stays at 2: at least 20 ready ask for 2.", id="a cut count"),
]


@pytest.mark.parametrize(("seen", "sentence"), SENTENCES)
def test_the_sentence_tells_a_person_what_and_why(seen: Observation, sentence: str) -> None:
    assert first(rules(), seen).sentence == sentence


def test_reasons_are_stable_while_only_numbers_change() -> None:
    """Status is written when the reasons change, so they must not carry counts."""
    one, other = (first(rules(), Observation(0, ready=ready)) for ready in (300, 299))
    assert one.reasons == other.reasons == (ReasonCode.BACKLOG, ReasonCode.TOO_MANY_REPLICAS)
    assert one.sentence != other.sentence


def test_decide_does_not_touch_the_state_it_was_given() -> None:
    state = rested(5)
    kept = replace(state, recommended=dict(state.recommended))
    decide(rules(), state, Observation(5), 0.0)
    assert state == kept
