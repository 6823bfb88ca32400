"""What a chart shows, as plain values: a chart is a column of panels. Nothing here knows how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

Times = tuple[datetime, ...]
Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over time; a context curve is drawn thin and grey, without a name."""

    x: Times
    y: Numbers
    name: str = ""
    context: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Curves over time, over a band from ``low`` to ``high`` where there is one."""

    title: str
    curves: tuple[Curve, ...]
    band: tuple[Times, Numbers, Numbers] | None = None
    band_name: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Amounts over time, from zero."""

    title: str
    x: Times
    y: Numbers


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each value stands there, the most frequent first."""

    title: str
    names: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How numbers are spread: one more edge than counts; ``middle`` is the median."""

    title: str
    edges: Numbers
    counts: tuple[int, ...]
    middle: float


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points, over all the others in grey. On a map, x is a longitude and y a latitude."""

    title: str
    x_name: str
    y_name: str
    points: tuple[tuple[float, float], ...]
    context: tuple[tuple[float, float], ...] = ()
    is_map: bool = False


Panel = Lines | Bars | Counts | Histogram | Scatter


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels from top to bottom, and the sentence that says the same to someone who does not see them."""

    title: str
    description: str
    panels: tuple[Panel, ...]
