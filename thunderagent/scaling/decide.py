"""One decision a cycle: how many replicas a pool should have, and why.

The number takes a course through rules, each of which may turn it, in this order:

1. ``wanted``: ceil((ready + expired + running) / tasksPerReplica)
2. activation (only at 0 replicas), tolerance, maxReplicas and minReplicas: what the reading *demands*
3. two low readings in a row, stabilization windows, policies: how fast it may go there
4. cooldown before zero
5. the floor: replicas that hold a running task; wins over everything above, a lowered maxReplicas included
6. pause

A read that failed takes a shorter course: the replicas that are there, fallback, pause; and never fewer than there are.
Rules with HorizontalPodAutoscaler's names have its meaning (kubernetes/kubernetes, pkg/controller/podautoscaler), those with
KEDA's (activation, cooldown, fallback, pause) have KEDA's, but for what the docstrings say.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from thunderagent.scaling.behaviour import limit_down, limit_up, stabilized
from thunderagent.scaling.observe import FailedRead, Observation
from thunderagent.scaling.rules import ScalingRules
from thunderagent.scaling.state import (
    LOW_READINGS,
    LOW_READINGS_CUT,
    ScalingState,
    after_failed_read,
    after_reading,
    cycle_began,
)


class ReasonCode(StrEnum):
    """Why a decision came out as it did. Stable: conditions, events and alerts may rely on them."""

    NO_WORK = "NoWork"
    BACKLOG = "Backlog"
    BELOW_ACTIVATION = "BelowActivation"
    WITHIN_TOLERANCE = "WithinTolerance"
    TOO_MANY_REPLICAS = "TooManyReplicas"
    TOO_FEW_REPLICAS = "TooFewReplicas"
    LOW_READING = "LowReading"
    COUNT_CUT = "CountCut"
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"
    COOLING_DOWN = "CoolingDown"
    BUSY_REPLICAS = "BusyReplicas"
    READ_FAILED = "ReadFailed"
    FALLBACK = "Fallback"
    PAUSED = "Paused"
    PAUSED_IN = "PausedIn"
    PAUSED_OUT = "PausedOut"
    PAUSED_AT_REPLICAS = "PausedAtReplicas"


LIMITING = frozenset(
    {
        ReasonCode.TOO_MANY_REPLICAS,
        ReasonCode.TOO_FEW_REPLICAS,
        ReasonCode.SCALE_UP_LIMIT,
        ReasonCode.SCALE_DOWN_LIMIT,
    }
)
"""Reasons that make a decision ``limited``, as in HorizontalPodAutoscaler's ScalingLimited condition."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How many replicas a pool should have.

    ``target``: the replicas to go to; upwards at once, downwards by as many as is safe (``victims.replicas_now``).
    ``current``: the replicas asked for when this was decided. ``wanted`` and ``floor`` are None after a failed read.
    ``reasons``: codes in the order in which the rules had their say; ``sentence`` says the same to a person.
    ``limited``: a bound or a policy kept the target from what the backlog asks for. ``state``: pass it to the next cycle.
    """

    target: int
    current: int
    wanted: int | None
    floor: int | None
    reasons: tuple[ReasonCode, ...]
    sentence: str
    paused: bool
    fallback: bool
    limited: bool
    state: ScalingState


def decide(rules: ScalingRules, state: ScalingState, seen: Observation | FailedRead, now: float) -> Decision:
    """Decide on one reading of the backlog, or on the news that it could not be read.

    ``now``: seconds of the monotonic clock that dated ``state``. Never raises.
    """
    state = cycle_began(state, rules, seen.desired, now)
    if isinstance(seen, FailedRead):
        return _decide_unread(rules, state, seen, now)
    return _decide_read(rules, state, seen, now)


@dataclass(frozen=True, slots=True)
class _Course:
    """A number of replicas on its way through the rules, with what turned it so far."""

    replicas: int
    codes: tuple[ReasonCode, ...] = ()
    clauses: tuple[str, ...] = ()

    def turn(self, replicas: int, code: ReasonCode, clause: str) -> _Course:
        """Go to ``replicas``; the reason is told only where it made a difference."""
        return self if replicas == self.replicas else self.told(replicas, code, clause)

    def told(self, replicas: int, code: ReasonCode, clause: str) -> _Course:
        """Go to ``replicas``, and tell the reason in any case."""
        return _Course(replicas, (*self.codes, code), (*self.clauses, clause))


# --- the backlog was read -----------------------------------------------------------------------------------------------


def _decide_read(rules: ScalingRules, state: ScalingState, seen: Observation, now: float) -> Decision:
    wanted = _replicas_for(seen.work, rules.tasks_per_replica)
    base = rules.bounded(seen.desired)  # replicas outside the bounds are not held by windows or policies
    course = _demand(rules, seen, wanted)
    state = after_reading(state, demand=course.replicas, is_low=course.replicas < base, is_work=seen.work > 0, now=now)
    course = _second_look(course, state, base, seen.cut)
    course = _stabilize(course, rules, state, base, now)
    course = _limit_rate(course, rules, state, base, now)
    course = _cool_down(course, rules, state, now)
    course = course.turn(max(course.replicas, seen.floor), ReasonCode.BUSY_REPLICAS, f"{seen.floor} hold running tasks")
    course = _pause(course, rules, seen.desired, seen.floor)
    return _decision(course, rules, state, wanted=wanted, floor=seen.floor)


def _replicas_for(work: int, tasks_per_replica: int) -> int:
    return -(-work // tasks_per_replica)


def _demand(rules: ScalingRules, seen: Observation, wanted: int) -> _Course:
    """What the reading asks for, within the bounds."""
    course = _Course(wanted).told(wanted, ReasonCode.BACKLOG if seen.work else ReasonCode.NO_WORK, _backlog(seen, wanted))
    course = _tolerate(_activate(course, rules, seen), rules, seen)
    course = course.turn(
        min(course.replicas, rules.max_replicas), ReasonCode.TOO_MANY_REPLICAS, f"maxReplicas is {rules.max_replicas}"
    )
    return course.turn(
        max(course.replicas, rules.min_replicas), ReasonCode.TOO_FEW_REPLICAS, f"minReplicas is {rules.min_replicas}"
    )


def _activate(course: _Course, rules: ScalingRules, seen: Observation) -> _Course:
    """A backlog up to the threshold does not wake a pool from 0. An expired lease always does: it was woken for before."""
    if seen.desired > 0 or seen.expired > 0 or seen.work > rules.activation_threshold:
        return course
    return course.turn(0, ReasonCode.BELOW_ACTIVATION, f"more than {rules.activation_threshold} wake the pool")


def _tolerate(course: _Course, rules: ScalingRules, seen: Observation) -> _Course:
    """As HorizontalPodAutoscaler: nothing changes while work over capacity is within the tolerance of 1."""
    capacity = seen.desired * rules.tasks_per_replica
    if capacity == 0 or abs(seen.work - capacity) * 100 > rules.tolerance_percent * capacity:
        return course
    clause = f"that is within {rules.tolerance_percent}% of what {seen.desired} are for"
    return course.turn(seen.desired, ReasonCode.WITHIN_TOLERANCE, clause)


def _second_look(course: _Course, state: ScalingState, base: int, cut: bool) -> _Course:
    """Fewer replicas only after several low readings in a row, and then for the highest of them."""
    if course.replicas >= base:
        return course
    needed, code = (LOW_READINGS_CUT, ReasonCode.COUNT_CUT) if cut else (LOW_READINGS, ReasonCode.LOW_READING)
    seen_so_far = min(len(state.low), needed)
    if seen_so_far < needed:
        return course.turn(base, code, f"low reading {seen_so_far} of the {needed} in a row that a scale-down needs")
    return course.turn(max(state.low[-needed:]), code, "a reading just before asked for more")


def _stabilize(course: _Course, rules: ScalingRules, state: ScalingState, base: int, now: float) -> _Course:
    up, down = rules.scale_up.window_seconds, rules.scale_down.window_seconds
    steady = stabilized(base, course.replicas, state.recommended, now, up, down)
    if steady < course.replicas:
        return course.turn(steady, ReasonCode.SCALE_UP_STABILIZED, f"fewer were asked for within the last {up} s")
    return course.turn(steady, ReasonCode.SCALE_DOWN_STABILIZED, f"more were asked for within the last {down} s")


def _limit_rate(course: _Course, rules: ScalingRules, state: ScalingState, base: int, now: float) -> _Course:
    if course.replicas > base:
        most = limit_up(base, state.changes, rules.scale_up, now)
        allowed = course.replicas if most is None else min(course.replicas, most)
        return course.turn(allowed, ReasonCode.SCALE_UP_LIMIT, f"scaleUp allows {allowed} now")
    fewest = limit_down(base, state.changes, rules.scale_down, now)
    allowed = course.replicas if fewest is None else max(course.replicas, fewest)
    return course.turn(allowed, ReasonCode.SCALE_DOWN_LIMIT, f"scaleDown allows {allowed} now")


def _cool_down(course: _Course, rules: ScalingRules, state: ScalingState, now: float) -> _Course:
    """As KEDA's cooldownPeriod: the last replica stays until there has been no work for so long."""
    left = rules.cooldown_seconds - (now - state.last_work_at)
    if course.replicas > 0 or state.desired == 0 or left <= 0:
        return course
    return course.turn(1, ReasonCode.COOLING_DOWN, f"the last one stays for {rules.cooldown_seconds:g} s after the last task")


