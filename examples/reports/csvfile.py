"""Reading a CSV file that may be anything: rows with their line numbers, or an error that names file and line."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TextIO

LINE_CHARS = 16 * 1024 * 1024
"""Longest line that is read. A file without line ends must not be read into memory whole."""

COLUMNS = 1000
"""Most columns of a file. SQLite has room for 2,000; more than this is a table turned on its side."""

NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\udc80-\udcff]")
"""Characters that no CSV file of text holds. The last range is what ``surrogateescape`` makes of undecodable bytes."""

BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class BadCsv(ValueError):
    """The file cannot be read as a table. The message names the file and, where there is one, the line."""

    @classmethod
    def at(cls, path: Path, line: int, what: str) -> Self:
        return cls(f"{path.name}, line {line}: {what}")


@dataclass(frozen=True, slots=True)
class Row:
    """One row. ``line`` is the number of its first line in the file, from 1."""

    line: int
    cells: list[str]


OnBad = Callable[[BadCsv], None]


def refuse(error: BadCsv) -> None:
    raise error


def read_rows(path: Path, on_bad: OnBad = refuse) -> Iterator[Row]:
    """Yield the header, then each row with as many cells as the header; blank lines are skipped.

    ``on_bad`` is called with what is wrong and raises it; one that returns skips the line instead, which is good enough to
    look at a file but not to load it. Raises :class:`BadCsv` also for an empty file and OSError for one that cannot be opened.
    """
    encoding = find_encoding(path)
    with path.open(encoding=encoding, errors="surrogateescape", newline="") as text:
        lines = _Lines(text, path, on_bad)
        rows = _parse(lines, _find_delimiter(text), on_bad)
        header = next(rows, None)
        if header is None:
            raise BadCsv(f"{path.name} is empty: a CSV file begins with a line of column names")
        if len(header.cells) > COLUMNS:
            raise BadCsv.at(path, header.line, f"{len(header.cells)} columns, at most {COLUMNS} are read")
        yield Row(header.line, _column_names(header.cells))
        yield from _even_rows(rows, len(header.cells), path, on_bad)


def find_encoding(path: Path, chunk_bytes: int = 1 << 20) -> str:
    """The encoding by byte order mark; else UTF-8 if all of the file is, else Windows-1252, which spreadsheets write."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        chunk = file.read(chunk_bytes)
        for mark, encoding in BYTE_ORDER_MARKS:
            if chunk.startswith(mark):
                return encoding
        try:
            while chunk:
                decoder.decode(chunk)
                chunk = file.read(chunk_bytes)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


class _Lines:
    """The lines of a file, counted and checked to be text."""

    def __init__(self, text: TextIO, path: Path, on_bad: OnBad) -> None:
        self.path = path
        self.number = 0
        self._text = text
        self._on_bad = on_bad

    def __iter__(self) -> Iterator[str]:
        while line := self._next_line():
            if len(line) > LINE_CHARS:
                raise BadCsv.at(self.path, self.number, f"more than {LINE_CHARS:,} characters in one line")
            if strange := NOT_TEXT.search(line):
                self._on_bad(BadCsv.at(self.path, self.number, _describe(strange)))
                continue
            yield line

    def _next_line(self) -> str:
        self.number += 1
        try:
            return self._text.readline(LINE_CHARS + 1)
        except UnicodeDecodeError as error:
            what = f"not {error.encoding} from here or soon after: {error.reason}"
            raise BadCsv.at(self.path, self.number, what) from error


def _describe(strange: re.Match[str]) -> str:
    code = ord(strange.group())
    byte = code - 0xDC00 if code >= 0xDC80 else code
    return f"byte 0x{byte:02x} at character {strange.start() + 1} is not text; is the file damaged?"


def _find_delimiter(text: TextIO) -> str:
    first = text.readline(LINE_CHARS)
    text.seek(0)
    return max(",;\t|", key=first.count)


def _parse(lines: _Lines, delimiter: str, on_bad: OnBad) -> Iterator[Row]:
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    while True:
        line = lines.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            on_bad(BadCsv.at(lines.path, line, f"{error}; is a quotation mark missing or not doubled?"))
            continue
        if any(cells):
            yield Row(line, cells)


def _even_rows(rows: Iterator[Row], width: int, path: Path, on_bad: OnBad) -> Iterator[Row]:
    for row in rows:
        if len(row.cells) == width:
            yield row
        else:
            on_bad(BadCsv.at(path, row.line, f"{_fields(len(row.cells))}, but the header has {width}"))


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _column_names(cells: list[str]) -> list[str]:
    """Names that differ even for SQLite, which ignores case: blank ones are numbered, repeated ones get a suffix."""
    taken: set[str] = set()
    names: list[str] = []
    for position, cell in enumerate(cells, start=1):
        base = " ".join(cell.split())[:100] or f"column {position}"
        name, number = base, 1
        while name.lower() in taken:
            number += 1
            name = f"{base} {number}"
        taken.add(name.lower())
        names.append(name)
    return names
