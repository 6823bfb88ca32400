"""One CSV file into one SQLite file, whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

from examples.reports.columns import Column, Kind, infer_columns
from examples.reports.csvfile import BadCsv, Row, read_rows
from examples.reports.files import replacing

BATCH_ROWS = 5000
"""Rows between two calls of ``on_rows``: some tens of milliseconds of work."""

SQL_TYPES = {Kind.NUMBER: "REAL", Kind.TIME: "TEXT", Kind.TEXT: "TEXT"}


@dataclass(frozen=True, slots=True)
class Survey:
    """What the first pass over a file found. ``size`` (bytes) and ``changed_at`` (ns) say which state of it was read."""

    columns: tuple[Column, ...]
    rows: int
    size: int
    changed_at: int

    def is_of(self, path: Path) -> bool:
        """Whether the file is still as it was when it was surveyed."""
        stat = path.stat()
        return (stat.st_size, stat.st_mtime_ns) == (self.size, self.changed_at)

    def to_record(self) -> dict[str, Any]:
        """As a checkpoint holds it."""
        columns = [column.to_record() for column in self.columns]
        return {"columns": columns, "rows": self.rows, "size": self.size, "changedAt": self.changed_at}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        columns = tuple(Column.from_record(column) for column in record["columns"])
        return cls(columns, int(record["rows"]), int(record["size"]), int(record["changedAt"]))


def survey(path: Path) -> Survey:
    """Read all of the file once: that it is a table, what its columns hold and how many rows it has.

    Raises :class:`BadCsv` at the first line that is not right, and for a file without rows.
    """
    stat = path.stat()
    rows = read_rows(path)
    names = next(rows).cells
    count = 0

    def counted() -> Iterator[list[str]]:
        nonlocal count
        for row in rows:
            count += 1
            yield row.cells

    columns = infer_columns(names, counted())
    if not count:
        raise BadCsv(f"{path.name} has a header and no rows")
    return Survey(tuple(columns), count, stat.st_size, stat.st_mtime_ns)


def load(
    path: Path,
    database: Path,
    found: Survey,
    *,
    index_on: Sequence[str] = (),
    on_rows: Callable[[int], None] | None = None,
) -> int:
    """Load the CSV file into a new SQLite file, which then takes the place of ``database``; returns the rows in it.

    ``found`` is the survey of this very state of the file. ``on_rows`` is called with the rows loaded so far, now and then;
    what it raises ends the load. Raises :class:`BadCsv`; nothing is left behind and an older database stays as it was.
    """
    with replacing(database) as partial, closing(sqlite3.connect(partial, isolation_level=None)) as connection:
        # The file is thrown away unless all goes well, so a journal or syncing would only cost time.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        _create(connection, path.name, found)
        count = _fill(connection, path, found.columns, on_rows)
        for name in index_on:
            connection.execute(f"CREATE INDEX {quoted('by ' + name)} ON data ({quoted(name)})")
        connection.execute("COMMIT")
    return count


def quoted(name: str) -> str:
    """A column name as an SQL identifier: names come from files, so they hold anything."""
    return '"' + name.replace('"', '""') + '"'


def _create(connection: sqlite3.Connection, name: str, found: Survey) -> None:
    fields = ", ".join(f"{quoted(column.name)} {SQL_TYPES[column.kind]}" for column in found.columns)
    connection.execute(f"CREATE TABLE data ({fields})")
    connection.execute("CREATE TABLE columns (position INTEGER, name TEXT, kind TEXT)")
    kinds = [(position, column.name, column.kind.value) for position, column in enumerate(found.columns)]
    connection.executemany("INSERT INTO columns VALUES (?, ?, ?)", kinds)
    connection.execute("CREATE TABLE source (name TEXT, rows INTEGER)")
    connection.execute("INSERT INTO source VALUES (?, ?)", (name, found.rows))


def _fill(connection: sqlite3.Connection, path: Path, columns: Sequence[Column], on_rows: Callable[[int], None] | None) -> int:
    rows = read_rows(path)
    next(rows)
    insert = f"INSERT INTO data VALUES ({', '.join('?' * len(columns))})"
    count = 0
    while batch := [_values(row, columns, path) for row in islice(rows, BATCH_ROWS)]:
        connection.executemany(insert, batch)
        count += len(batch)
        if on_rows:
            on_rows(count)
    return count


def _values(row: Row, columns: Sequence[Column], path: Path) -> list[float | str | None]:
    try:
        return [column.value(cell) for column, cell in zip(columns, row.cells, strict=True)]
    except ValueError as error:
        raise BadCsv.at(path, row.line, f"not as in the first pass, the file was changed meanwhile: {error}") from error
