"""What a benchmark says: figures, their goals, and the table and JSON that they are printed as."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH = 170
"""Columns of the table where nobody looks at a terminal."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound that a figure is to keep. It is printed, never enforced: a busy machine is no defect of the program."""

    bound: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"

    def met_by(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured or computed number. ``samples`` are what its median was taken of; empty where it was computed."""

    name: str
    value: float
    unit: str
    compared_with: str
    how: str
    goal: Goal | None = None
    samples: tuple[float, ...] = ()

    @property
    def verdict(self) -> str:
        """The goal and whether it is met; empty where there is none."""
        if self.goal is None:
            return ""
        return f"{self.goal} {'met' if self.goal.met_by(self.value) else 'MISSED'}"

    @property
    def value_text(self) -> str:
        """The value to three digits with its unit, and the range of the samples."""
        text = f"{_short(self.value)} {self.unit}".rstrip()
        if len(self.samples) < 2:
            return text
        return f"{text} ({_short(min(self.samples))} to {_short(max(self.samples))})"


def print_table(figures: Iterable[Figure], console: Console) -> None:
    """The figures as one table."""
    table = Table("figure", "value (range)", "goal", "compared with", "how", show_lines=True)
    for figure in figures:
        table.add_row(figure.name, figure.value_text, figure.verdict, figure.compared_with, figure.how)
    console.print(table)


def console() -> Console:
    """A console as wide as the terminal, or :data:`WIDTH` columns where there is none."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=WIDTH)


def as_json(figures: Sequence[Figure]) -> str:
    """The figures and the machine they were measured on."""
    return json.dumps({"machine": _machine(), "figures": [_record(figure) for figure in figures]}, indent=2) + "\n"


def _record(figure: Figure) -> dict[str, Any]:
    met = None if figure.goal is None else figure.goal.met_by(figure.value)
    return dataclasses.asdict(figure) | {"goal": None if figure.goal is None else str(figure.goal), "met": met}


def _machine() -> dict[str, Any]:
    return {
        "processors": os.cpu_count(),
        "load_1_5_15_min": os.getloadavg(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def _short(value: float) -> str:
    """Three significant digits, all of them before the point where the number is large."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
