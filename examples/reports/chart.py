"""Charts as SVG that takes its colours from the page, so that one drawing is right on light and on dark ground.

Matplotlib writes colours into the drawing. It is given colours that stand for roles, and each is then replaced by the CSS
variable of its role. Text stays text: it can be read aloud, searched and scaled, and is set in the page's own typeface.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import matplotlib
import matplotlib.dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator

from examples.reports import words
from examples.reports.panels import Bars, Chart, Counts, Curve, Histogram, Lines, Panel, Scatter

INK, QUIET, GRID, CONTEXT = "#0a0a01", "#0a0a02", "#0a0a03", "#0a0a04"
SERIES = ("#0a0a11", "#0a0a12")
VARIABLES = {INK: "ink", QUIET: "quiet", GRID: "grid", CONTEXT: "context", SERIES[0]: "series-1", SERIES[1]: "series-2"}

SCATTER_HEIGHT = 4.6
"""Inches."""

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a column named "price ($)" is no formula
    "axes.edgecolor": GRID,
    "axes.labelcolor": QUIET,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": QUIET,
    "ytick.labelcolor": QUIET,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.labelcolor": QUIET,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
}

dates: Any = matplotlib.dates  # it has no type annotations

FIRST_DAY, LAST_DAY = (float(dates.datestr2num(each)) for each in ("0001-01-01", "9999-12-31"))
"""Ends of the calendar. Files hold 9999-12-31 for "never", and a margin around it would be no date any more."""

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


@dataclass(frozen=True, slots=True)
class Size:
    """A drawing's width in inches, its type in points, and its room in ticks and characters.

    ``name`` keeps the ids of two drawings in one page apart.
    """

    name: str
    width: float
    font: float
    ticks: int
    title_chars: int
    name_chars: int


WIDE = Size("wide", 10.0, 9.0, 10, 70, 26)
NARROW = Size("narrow", 5.0, 11.5, 6, 40, 14)


def draw(chart: Chart, size: Size) -> str:
    """The chart as an ``<svg>`` element to put into a page that defines the CSS variables ``--ink``, ``--series-1`` and so on.

    The same chart gives the same text. The page's elements ``chart-title`` and ``chart-text`` are its name and description.
    For one thread of a process at a time: Matplotlib keeps its settings for all of them.
    """
    style: Any = STYLE | {"font.size": size.font, "axes.titlesize": size.font * 1.1, "svg.hashsalt": size.name}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        # Matplotlib only measures the text, so it does not matter that its own font lacks a script: the page's has it.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font", category=UserWarning)
        heights = [_height(panel) for panel in chart.panels] or [1.0]
        figure = Figure(figsize=(size.width, sum(heights)), layout=ConstrainedLayoutEngine(h_pad=0.09))
        rows = figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0]
        for axes, panel in zip(rows, chart.panels, strict=False):
            axes.set_title(words.shortened(words.capital(panel.title), size.title_chars))
            PAINTERS[type(panel)](axes, panel, size)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _for_page(out.getvalue(), size)


def _height(panel: Panel) -> float:
    """Inches. A list of values needs room for each, a map for its shape."""
    if isinstance(panel, Counts):
        return 0.75 + 0.26 * max(1, len(panel.names))
    return SCATTER_HEIGHT if isinstance(panel, Scatter) else 2.4


# --- one painter a panel ------------------------------------------------------------------------------------------------


def _lines(axes: Axes, panel: Lines, size: Size) -> None:
    if panel.band:
        axes.fill_between(*panel.band, color=SERIES[0], alpha=0.18, linewidth=0, label=panel.band_name or None)  # type: ignore[arg-type]
    colours = iter(SERIES * len(panel.curves))
    for curve in panel.curves:
        style = {"color": CONTEXT, "linewidth": 0.9} if curve.context else {"color": next(colours)}
        axes.plot(curve.x, curve.y, **style, **_marker(curve))  # type: ignore[arg-type]
    _time_axis(axes, size)
    _legend(axes, panel, size)


def _marker(curve: Curve) -> dict[str, Any]:
    return {} if curve.context or len(curve.y) > 40 else {"marker": "o", "markersize": 3}


def _legend(axes: Axes, panel: Lines, size: Size) -> None:
    """Names beside the title, or on a line of their own below it where there is no room."""
    named: dict[str, Any] = {}
    for curve, line in zip(panel.curves, axes.lines, strict=True):
        named.setdefault(curve.name, line)
    if panel.band_name:
        named[panel.band_name] = axes.collections[0]
    named.pop("", None)
    if not named:
        return
    side, corner = ("lower right", (1.0, 0.98)) if size is WIDE else ("lower left", (-0.015, 0.97))
    layout: dict[str, Any] = {
        "loc": side,
        "bbox_to_anchor": corner,
        "borderaxespad": 0.2,
        "columnspacing": 1.2,
        "handlelength": 1.2,
    }
    axes.legend(named.values(), [words.shortened(name, 34) for name in named], ncols=len(named), **layout)
    if size is NARROW:
        axes.set_title(axes.get_title(loc="left"), pad=2.2 * size.font)


def _bars(axes: Axes, panel: Bars, size: Size) -> None:
    gaps = [(after - before).total_seconds() / 86400 for before, after in zip(panel.x, panel.x[1:], strict=False)]
    axes.bar(panel.x, panel.y, width=0.8 * min(gaps, default=1.0), color=SERIES[0], linewidth=0)  # type: ignore[arg-type]
    if min(panel.y, default=0) < 0:
        axes.axhline(0, color=QUIET, linewidth=0.8)
    _time_axis(axes, size)


def _counts(axes: Axes, panel: Counts, size: Size) -> None:
    names = [words.shortened(name, size.name_chars) for name in panel.names]
    bars = axes.barh(range(len(names)), panel.counts, height=0.68, color=SERIES[0], linewidth=0)
    axes.bar_label(bars, labels=[f"{count:,}" for count in panel.counts], padding=4, color=QUIET)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.grid(visible=False)


def _histogram(axes: Axes, panel: Histogram, size: Size) -> None:
    axes.stairs(panel.counts, panel.edges, fill=True, color=SERIES[0])
    axes.axvline(panel.middle, color=SERIES[1], linewidth=1.4)
    axes.annotate(
        f"median {words.number(panel.middle)}", (panel.middle, 1), xycoords=("data", "axes fraction"),
        xytext=(5, -4), textcoords="offset points", va="top", color=QUIET,
    )  # fmt: skip
    axes.set_ylabel("rows")
    axes.margins(y=0.2)
    axes.xaxis.set_major_locator(MaxNLocator(size.ticks))
    _plain_numbers(axes, "x", "y")


def _scatter(axes: Axes, panel: Scatter, size: Size) -> None:
    _limits(axes, panel, size)
    for points, colour, area in ((panel.context, CONTEXT, 5), (panel.points, SERIES[0], 12)):
        inside = [point for point in points if _is_inside(axes, point)]
        axes.scatter([x for x, _ in inside], [y for _, y in inside], s=area, color=colour, linewidths=0)
    axes.set_xlabel(panel.x_name)
    axes.set_ylabel(panel.y_name)
    axes.xaxis.set_major_locator(MaxNLocator(size.ticks))
    _plain_numbers(axes, "x", "y")


def _limits(axes: Axes, panel: Scatter, size: Size) -> None:
    """The points and some of what is around them. A map shows more to the sides, so that its shape fills the panel."""
    left, right = _with_margin([x for x, _ in panel.points])
    bottom, top = _with_margin([y for _, y in panel.points])
    if panel.is_map:
        stretch = 1 / max(0.1, math.cos(math.radians((bottom + top) / 2)))
        shape = (size.width - 1.0) / (SCATTER_HEIGHT - 1.0)
        wanted = max((right - left) / stretch / shape, top - bottom)
        left, right = _widened(left, right, wanted * stretch * shape)
        bottom, top = _widened(bottom, top, wanted)
        axes.set_aspect(stretch, anchor="W")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


def _with_margin(values: list[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.1 * (high - low) or 1.0
    return low - margin, high + margin


def _widened(low: float, high: float, span: float) -> tuple[float, float]:
    more = max(0.0, span - (high - low)) / 2
    return low - more, high + more


def _is_inside(axes: Axes, point: tuple[float, float]) -> bool:
    """Points beyond the frame would be cut off anyway, but stand in the file all the same."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return left <= point[0] <= right and bottom <= point[1] <= top


