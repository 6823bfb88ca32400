"""Questions to the SQLite file of one CSV: each a method that returns plain values, none reads all rows into memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from examples.reports.columns import Kind
from examples.reports.grouping import By
from examples.reports.load import quoted

Point = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of a file: a condition over its columns, and the values for it."""

    where: str = "1"
    values: tuple[str, ...] = ()

    def without(self) -> Slice:
        """The other rows."""
        return Slice(f"NOT coalesce({self.where}, 0)", self.values)


ALL = Slice()


def slice_for(by: By, column: str, key: str) -> Slice:
    """The rows a report is about. Times are ISO 8601, so those of a month or year are the ones that begin with its key."""
    if by is By.COLUMN:
        return ALL
    if by is By.GROUP:
        return Slice(f"{quoted(column)} = ?", (key,))
    return Slice(f"{quoted(column)} >= ? AND {quoted(column)} < ?", (key, key + "~"))


@dataclass(frozen=True, slots=True)
class Figures:
    """One column of numbers in one slice. ``low_at`` and ``high_at`` are where its ends stand first, "" without times."""

    column: str
    count: int
    missing: int
    low: float
    low_at: str
    mean: float
    median: float
    high: float
    high_at: str


class Database:
    """One loaded CSV file. ``time`` is its first column of times, if it has one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.kinds = {name: Kind(kind) for name, kind in self._rows("SELECT name, kind FROM columns ORDER BY position")}
        self.time = next(iter(self.names(Kind.TIME)), None)

    def names(self, kind: Kind) -> list[str]:
        return [name for name, each in self.kinds.items() if each is kind]

    def count(self, part: Slice = ALL) -> int:
        return int(self._one(f"SELECT count(*) FROM data WHERE {part.where}", part.values)[0])

    def mean(self, column: str, part: Slice = ALL) -> float | None:
        mean: float | None = self._one(f"SELECT avg({quoted(column)}) FROM data WHERE {part.where}", part.values)[0]
        return mean

    def figures(self, column: str, part: Slice) -> Figures | None:
        """The figures of a column of numbers; None where the slice holds no number."""
        name = quoted(column)
        query = f"SELECT count(*), count({name}), min({name}), avg({name}), max({name}) FROM data WHERE {part.where}"
        rows, count, low, mean, high = self._one(query, part.values)
        if not count:
            return None
        ends = [self._first_time(name, part, value) for value in (low, high)]
        return Figures(column, count, rows - count, low, ends[0], mean, self._median(name, part, count), high, ends[1])

    def points(self, columns: list[str], part: Slice, most: int) -> list[Point]:
        """Rows of these columns without missing values, in order of the first; evenly thinned to about ``most``."""
        names = [quoted(column) for column in columns]
        filled = " AND ".join(f"{name} IS NOT NULL" for name in names)
        source = f"FROM data WHERE ({part.where}) AND {filled}"
        step = max(1, ceil(self._one(f"SELECT count(*) {source}", part.values)[0] / most))
        cursor = self._connection.execute(f"SELECT {', '.join(names)} {source} ORDER BY 1, rowid", part.values)
        return [row for position, row in enumerate(cursor) if position % step == 0]

    def daily(self, column: str, part: Slice) -> list[Point]:
        """Day, lowest, mean and highest value of each day that has one. The file must have a column of times."""
        return self._ranges(column, part, f"substr({quoted(self._time())}, 1, 10)")

    def hourly(self, column: str, part: Slice) -> list[Point]:
        """As :meth:`daily`, for each hour of the day: all days in one."""
        return self._ranges(column, part, f"substr({quoted(self._time())}, 12, 2)")

    def _ranges(self, column: str, part: Slice, key: str) -> list[Point]:
        name = quoted(column)
        return self._rows(
            f"SELECT {key}, min({name}), avg({name}), max({name}) FROM data"
            f" WHERE ({part.where}) AND {name} IS NOT NULL AND {key} IS NOT NULL GROUP BY 1 ORDER BY 1",
            part.values,
        )

    def top(self, column: str, part: Slice, most: int) -> list[Point]:
        """The most frequent values of a column and how often each stands there."""
        name = quoted(column)
        return self._rows(
            f"SELECT {name}, count(*) FROM data WHERE ({part.where}) AND {name} IS NOT NULL"
            " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?",
            (*part.values, most),
        )

    def distinct(self, column: str, part: Slice) -> int:
        return int(self._one(f"SELECT count(DISTINCT {quoted(column)}) FROM data WHERE {part.where}", part.values)[0])

    def bins(self, column: str, part: Slice, low: float, width: float) -> list[Point]:
        """How many numbers of a column are in each interval of ``width`` from ``low``, by the interval's position."""
        name = quoted(column)
        return self._rows(
            f"SELECT CAST(({name} - ?) / ? AS INTEGER), count(*) FROM data"
            f" WHERE ({part.where}) AND {name} IS NOT NULL GROUP BY 1",
            (low, width, *part.values),
        )

    def years(self) -> list[str]:
        year = f"substr({quoted(self._time())}, 1, 4)"
        return [year for (year,) in self._rows(f"SELECT DISTINCT {year} FROM data WHERE {year} IS NOT NULL ORDER BY 1")]

    def ends(self, column: str, part: Slice) -> tuple[Point, Point] | None:
        """Time and value of the first and the last number of a column; None where no number has a time."""
        time, name = quoted(self._time()), quoted(column)
        query = f"SELECT {time}, {name} FROM data WHERE ({part.where}) AND {name} IS NOT NULL AND {time} IS NOT NULL"
        first = self._rows(f"{query} ORDER BY 1, rowid LIMIT 1", part.values)
        last = self._rows(f"{query} ORDER BY 1 DESC, rowid DESC LIMIT 1", part.values)
        return (first[0], last[0]) if first else None

    def repeating(self, part: Slice, but: str = "") -> list[str]:
        """Columns of text in which some value stands more than once, but not the same in all rows; the coarsest first.

        A column of names says nothing as a figure or a chart, even where two rows happen to share one.
        """
        names = [name for name in self.names(Kind.TEXT) if name != but]
        distinct = {name: self.distinct(name, part) for name in names}
        repeated = [name for name in names if distinct[name] > 1 and self.top(name, part, 1)[0][1] > 1]
        return sorted(repeated, key=lambda name: distinct[name])

    def preview(self, part: Slice, most: int) -> list[Point]:
        order = quoted(self.time) if self.time else "rowid"
        return self._rows(f"SELECT * FROM data WHERE {part.where} ORDER BY {order}, rowid LIMIT ?", (*part.values, most))

    def _median(self, name: str, part: Slice, count: int) -> float:
        middle = (
            f"SELECT {name} AS value FROM data WHERE ({part.where}) AND {name} IS NOT NULL"
            f" ORDER BY 1 LIMIT {2 - count % 2} OFFSET {(count - 1) // 2}"
        )
        return float(self._one(f"SELECT avg(value) FROM ({middle})", part.values)[0])

    def _first_time(self, name: str, part: Slice, value: float) -> str:
        if self.time is None:
            return ""
        query = f"SELECT min({quoted(self.time)}) FROM data WHERE ({part.where}) AND {name} = ?"
        return self._one(query, (*part.values, value))[0] or ""

    def _time(self) -> str:
        if self.time is None:
            raise ValueError("the file has no column of times")
        return self.time

    def _one(self, query: str, values: tuple[Any, ...] = ()) -> Point:
        row: Point = self._connection.execute(query, values).fetchone()
        return row

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Point]:
        return self._connection.execute(query, values).fetchall()


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open the SQLite file of an import for reading. Raises sqlite3.OperationalError where there is none."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        yield Database(connection)
