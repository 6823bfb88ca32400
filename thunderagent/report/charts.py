"""What the charts of a page show, as values: which series, in which order, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from thunderagent.metrics import OUTCOMES
from thunderagent.report.quantile import quantile
from thunderagent.report.record import WITHOUT_A_RUN, Counted, Record, Values
from thunderagent.times import brief

TOLD_APART = 5
"""Errors and reasons that have a colour of their own; the rest is drawn as one."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

OTHERS = "others"

_COLOURS = ("s1", "s2", "s3", "s4", "s5", "s6")
_BAD_COLOURS = ("bad", "s2", "s6", "s5", "s4")
_ALL_OUTCOMES = (*OUTCOMES, *WITHOUT_A_RUN)
_OUTCOME_COLOURS = dict(zip(_ALL_OUTCOMES, ("s3", "s1", "s2", "bad", "s4", "quiet", "s6", "s5", "s7", "ink"), strict=True))


class Kind(Enum):
    """How a chart is drawn: lines, lines that stay until they change, columns on top of each other, or bands of true."""

    LINES = auto()
    STAIRS = auto()
    COLUMNS = auto()
    BANDS = auto()


class Unit(Enum):
    """What the numbers of a chart are."""

    COUNT = auto()
    SECONDS = auto()


@dataclass(frozen=True, slots=True)
class Curve:
    """A series. ``colour`` is the class that the page's style gives a colour to; ``is_bound``: drawn as a limit of others."""

    name: str
    values: Values
    colour: str
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """``text`` says in a sentence what it shows."""

    title: str
    text: str
    kind: Kind
    unit: Unit
    curves: Sequence[Curve]


def charts(record: Record) -> list[Chart]:
    """All that the record has something for, in the order in which a person on call asks."""
    each = f"in {brief(record.period.step)}"
    found = [
        _backlog(record),
        _oldest(record),
        _replicas(record),
        Chart(
            "Waits",
            f"From ready to the start of a run, of those that started {each}.",
            Kind.LINES,
            Unit.SECONDS,
            _waits(record),
        ),
        Chart(
            "Outcomes",
            f"What ended {each}: runs by what came of them, and tasks that FAILED without one.",
            Kind.COLUMNS,
            Unit.COUNT,
            list(_outcomes(record)),
        ),
        Chart(
            "Failures",
            f"Runs that ended with an error {each}.",
            Kind.COLUMNS,
            Unit.COUNT,
            _largest(record.errors, _BAD_COLOURS),
        ),
        Chart(
            "Why as many replicas",
            f"Decisions {each}, by the reason that settled them.",
            Kind.COLUMNS,
            Unit.COUNT,
            _largest(record.reasons, _COLOURS),
        ),
        Chart(
            "Conditions",
            "Filled: the condition was True. Ready is filled only where it was so all the time.",
            Kind.BANDS,
            Unit.COUNT,
            list(_conditions(record)),
        ),
    ]
    return [chart for chart in found if any(value is not None for curve in chart.curves for value in curve.values)]


def waits_of(record: Record, step: int) -> Mapping[str, float | None]:
    """The buckets of the waits that began in a step."""
    return {bound: values[step] for bound, values in record.waits.each.items()}


def _backlog(record: Record) -> Chart:
    text = "Tasks: ready to be claimed, running, waiting for others, and running past the end of their lease."
    colours = {"ready": "s1", "running": "s3", "waiting": "s4", "expired": "bad"}
    curves = [Curve(name, record.gauges[name], colour) for name, colour in colours.items()]
    return Chart("Backlog", text, Kind.LINES, Unit.COUNT, curves)


def _oldest(record: Record) -> Chart:
    curves = [Curve("oldest ready task", record.gauges["oldest"], "s2")]
    return Chart("Age of the oldest ready task", "How long it had been ready for an agent.", Kind.LINES, Unit.SECONDS, curves)


def _replicas(record: Record) -> Chart:
    text = "What was asked for against what was there, and the most that the pool may have."
    curves = [
        Curve("at most", record.gauges["maximum"], "quiet", is_bound=True),
        Curve("wanted by the backlog", record.gauges["wanted"], "s4", is_bound=True),
        Curve("desired", record.gauges["desired"], "s2"),
        Curve("available", record.gauges["available"], "s1"),
    ]
    return Chart("Replicas", text, Kind.STAIRS, Unit.COUNT, curves)


def _waits(record: Record) -> list[Curve]:
    buckets = [waits_of(record, step) for step in range(record.period.count)]
    colours = zip(QUANTILES.items(), ("s3", "s1", "s2"), strict=True)
    return [Curve(name, [quantile(share, each) for each in buckets], colour) for (name, share), colour in colours]


def _outcomes(record: Record) -> Iterator[Curve]:
    for outcome in (*_ALL_OUTCOMES, *sorted(set(record.outcomes.each) - set(_ALL_OUTCOMES))):
        if round(record.outcomes.totals.get(outcome, 0.0)):
            yield Curve(outcome, record.outcomes.each.get(outcome, ()), _OUTCOME_COLOURS.get(outcome, "quiet"))


def _largest(counted: Counted, colours: Sequence[str]) -> list[Curve]:
    """The series that have most, and all others as one."""
    names = sorted(counted.each, key=lambda name: -counted.totals.get(name, 0.0))
    names = [name for name in names if round(counted.totals.get(name, 0.0))]
    shown = names if len(names) <= TOLD_APART else names[: TOLD_APART - 1]
    curves = [Curve(name, counted.each[name], colour) for name, colour in zip(shown, colours, strict=False)]
    rest = names[len(shown) :]
    if rest:
        curves.append(Curve(OTHERS, _sum([counted.each[name] for name in rest]), "quiet"))
    return curves


def _sum(series: Sequence[Values]) -> list[float | None]:
    return [
        sum(known) if (known := [value for value in values if value is not None]) else None
        for values in zip(*series, strict=True)
    ]


def _conditions(record: Record) -> Iterator[Curve]:
    for kind, colour in (("Ready", "s3"), ("Active", "s1"), ("Paused", "s4"), ("Fallback", "bad")):
        if kind in record.conditions:
            yield Curve(kind, record.conditions[kind], colour)
