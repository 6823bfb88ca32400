"""What the decision has to remember from cycle to cycle. The caller keeps it; nothing of it must survive a restart.

A new process begins with :func:`initial_state`, as if the replicas that are there had just been asked for. Everything else
(pause, fallback, floor, wanted) is worked out anew each cycle, so nothing can get stuck.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from thunderagent.scaling.rules import ScalingRules

LOW_READINGS = 2
"""Readings in a row that must ask for fewer replicas before any are taken away (DESIGN.md rule 3 of section 3.2: a task that
changes status may for a moment be in neither partition of the index)."""

LOW_READINGS_CUT = 12
"""The same for readings that stopped at their bound: a minute at the default poll. Each looks at another part of the
partition, so one alone proves little; yet a pool whose table holds more waiting tasks than one reading can pass must not
keep its replicas for ever."""


@dataclass(frozen=True, slots=True)
class Change:
    """Replicas were added (positive) or taken away (negative) at a time."""

    at: float
    by: int


@dataclass(frozen=True, slots=True)
class ScalingState:
    """Times are seconds of the caller's monotonic clock, the one that it passes to ``decide`` as ``now``.

    ``recommended`` maps a number of replicas to the time it was last asked for: all that a maximum or a minimum over a
    window needs, and never more entries than maxReplicas. ``low``: what the latest readings in a row below the present
    replicas asked for. ``failing_since``: the first of the failed reads in a row.
    """

    desired: int
    decided_at: float
    last_work_at: float
    recommended: Mapping[int, float]
    changes: tuple[Change, ...] = ()
    low: tuple[int, ...] = ()
    failed_reads: int = 0
    failing_since: float | None = None


def initial_state(replicas: int, now: float) -> ScalingState:
    """The state of a process that has just started and found ``replicas``.

    They count as recommended now, as HorizontalPodAutoscaler does after its own restart (recordInitialRecommendation), and
    as worked now, so that windows and cooldown begin in full: a restart changes nothing.
    """
    return ScalingState(desired=replicas, decided_at=now, last_work_at=now, recommended={replicas: now})


def cycle_began(state: ScalingState, rules: ScalingRules, desired: int, now: float) -> ScalingState:
    """Note how the replicas have changed since the last cycle, and forget what no rule looks back to.

    The change is dated to the last decision, which brought it about. It is read off the replicas that are there, not off
    what was decided: a scale-down that was carried out in part, or one made by hand, is counted as what it was.
    """
    changes = state.changes
    if desired != state.desired:
        changes = (*changes, Change(state.decided_at, desired - state.desired))
    return replace(
        state,
        desired=desired,
        decided_at=now,
        changes=tuple(change for change in changes if change.at > now - rules.longest_period),
        recommended={count: at for count, at in state.recommended.items() if at > now - rules.longest_window},
    )


def after_reading(state: ScalingState, *, demand: int, is_low: bool, is_work: bool, now: float) -> ScalingState:
    """A reading that asks for ``demand`` replicas; low where that is fewer than there are."""
    return replace(
        state,
        recommended={**state.recommended, demand: now},
        low=(*state.low, demand)[-LOW_READINGS_CUT:] if is_low else (),
        last_work_at=now if is_work else state.last_work_at,
        failed_reads=0,
        failing_since=None,
    )


def after_failed_read(state: ScalingState, now: float) -> ScalingState:
    """A reading that failed. What could not be seen may be work, so windows and cooldown begin again, as after a restart."""
    return replace(
        state,
        recommended={**state.recommended, state.desired: now},
        low=(),
        last_work_at=now if state.desired else state.last_work_at,
        failed_reads=state.failed_reads + 1,
        failing_since=now if state.failing_since is None else state.failing_since,
    )
