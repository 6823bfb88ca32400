"""What is known of a pool over a time, whatever it was learnt from: series at common moments, and totals over the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from thunderagent.errors import InvalidInput
from thunderagent.times import brief, moment

Values = Sequence[float | None]
"""A value for each step of the period; None where nothing is known."""

Labelled = Mapping[str, Values]
"""Series by what tells them apart, such as an outcome."""

STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Lengths of a step in seconds that people read well; beyond them whole days."""

MOST_STEPS = 120
"""Steps of a period at most: a page shows no more, and Prometheus answers for them at once."""

WITHOUT_A_RUN = ("abandoned", "buried")
"""How tasks end as FAILED without another run: a dependency failed, or the lease of their last run was lost."""

SHORTEST = 5.0
"""Seconds of the shortest period."""


@dataclass(frozen=True, slots=True)
class Period:
    """A time range in ``count`` steps of ``step`` seconds, which ends at ``end``, in epoch seconds."""

    end: float
    step: float
    count: int

    @property
    def start(self) -> float:
        return self.end - self.seconds

    @property
    def seconds(self) -> float:
        return self.step * self.count

    @property
    def ends(self) -> list[float]:
        """When each step ends, in epoch seconds."""
        return [self.end - self.step * (self.count - 1 - number) for number in range(self.count)]

    def number_of(self, at: float) -> int:
        """The step in which a moment lies; below 0 or from ``count`` on: it lies outside."""
        return int(-((self.start - at) // self.step)) - 1 if at <= self.end else self.count


def period(start: float, end: float, now: float, finest: float = 1.0) -> Period:
    """The range cut into steps of at least ``finest`` seconds, made longer at its start to a whole number of them.

    Raises InvalidInput where it is no range, or has not begun.
    """
    if end <= start:
        raise InvalidInput(
            f"The time range ends at {moment(end)}, before it begins at {moment(start)}. Exchange --from and --to."
        )
    if start >= now:
        raise InvalidInput(f"The time range begins at {moment(start)}, which is still to come. Give an earlier --from.")
    if end - start < SHORTEST:
        raise InvalidInput(f"The time range has {brief(end - start)}; give one of at least {brief(SHORTEST)}.")
    wanted = max((end - start) / MOST_STEPS, finest)
    step = next((each for each in STEPS if each >= wanted), -(-wanted // STEPS[-1]) * STEPS[-1])
    return Period(end, float(step), max(2, int(-(-(end - start) // step))))


@dataclass(frozen=True, slots=True)
class Counted:
    """A counter: how much it grew in each step, and in the whole period, by what tells its series apart."""

    each: Labelled = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """The pool went to another number of replicas."""

    at: float
    before: int
    after: int
    why: str


@dataclass(frozen=True, slots=True)
class Record:
    """What is known.

    ``source``: where from, for people. ``pool``: its name, after its namespace and a slash where it has one.
    ``gauges``: ready, waiting, running, expired, oldest (seconds), wanted, desired, available, starting, minimum and maximum,
    each the highest of its step. ``conditions``: 1 where the condition of that type was True. ``outcomes``: runs that ended by
    outcome, and tasks that ended :data:`WITHOUT_A_RUN`; ``errors``: those with an error, by its name; ``reasons``: decisions.
    ``waits``: starts of runs by the upper bound of their wait in seconds, each with all below it. ``notes``: what a reader has
    to know about the figures.
    """

    source: str
    pool: str
    period: Period
    gauges: Labelled
    conditions: Labelled
    outcomes: Counted
    errors: Counted
    reasons: Counted
    waits: Counted
    changes: Sequence[Change]
    notes: Sequence[str] = ()
