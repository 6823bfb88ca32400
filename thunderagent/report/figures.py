"""The figures of a page: the few that matter most, and the table of all series."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from thunderagent.report.charts import QUANTILES
from thunderagent.report.quantile import quantile
from thunderagent.report.record import WITHOUT_A_RUN, Record, Values
from thunderagent.report.words import NONE, clock, count, seconds
from thunderagent.times import span

FAILED = ("failed", *WITHOUT_A_RUN)
ENDED = ("success", "done", *FAILED)
"""Outcomes that end a task; after the others it comes back."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A key figure: what it is, the figure, and what to hold it against. ``is_bad``: somebody should look at it."""

    label: str
    value: str
    note: str = ""
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A series in figures, as a table shows it."""

    name: str
    lowest: str
    mean: str
    highest: str
    when: str
    last: str


def key_figures(record: Record) -> list[Figure]:
    """What a person on call wants to know first."""
    return [*_ended(record), _wait(record), _backlog(record), _oldest(record), _replicas(record), *_trouble(record)]


def rows(record: Record) -> list[Row]:
    """Every gauge of the record that has a value."""
    return [_row(record, name, values) for name, values in record.gauges.items() if _known(values)]


def wait_quantiles(record: Record) -> dict[str, float | None]:
    """Of all starts in the period, in seconds."""
    return {name: quantile(share, record.waits.totals) for name, share in QUANTILES.items()}


def _ended(record: Record) -> Iterator[Figure]:
    totals = record.outcomes.totals
    ended, failed, no_run = (sum(totals.get(name, 0.0) for name in names) for names in (ENDED, FAILED, WITHOUT_A_RUN))
    yield Figure("tasks ended", count(ended), f"{count(sum(totals.values()) - no_run)} runs")
    share = f"{100 * failed / ended:.1f}% of them" if ended else ""
    yield Figure("of these FAILED", count(failed), share, is_bad=round(failed) > 0)


def _wait(record: Record) -> Figure:
    found = wait_quantiles(record)
    note = f"p50 {seconds(found['p50'])}, p99 {seconds(found['p99'])}"
    return Figure("wait, p95", seconds(found["p95"]), note if found["p95"] is not None else "no run began")


def _backlog(record: Record) -> Figure:
    return Figure("most ready at once", *_highest(record, "ready", count))


def _oldest(record: Record) -> Figure:
    return Figure("oldest ready task", *_highest(record, "oldest", seconds))


def _replicas(record: Record) -> Figure:
    known = _known(record.gauges["desired"])
    value = f"{count(min(known))} to {count(max(known))}" if known else NONE
    limit = _known(record.gauges["maximum"])
    return Figure("replicas desired", value, f"at most {count(limit[-1])}" if limit else "")


def _trouble(record: Record) -> Iterator[Figure]:
    """For how long the pool could not be read, or ran on its fallback: nothing where all was well."""
    for kind, wrong, label in (("Ready", 0, "not Ready"), ("Fallback", 1, "on fallback")):
        steps = sum(value == wrong for value in record.conditions.get(kind, ()))
        if steps:
            yield Figure(label, span(steps * record.period.step), "in all", is_bad=True)


def _highest(record: Record, name: str, write: Callable[[float | None], str]) -> tuple[str, str]:
    values = record.gauges[name]
    known = _known(values)
    if not known:
        return NONE, "never read"
    top = max(known)
    return write(top), f"at {clock(record.period, values.index(top))}" if top else ""


def _row(record: Record, name: str, values: Values) -> Row:
    known = _known(values)
    top = max(known)
    write, write_mean = (seconds, seconds) if name == "oldest" else (count, partial(count, digits=1))
    return Row(
        name=NAMES[name],
        lowest=write(min(known)),
        mean=write_mean(sum(known) / len(known)),
        highest=write(top),
        when=clock(record.period, values.index(top)),
        last=write(known[-1]),
    )


def _known(values: Values) -> list[float]:
    return [value for value in values if value is not None]


NAMES = {
    "ready": "ready tasks",
    "waiting": "waiting tasks",
    "running": "running tasks",
    "expired": "expired leases",
    "oldest": "oldest ready task",
    "wanted": "replicas wanted",
    "desired": "replicas desired",
    "available": "replicas available",
    "starting": "replicas starting",
    "minimum": "fewest replicas",
    "maximum": "most replicas",
}
