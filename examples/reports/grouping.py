"""Which reports a file is worth: one a month, one a group of rows, or one a column.

A planner must be quick, so this looks at the first rows of a file (and once over its bytes, for the encoding), leniently:
lines that cannot be read are the import's business, which names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path

from examples.reports.columns import Column, Kind, infer_columns, is_missing, iso_time
from examples.reports.csvfile import BadCsv, read_rows

PLAN_ROWS = 100_000
"""Rows that are looked at: about a second of reading. A month or group that begins later gets no report of its own."""

MAX_PERIODS = 60
"""Most reports of one file that is cut by time: five years of months. A longer one is cut by year."""

MAX_GROUPS = 24
"""Most reports of one file that is cut by group or column; the groups with most rows come first."""

MAX_DISTINCT = 200
"""A text column with more different values than this is a name or an id, not a grouping."""

MIN_ROWS_PER_GROUP = 5
"""Groups that are smaller on average than this have nothing to draw."""


class By(StrEnum):
    """How rows are chosen for a report: by month, by year, by the value of a column, or all rows of one column."""

    MONTH = "month"
    YEAR = "year"
    GROUP = "group"
    COLUMN = "column"


@dataclass(frozen=True, slots=True)
class Grouping:
    """The reports of a file. ``column`` is the one that keys are values of, "" where the keys are columns themselves."""

    by: By
    column: str = ""
    keys: tuple[str, ...] = ()
    left_out: int = 0


@dataclass(slots=True)
class Profile:
    """What was seen of a file. Counters hold rows per value (text) or rows per moment (time), by column name."""

    columns: list[Column] = field(default_factory=list)
    rows: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)
    moments: dict[str, Counter[str]] = field(default_factory=dict)

    def names(self, kind: Kind) -> list[str]:
        return [column.name for column in self.columns if column.kind is kind]


def find_grouping(path: Path) -> Grouping:
    """The grouping of a CSV file; one without keys where nothing in it can be read, so that only the import is planned."""
    try:
        return choose(profile(path))
    except BadCsv:
        return Grouping(By.COLUMN)


def profile(path: Path, limit: int = PLAN_ROWS) -> Profile:
    """Look at the first rows of a file, passing over bad ones. Raises BadCsv where not even a header can be read."""
    rows = read_rows(path, on_bad=lambda _: None)
    names = next(rows).cells
    cells = [row.cells for row in islice(rows, limit)]
    seen = Profile(infer_columns(names, cells), len(cells))
    for column, values in zip(seen.columns, zip(*cells, strict=True), strict=False):
        if column.kind is Kind.TEXT:
            seen.values[column.name] = Counter(value for value in values if value)
        elif column.kind is Kind.TIME:
            moments = (iso_time(value, column.time_format) for value in values if not is_missing(value))
            seen.moments[column.name] = Counter(moments)
    return seen


def choose(seen: Profile) -> Grouping:
    """The grouping that suits what was seen: a series by month, several series by their name, else column by column."""
    if not seen.rows:
        return Grouping(By.COLUMN)
    group = _group_column(seen)
    time = next(iter(seen.moments), None)
    if group and (time is None or _repeats(seen.moments[time])):
        return _by_group(group, seen.values[group])
    if time and (periods := _by_period(time, seen.moments[time])):
        return periods
    return _by_column(seen)


def _group_column(seen: Profile) -> str | None:
    """The text column with the finest grouping that still has enough rows a group."""
    fit = {
        name: len(counts)
        for name, counts in seen.values.items()
        if 2 <= len(counts) <= MAX_DISTINCT and seen.rows >= MIN_ROWS_PER_GROUP * len(counts)
    }
    return max(fit, key=lambda name: fit[name]) if fit else None


def _repeats(moments: Counter[str]) -> bool:
    """Whether the same moments come again and again, as where a file holds several series one below the other."""
    return moments.total() >= 1.5 * len(moments)


def _by_group(column: str, counts: Counter[str]) -> Grouping:
    largest = sorted(counts, key=lambda value: (-counts[value], value))[:MAX_GROUPS]
    return Grouping(By.GROUP, column, tuple(sorted(largest)), len(counts) - len(largest))


def _by_period(column: str, moments: Counter[str]) -> Grouping | None:
    """One a month, or one a year where that would be too many; none for a series with a value a month or less."""
    months = {moment[: len("2012-01")] for moment in moments}
    if len(months) < 2 or moments.total() < MIN_ROWS_PER_GROUP * len(months):
        return None
    by = By.MONTH if len(months) <= MAX_PERIODS else By.YEAR
    periods = sorted(months if by is By.MONTH else {month[: len("2012")] for month in months})
    return Grouping(by, column, tuple(periods[-MAX_PERIODS:]), max(0, len(periods) - MAX_PERIODS))


def _by_column(seen: Profile) -> Grouping:
    names: Sequence[str] = seen.names(Kind.NUMBER) or seen.names(Kind.TEXT) or seen.names(Kind.TIME)
    return Grouping(By.COLUMN, "", tuple(names[:MAX_GROUPS]), max(0, len(names) - MAX_GROUPS))
