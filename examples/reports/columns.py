"""What the columns of a CSV file hold: numbers, times or text, found out from every value in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""Spellings of "no value" in columns of numbers and times, in lower case. Text is kept as it stands: NA may be Namibia."""

NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d{0,30})(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?", re.ASCII)
"""Decimal numbers, none so large that it becomes infinite. ``00501`` is left out on purpose: postcodes and article
numbers are names, not amounts."""

TIME_FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%b %d %Y",
    "%d %b %Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d.%m.%Y",
)
"""One of these has to fit all values of a column. Where two do (03/04/2012), the earlier one is taken."""


class Kind(StrEnum):
    """What a column holds, which is also how SQLite keeps it: REAL, TEXT (ISO 8601) or TEXT."""

    NUMBER = "number"
    TIME = "time"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and kind. ``time_format`` is set for times only."""

    name: str
    kind: Kind
    time_format: str = ""

    def value(self, cell: str) -> float | str | None:
        """The cell as SQLite gets it; None where there is no value. Raises ValueError where the kind does not fit."""
        if self.kind is Kind.TEXT:
            return cell or None
        if is_missing(cell):
            return None
        return float(cell) if self.kind is Kind.NUMBER else iso_time(cell, self.time_format)

    def to_record(self) -> dict[str, str]:
        return {"name": self.name, "kind": self.kind, "timeFormat": self.time_format}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        return cls(record["name"], Kind(record["kind"]), record["timeFormat"])


class _Guess:
    """What one column can still be after the cells seen so far."""

    def __init__(self) -> None:
        self.seen = False
        self.is_number = True
        self.formats: tuple[str, ...] = TIME_FORMATS

    def look(self, cell: str) -> None:
        if not (self.is_number or self.formats) or is_missing(cell):
            return
        self.seen = True
        self.is_number = self.is_number and NUMBER.fullmatch(cell.strip()) is not None
        self.formats = tuple(each for each in self.formats if _fits(cell, each))

    def column(self, name: str) -> Column:
        if self.seen and self.is_number:
            return Column(name, Kind.NUMBER)
        if self.seen and self.formats:
            return Column(name, Kind.TIME, self.formats[0])
        return Column(name, Kind.TEXT)


def infer_columns(names: list[str], rows: Iterable[list[str]]) -> list[Column]:
    """The kind of each column, after one pass over rows that are as long as ``names``."""
    guesses = [_Guess() for _ in names]
    for cells in rows:
        for guess, cell in zip(guesses, cells, strict=True):
            guess.look(cell)
    return [guess.column(name) for guess, name in zip(guesses, names, strict=True)]


def is_missing(cell: str) -> bool:
    return len(cell) < 16 and cell.strip().lower() in MISSING


def iso_time(cell: str, time_format: str) -> str:
    """``YYYY-MM-DD HH:MM:SS``, in UTC where the cell has an offset. Raises ValueError where the format does not fit."""
    moment = datetime.strptime(cell.strip(), time_format)  # noqa: DTZ007 (files seldom name a zone)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(" ", "seconds")


def _fits(cell: str, time_format: str) -> bool:
    if not cell.strip()[:1].isalnum():
        return False
    try:
        iso_time(cell, time_format)
    except (ValueError, OverflowError):
        return False
    return True
