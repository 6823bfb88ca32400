"""Data on stdout, messages on stderr; tables drawn on a terminal and plain aligned columns anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from io import TextIOWrapper
from shutil import get_terminal_size
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

import click

from thunderagent.cli.jsonvalues import write_json

F = TypeVar("F", bound=Callable[..., Any])

STYLES = {
    "PENDING": "yellow",
    "RUNNING": "cyan",
    "SUCCESS": "green",
    "DONE": "green",
    "FAILED": "red",
    "error": "bold red",
    "warning": "yellow",
    "info": "dim",
}
"""How a cell with exactly this text is drawn on a terminal."""

SHORT = 12
"""Characters of a column that is never broken into lines."""

NARROW = 80
"""Columns of a terminal below which a table's cells would break into too many lines to be read."""


class Form(StrEnum):
    """What ``-o`` chooses. Only commands that write many things have ``jsonl``."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


def output_option(*forms: Form) -> Callable[[F], F]:
    """The option ``-o`` over these forms, the first being the default."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice([str(form) for form in forms]),
        callback=lambda _ctx, _option, value: Form(value),
        default=str(forms[0]),
        show_default=True,
        help="How the data is written to stdout.",
    )


def say(message: str) -> None:
    """A message to the person at the terminal: one line on stderr."""
    click.echo(printable(message), err=True)


def printable(text: str, *, keep: str = "") -> str:
    """The text with control characters escaped, as in ``\\x1b``: what others put into a table must not drive a terminal."""
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text
    )


def on_terminal(stream: TextIO) -> bool:
    return stream.isatty()


def escape_what_cannot_be_written() -> None:
    """Let text that stdout's encoding lacks come out as ``\\u20ac`` instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _json(value: Any, *, indent: int | None = None) -> str:
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    return write_json(value, indent=indent, ascii_only=not unicode)


def print_json(value: Any) -> None:
    """One value, indented."""
    click.echo(_json(value, indent=2))


class JsonStream:
    """Values written one by one as they come: as lines, or as the elements of one array."""

    def __init__(self, form: Form) -> None:
        self._array = form is Form.JSON
        self._any = False

    def __enter__(self) -> Self:
        return self

    def write(self, value: Any) -> None:
        """Write one value, and let a reader at the other end of a pipe have it now."""
        if self._array:
            click.echo(",\n" if self._any else "[\n", nl=False)
        self._any = True
        click.echo(_json(value), nl=not self._array)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the array: also after an error, what was written stays readable; not on a pipe that is closed."""
        if self._array and not isinstance(error, BrokenPipeError):
            click.echo("\n]" if self._any else "[]")


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows under titles. Nothing is left out: cells break into lines, and on a narrow terminal whole rows do."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if on_terminal(sys.stdout) and get_terminal_size().columns >= NARROW:
        _print_drawn(titles, cells)
    else:
        for line in plain_lines(titles, cells):
            click.echo(line)


def plain_lines(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, two spaces apart, an empty cell as ``-``: one line a row, for grep and awk."""
    table = [[title.upper() for title in titles], *([cell or "-" for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(titles))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def print_fields(fields: Mapping[str, str]) -> None:
    """Names and values, one a line; a value of several lines is indented under its first."""
    width = max(map(len, fields))
    terminal = on_terminal(sys.stdout)
    for name, value in fields.items():
        text = printable(value, keep="\n").replace("\n", "\n" + " " * (width + 2))
        label = name.ljust(width)
        click.echo(f"{click.style(label, bold=True) if terminal else label}  {text}")


def _print_drawn(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box  # noqa: PLC0415 - rich is slower to import than the rest of a plain command
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for position, title in enumerate(titles):
        short = all(len(row[position]) <= SHORT for row in rows)
        table.add_column(title, overflow="fold", no_wrap=short)
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    Console(file=sys.stdout, highlight=False, markup=False).print(table)


class ProgressLine:
    """What is being waited for: one line that changes on a terminal, a line for each change elsewhere. On stderr."""

    def __init__(self) -> None:
        self._last = ""
        self._drawn = on_terminal(sys.stderr)

    def show(self, text: str) -> None:
        if self._drawn:
            click.echo(f"\r\x1b[K{printable(text)}", nl=False, err=True)
        elif text != self._last:
            say(text)
        self._last = text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Clear the line, so that the next message stands where it stood."""
        if self._drawn and self._last:
            click.echo("\r\x1b[K", nl=False, err=True)
