"""A record from the samples of a local pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from thunderagent.errors import NoReport
from thunderagent.report.record import Change, Counted, Labelled, Period, Record, Values
from thunderagent.report.sample import LeftOut, PoolSample
from thunderagent.times import moment

GAUGES = (
    "ready",
    "waiting",
    "running",
    "expired",
    "oldest",
    "wanted",
    "desired",
    "available",
    "starting",
    "minimum",
    "maximum",
)

PER_STEP = 3.0
"""Steps are at least this many times as long as the time between two samples, so that each has some."""


SILENCE = 60.0
"""Seconds without a sample after which nothing is known of the pool: a reading may take 30."""


def of_pool(samples: Sequence[PoolSample], name: str | None) -> list[PoolSample]:
    """The samples of one pool. Raises NoReport where there is none of that name, or a name is needed and not given."""
    names = sorted({each.pool for each in samples})
    known = ", ".join(names)
    if name is None and len(names) > 1:
        raise NoReport(f"The samples are of several pools: {known}. Choose one with --pool.")
    found = [each for each in samples if name in (None, each.pool)]
    if not found:
        raise NoReport(f"There are no samples of the pool {name}, only of {known}. Correct --pool.")
    return found


def finest_step(samples: Sequence[PoolSample]) -> float:
    """The shortest step, in seconds, in which there usually is a sample."""
    return PER_STEP * median([after.at - before.at for before, after in pairwise(samples)] or [1.0])


def record_of_samples(samples: Sequence[PoolSample], period: Period, source: str, left_out: Sequence[LeftOut] = ()) -> Record:
    """What the samples, all of one pool and in order, tell of the period. Raises NoReport where none lies in it."""
    inside = [each for each in samples if 0 <= period.number_of(each.at) < period.count]
    if not inside:
        first, last = moment(samples[0].at), moment(samples[-1].at)
        raise NoReport(
            f"There are samples from {first} to {last}, and none from {moment(period.start)} to {moment(period.end)}. "
            "Correct --from and --to, or leave them out for all that there is."
        )
    return Record(
        source=source,
        pool=inside[0].pool,
        period=period,
        gauges={name: _highest(inside, period, [getattr(each, name) for each in inside]) for name in GAUGES},
        conditions=_conditions(inside, period),
        outcomes=_counted(samples, period, [each.tasks for each in samples]),
        errors=_counted(samples, period, [each.errors for each in samples]),
        reasons=_reasons(inside, period),
        waits=_counted(samples, period, [each.waits for each in samples]),
        changes=list(_changes(inside)),
        notes=list(_notes(left_out)),
    )


def _highest(samples: Sequence[PoolSample], period: Period, values: Values) -> Values:
    """Of the samples in each step. A step without any goes on from the one before, for as long as the pool may be busy."""
    found: list[float | None] = [None] * period.count
    for sample, value in zip(samples, values, strict=True):
        step = period.number_of(sample.at)
        before = found[step]
        if value is not None:
            found[step] = value if before is None else max(before, value)
    for step in _without(samples, period):
        found[step] = found[step - 1]
    return found


def _without(samples: Sequence[PoolSample], period: Period) -> list[int]:
    """The steps in which there is no sample, but one not long before."""
    last = {period.number_of(each.at): each.at for each in samples}
    steps, seen = [], float("-inf")
    for step, end in enumerate(period.ends):
        seen = last.get(step, seen)
        if step not in last and end - seen <= SILENCE:
            steps.append(step)
    return steps


def _conditions(samples: Sequence[PoolSample], period: Period) -> Labelled:
    """Ready is True in a step if it was so all the time, each other one if it was so at any."""
    found = {}
    for kind in dict.fromkeys(name for each in samples for name in each.conditions):
        sign = -1 if kind == "Ready" else 1
        values = [None if kind not in each.conditions else sign * float(each.conditions[kind]) for each in samples]
        found[kind] = [None if value is None else sign * value for value in _highest(samples, period, values)]
    return found


def _counted(samples: Sequence[PoolSample], period: Period, counts: Sequence[Mapping[str, float]]) -> Counted:
    """How much counts grew. They begin at 0 with each process of the pool. The first sample is where they grow from."""
    each: dict[str, list[float | None]] = defaultdict(lambda: _nothing_yet(samples, period))
    totals: dict[str, float] = defaultdict(float)
    before, began = counts[0], samples[0].began
    for sample, count in zip(samples, counts, strict=True):
        step = period.number_of(sample.at)
        for name, value in count.items():
            grown = value - (before.get(name, 0.0) if sample.began == began else 0.0)
            if 0 <= step < period.count:
                each[name][step] = (each[name][step] or 0.0) + grown
                totals[name] += grown
        before, began = count, sample.began
    return Counted(dict(each), dict(totals))


def _nothing_yet(samples: Sequence[PoolSample], period: Period) -> list[float | None]:
    known = {*(period.number_of(sample.at) for sample in samples), *_without(samples, period)}
    return [0.0 if step in known else None for step in range(period.count)]


def _reasons(samples: Sequence[PoolSample], period: Period) -> Counted:
    each: dict[str, list[float | None]] = defaultdict(lambda: _nothing_yet(samples, period))
    totals: dict[str, float] = defaultdict(float)
    for sample in samples:
        step = period.number_of(sample.at)
        each[sample.reason][step] = (each[sample.reason][step] or 0.0) + 1
        totals[sample.reason] += 1
    return Counted(dict(each), dict(totals))


def _changes(samples: Sequence[PoolSample]) -> Iterator[Change]:
    for each in samples:
        if each.was != each.desired:
            yield Change(each.at, each.was, each.desired, each.sentence)


def _notes(left_out: Sequence[LeftOut]) -> Iterator[str]:
    if left_out:
        lines = "One line of the file was" if len(left_out) == 1 else f"{len(left_out)} lines of the file were"
        yield f"{lines} left out. Line {left_out[0].line}: {left_out[0].why}."