# --- the backlog could not be read --------------------------------------------------------------------------------------


def _decide_unread(rules: ScalingRules, state: ScalingState, seen: FailedRead, now: float) -> Decision:
    state = after_failed_read(state, now)
    course = _Course(seen.desired).told(seen.desired, ReasonCode.READ_FAILED, _failure(state, seen))
    course = course.turn(
        max(seen.desired, rules.min_replicas), ReasonCode.TOO_FEW_REPLICAS, f"minReplicas is {rules.min_replicas}"
    )
    is_fallback = rules.fallback is not None and state.failed_reads >= rules.fallback.failed_reads
    if is_fallback:
        course = _limit_rate(_fall_back(course, rules), rules, state, course.replicas, now)
    course = _pause(course, rules, seen.desired, floor=seen.desired)
    return _decision(course, rules, state, fallback=is_fallback)


def _fall_back(course: _Course, rules: ScalingRules) -> _Course:
    """May only raise: what runs unseen must not be cut. Within maxReplicas, whatever the fallback says."""
    replicas = 0 if rules.fallback is None else min(rules.fallback.replicas, rules.max_replicas)
    return course.told(max(course.replicas, replicas), ReasonCode.FALLBACK, f"fallback is {replicas} replicas")


# --- both ---------------------------------------------------------------------------------------------------------------