def _time_axis(axes: Axes, size: Size) -> None:
    locator = dates.AutoDateLocator(minticks=3, maxticks=size.ticks)
    axes.xaxis.set_major_locator(locator)
    within_a_day = axes.dataLim.width < 1
    formatter = dates.DateFormatter("%H:%M") if within_a_day else dates.ConciseDateFormatter(locator, show_offset=False)
    axes.xaxis.set_major_formatter(formatter)
    axes.grid(visible=False, axis="x")
    axes.margins(x=0.01)
    left, right = axes.get_xlim()
    axes.set_xlim(max(left, FIRST_DAY), min(right, LAST_DAY))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    _plain_numbers(axes, "y")


def _plain_numbers(axes: Axes, *which: str) -> None:
    for name in which:
        axis = axes.xaxis if name == "x" else axes.yaxis
        axis.set_major_formatter(FuncFormatter(lambda value, _: words.number(value)))


PAINTERS: dict[type, Callable[[Axes, Any, Size], None]] = {
    Lines: _lines,
    Bars: _bars,
    Counts: _counts,
    Histogram: _histogram,
    Scatter: _scatter,
}


# --- from a drawing to an element of a page ---------------------------------------------------------------------------------


def _for_page(drawing: str, size: Size) -> str:
    root = ElementTree.fromstring(drawing)
    _drop(root, f"{{{SVG}}}metadata")
    _drop(root, f"{{{SVG}}}style")
    _drop_unused_ids(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {
        "class": f"chart {size.name}",
        "role": "img",
        "aria-labelledby": "chart-title",
        "aria-describedby": "chart-text",
    }
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub("|".join(VARIABLES), lambda found: f"var(--{VARIABLES[found.group()]})", text)


def _drop(parent: ElementTree.Element, tag: str) -> None:
    for child in list(parent):
        if child.tag == tag:
            parent.remove(child)
        else:
            _drop(child, tag)


def _drop_unused_ids(root: ElementTree.Element) -> None:
    """Matplotlib numbers its groups the same way in each drawing; in one page these ids would stand twice."""
    elements: Sequence[ElementTree.Element] = list(root.iter())
    values = " ".join(value for element in elements for value in element.attrib.values() if "#" in value)
    used = set(re.findall(r"#([\w-]+)", values))
    for element in elements:
        if element.get("id") not in used:
            element.attrib.pop("id", None)
