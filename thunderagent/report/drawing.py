"""A chart as a figure of the page: the drawing in an ``<svg>`` that stretches with the screen, all text outside of it.

The drawing has :data:`WIDTH` units across and :data:`HEIGHT` upwards, whatever the size on the screen. Colours are classes,
which the page's style knows for light and for dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement

from thunderagent.report.charts import Chart, Curve, Kind, Unit
from thunderagent.report.elements import text
from thunderagent.report.record import Period, Values
from thunderagent.report.scale import time_ticks, value_ticks
from thunderagent.report.words import NONE, clock, count, seconds, tick

WIDTH, HEIGHT = 1000.0, 100.0
GAP = 0.16
"""Share of a step that stays empty between two columns."""

LAST_SHARE = 0.94
"""Of the axis of time: labels beyond it end at their tick, or they would leave the page."""


def figure(chart: Chart, period: Period) -> Element:
    """The chart with its title, its sentence, its legend and its axes."""
    root = Element("figure", {"class": "card"})
    SubElement(root, "h2").text = chart.title
    SubElement(root, "p", {"class": "hint"}).text = chart.text
    if chart.kind is not Kind.BANDS:
        root.append(_legend(chart))
    plot = SubElement(root, "div", {"class": "plot bands" if chart.kind is Kind.BANDS else "plot"})
    marks = value_ticks(_top(chart), chart.unit)
    plot.append(_names_of_bands(chart) if chart.kind is Kind.BANDS else _value_axis(marks, chart.unit))
    plot.append(_drawing(chart, period, marks))
    plot.append(_time_axis(period))
    return root


def _drawing(chart: Chart, period: Period, marks: Sequence[float]) -> Element:
    about = {"role": "img", "aria-label": f"{chart.title}. {chart.text}"}
    svg = Element("svg", {"viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}", "preserveAspectRatio": "none", **about})
    svg.extend(_grid(marks, period) if chart.kind is not Kind.BANDS else ())
    svg.extend(_PAINTERS[chart.kind](chart.curves, marks[-1]))
    svg.extend(_told_on_hover(chart, period))
    return svg


def _legend(chart: Chart) -> Element:
    root = Element("ul", {"class": "legend"})
    for curve in chart.curves:
        root.append(text("li", curve.name, curve.colour + (" bound" if curve.is_bound else "")))
    return root


def _names_of_bands(chart: Chart) -> Element:
    axis = Element("div", {"class": "y"})
    for number, curve in enumerate(chart.curves):
        at = 100 * (1 - (number + 0.5) / len(chart.curves))
        axis.append(text("span", curve.name, style=f"bottom:{at:.2f}%"))
    return axis


def _value_axis(marks: Sequence[float], unit: Unit) -> Element:
    axis = Element("div", {"class": "y", "aria-hidden": "true"})
    for mark in marks:
        label = SubElement(axis, "span", {"style": f"bottom:{100 * mark / marks[-1]:.2f}%"})
        label.text = _told(mark, unit)
    return axis


def _time_axis(period: Period) -> Element:
    """Every second label is for wide screens alone."""
    axis = Element("div", {"class": "x", "aria-hidden": "true"})
    for number, at in enumerate(time_ticks(period)):
        share = (at - period.start) / period.seconds
        kinds = " ".join([*(["wide"] if number % 2 else []), *(["end"] if share > LAST_SHARE else [])])
        label = SubElement(axis, "span", {"style": f"left:{100 * share:.2f}%", **({"class": kinds} if kinds else {})})
        label.text = tick(at, period)
    return axis


def _grid(marks: Sequence[float], period: Period) -> Iterator[Element]:
    for mark in marks:
        y = f"{_height(mark, marks[-1]):.2f}"
        yield Element("line", {"class": "grid", "x1": "0", "x2": f"{WIDTH:g}", "y1": y, "y2": y})


# --- one painter a kind -------------------------------------------------------------------------------------------------


def _lines(curves: Sequence[Curve], top: float) -> Iterator[Element]:
    for curve in curves:
        yield _path(curve, _line_path(curve.values, top))
        if dots := _dots(curve.values, top):
            yield Element("path", {"class": f"dot {curve.colour}", "d": dots})


def _stairs(curves: Sequence[Curve], top: float) -> Iterator[Element]:
    for curve in curves:
        yield _path(curve, _stair_path(curve.values, top))


def _path(curve: Curve, drawn: str) -> Element:
    return Element("path", {"class": f"line {curve.colour}" + (" bound" if curve.is_bound else ""), "d": drawn})


def _columns(curves: Sequence[Curve], top: float) -> Iterator[Element]:
    for step in range(_length(curves)):
        below = 0.0
        for curve in curves:
            value = curve.values[step] or 0.0
            if value > 0:
                yield _box(curve, step, _length(curves), (_height(below + value, top), _height(below, top)), GAP)
                below += value


def _bands(curves: Sequence[Curve], top: float) -> Iterator[Element]:
    """A row a condition: a pale ground where it is known, filled where it is true."""
    for row, curve in enumerate(curves):
        edges = (HEIGHT * (row + 0.2) / len(curves), HEIGHT * (row + 0.8) / len(curves))
        for step, value in enumerate(curve.values):
            if value is not None:
                pale = Curve(curve.name, (), "pale")
                yield _box(curve if value else pale, step, len(curve.values), edges, 0.0)


def _box(curve: Curve, step: int, steps: int, edges: tuple[float, float], gap: float) -> Element:
    width = WIDTH / steps
    size = {"x": f"{width * (step + gap / 2):.2f}", "width": f"{width * (1 - gap):.2f}"}
    return Element("rect", {"class": curve.colour, **size, "y": f"{edges[0]:.2f}", "height": f"{edges[1] - edges[0]:.2f}"})


_PAINTERS = {Kind.LINES: _lines, Kind.STAIRS: _stairs, Kind.COLUMNS: _columns, Kind.BANDS: _bands}


# --- paths --------------------------------------------------------------------------------------------------------------


def _line_path(values: Values, top: float) -> str:
    """A point in the middle of each step, and a gap where nothing is known."""
    parts: list[str] = []
    for step, value in enumerate(values):
        if value is None:
            continue
        begins = step == 0 or values[step - 1] is None
        parts.append(f"{'M' if begins else 'L'}{_point(values, step, value, top)}")
    return "".join(parts)


def _dots(values: Values, top: float) -> str:
    """Values alone between gaps, of which no line can be drawn."""
    around = (None, *values, None)
    alone = [(step, value) for step, value in enumerate(values) if around[step] is None and around[step + 2] is None]
    return "".join(f"M{_point(values, step, value, top)}h0" for step, value in alone if value is not None)


def _point(values: Values, step: int, value: float, top: float) -> str:
    return f"{(step + 0.5) * WIDTH / len(values):.2f} {_height(value, top):.2f}"


def _stair_path(values: Values, top: float) -> str:
    width = WIDTH / max(1, len(values))
    parts: list[str] = []
    for step, value in enumerate(values):
        if value is None:
            continue
        begins = step == 0 or values[step - 1] is None
        start = f"M{step * width:.2f} {_height(value, top):.2f}" if begins else f"V{_height(value, top):.2f}"
        parts.append(f"{start}H{(step + 1) * width:.2f}")
    return "".join(parts)


def _height(value: float, top: float) -> float:
    return HEIGHT * (1 - value / top)


def _top(chart: Chart) -> float:
    if chart.kind is Kind.COLUMNS:
        return max(
            (sum(curve.values[step] or 0.0 for curve in chart.curves) for step in range(_length(chart.curves))), default=0.0
        )
    return max((value for curve in chart.curves for value in curve.values if value is not None), default=0.0)


def _length(curves: Sequence[Curve]) -> int:
    return max((len(curve.values) for curve in curves), default=0)


# --- figures under the pointer ------------------------------------------------------------------------------------------


def _told_on_hover(chart: Chart, period: Period) -> Iterator[Element]:
    """What browsers show of a step when the pointer rests on it."""
    width = WIDTH / period.count
    for step in range(period.count):
        told = [f"{curve.name}: {_figure(curve, step, chart)}" for curve in chart.curves if _has(curve, step, chart)]
        if told:
            area = Element(
                "rect", {"class": "hit", "x": f"{step * width:.2f}", "width": f"{width:.2f}", "y": "0", "height": "100"}
            )
            area.append(text("title", "\n".join([f"until {clock(period, step)}", *told])))
            yield area


def _has(curve: Curve, step: int, chart: Chart) -> bool:
    value = curve.values[step] if step < len(curve.values) else None
    return value is not None and (chart.kind is not Kind.COLUMNS or value > 0)


def _figure(curve: Curve, step: int, chart: Chart) -> str:
    value = curve.values[step]
    if chart.kind is Kind.BANDS:
        return {None: NONE, 0.0: "False"}.get(value, "True")
    return _told(value, chart.unit)


def _told(value: float | None, unit: Unit) -> str:
    return seconds(value) if unit is Unit.SECONDS else count(value, 1)