def _pause(course: _Course, rules: ScalingRules, current: int, floor: int) -> _Course:
    """A person's hold, read anew each cycle. Pinned replicas may be below minReplicas, but neither above maxReplicas nor
    below the floor: a pause stops nothing that runs."""
    pause = rules.pause
    if pause.at_replicas is not None:
        pinned = max(min(pause.at_replicas, rules.max_replicas), floor)
        return course.told(pinned, ReasonCode.PAUSED_AT_REPLICAS, f"paused at {pause.at_replicas} replicas")
    if pause.scale_in and pause.scale_out:
        return course.told(current, ReasonCode.PAUSED, "scaling is paused")
    if pause.scale_in:
        return course.told(max(course.replicas, current), ReasonCode.PAUSED_IN, "scaling in is paused")
    if pause.scale_out:
        return course.told(min(course.replicas, current), ReasonCode.PAUSED_OUT, "scaling out is paused")
    return course


def _decision(
    course: _Course,
    rules: ScalingRules,
    state: ScalingState,
    *,
    wanted: int | None = None,
    floor: int | None = None,
    fallback: bool = False,
) -> Decision:
    return Decision(
        target=course.replicas,
        current=state.desired,
        wanted=wanted,
        floor=floor,
        reasons=course.codes,
        sentence=f"{_movement(state.desired, course.replicas)}: {'; '.join(course.clauses)}.",
        paused=bool(rules.pause),
        fallback=fallback,
        limited=not LIMITING.isdisjoint(course.codes),
        state=state,
    )


def _movement(current: int, target: int) -> str:
    return f"Stays at {target}" if target == current else f"From {current} to {target}"


def _backlog(seen: Observation, wanted: int) -> str:
    if seen.work == 0:
        return "no work was found" + (" in the part that was read" if seen.cut else "")
    parts = ((seen.claimable, "ready"), (seen.running, "running"), (seen.expired, "with an expired lease"))
    tasks = ", ".join(f"{count} {kind}" for count, kind in parts if count)
    return f"{'at least ' if seen.cut else ''}{tasks} ask for {wanted}"


def _failure(state: ScalingState, seen: FailedRead) -> str:
    times = "once" if state.failed_reads == 1 else f"{state.failed_reads} times in a row"
    detail = f": {seen.message.rstrip('.')}" if seen.message else ""
    return f"the backlog could not be read ({seen.reason}, {times}{detail})"
