"""Which panels suit a report: the choice of chart by what the columns hold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from examples.reports import words
from examples.reports.columns import Kind
from examples.reports.database import ALL, Database, Point, Slice, slice_for
from examples.reports.grouping import By
from examples.reports.panels import Bars, Counts, Curve, Histogram, Lines, Numbers, Panel, Scatter, Times

PANELS = 4
"""Most panels of columns of numbers in one chart; the table of figures has all of them."""

MOST_POINTS = 1500
"""Points of a curve; more than that cannot be seen apart, and an SVG file holds each as text."""

MOST_CONTEXT = 8
"""Other series, or other years, drawn in grey."""

FEW_VALUES = 12
"""A text column with no more different values is drawn whole."""

FREQUENT = 8
"""Values that are drawn of a text column with many."""

MOST_BINS = 24
"""Most bars of a histogram; few rows get fewer, or each would stand alone."""

LATITUDES = frozenset({"lat", "latitude"})
LONGITUDES = frozenset({"lon", "lng", "long", "longitude"})


def period_panels(data: Database, by: By, key: str, part: Slice) -> list[Panel]:
    """One panel a column of numbers; a pair like ``temp_max`` and ``temp_min`` is one panel with a band."""
    names = data.names(Kind.NUMBER)
    panels: list[Panel] = []
    for name in names:
        partner = _partner(name, names)
        if partner and names.index(partner) < names.index(name):
            continue
        if data.figures(name, part):
            panels.append(_pair(data, part, name, partner) if partner else _series(data, by, key, part, name))
    return [*panels[:PANELS], *_by_hour(data, part, names), *_few_values(data, part)]


def group_panels(data: Database, column: str, key: str, part: Slice) -> list[Panel]:
    """A series against the others, or a map, or a cloud of points, whatever the file's columns allow."""
    numbers = data.names(Kind.NUMBER)
    if data.time and numbers:
        courses: list[Panel] = [Lines(words.label(name), (_curve(data, part, name),)) for name in numbers[:PANELS]]
        return [*courses, *_against_others(data, column, key, numbers[0]), *_few_values(data, part, column)]
    if len(numbers) >= 2:
        return [_scatter(data, part, numbers), *_frequent(data, column, part)]
    return [*(_histogram(data, name, part) for name in numbers), *_frequent(data, column, part)]


def column_panels(data: Database, name: str) -> list[Panel]:
    """The course of a column and its changes from row to row; without times its spread; for text its values."""
    if data.kinds[name] is not Kind.NUMBER:
        return [_counts(data, name, ALL, FEW_VALUES)]
    if data.time is None:
        return [_histogram(data, name, ALL)]
    curve = _curve(data, ALL, name)
    changes = tuple(after - before for before, after in zip(curve.y, curve.y[1:], strict=False))
    panels: list[Panel] = [Lines(words.label(name), (curve,))]
    if 1 < len(curve.y) <= data.count() <= 400:
        panels.append(Bars(f"{words.label(name)}, change from the row before", curve.x[1:], changes))
    return panels


def _partner(name: str, names: list[str]) -> str | None:
    for end, other in (("_max", "_min"), ("_min", "_max")):
        if name.endswith(end) and (found := name.removesuffix(end) + other) in names:
            return found
    return None


def _pair(data: Database, part: Slice, name: str, partner: str) -> Lines:
    high, low = (name, partner) if name.endswith("_max") else (partner, name)
    points = data.points([data.time or "", high, low], part, MOST_POINTS)
    x = _times(point[0] for point in points)
    highs, lows = tuple(point[1] for point in points), tuple(point[2] for point in points)
    curves = (Curve(x, highs, words.label(high)), Curve(x, lows, words.label(low)))
    return Lines(words.label(high.removesuffix("_max")), curves, (x, lows, highs))


def _series(data: Database, by: By, key: str, part: Slice, name: str) -> Panel:
    days = data.daily(name, part)
    if data.count(part) > 2 * len(days):
        x = _times(day for day, *_ in days)
        band = (x, tuple(day[1] for day in days), tuple(day[3] for day in days))
        return Lines(words.label(name), (Curve(x, tuple(day[2] for day in days), "mean"),), band, "lowest to highest")
    curve = _curve(data, part, name)
    if _are_amounts(curve.y):
        return Bars(words.label(name), curve.x, curve.y)
    return Lines(words.label(name), (*_other_years(data, by, key, name), curve))


def _by_hour(data: Database, part: Slice, names: list[str]) -> list[Panel]:
    """The usual day, for the first column of numbers, where the file has several values a day."""
    hours = data.hourly(names[0], part) if names else []
    if len(hours) < 4:
        return []
    x = _times(f"2000-01-01 {hour}:00" for hour, *_ in hours)
    band = (x, tuple(hour[1] for hour in hours), tuple(hour[3] for hour in hours))
    curve = Curve(x, tuple(hour[2] for hour in hours), "mean")
    return [Lines(f"{words.label(names[0])} by hour of the day", (curve,), band, "lowest to highest")]


def _are_amounts(values: Numbers) -> bool:
    """Never negative and often zero, like rain: a line would draw values between two dry days that nobody measured."""
    return bool(values) and min(values) >= 0 and values.count(0) >= len(values) / 5


def _other_years(data: Database, by: By, key: str, name: str) -> list[Curve]:
    """The same month of other years, drawn over this one."""
    if by is not By.MONTH or data.time is None:
        return []
    year, month = key.split("-")
    curves = []
    for other in [each for each in data.years() if each != year][-MOST_CONTEXT:]:
        days = [day for day in data.daily(name, slice_for(by, data.time, f"{other}-{month}")) if day[0][5:] != "02-29"]
        x = _times(year + day[0][4:] for day in days)
        curves.append(Curve(x, tuple(day[2] for day in days), "the same month of other years", context=True))
    return [curve for curve in curves if curve.x]


def _against_others(data: Database, column: str, key: str, name: str) -> list[Panel]:
    """All series as multiples of their first value, which makes series of different size comparable."""
    others = [value for value, _ in data.top(column, ALL, MOST_CONTEXT + 1) if value != key][:MOST_CONTEXT]
    curves = [_relative(data, column, other, name, context=True) for other in others]
    own = _relative(data, column, key, name, context=False)
    shown = tuple(curve for curve in [*curves, own] if curve.x)
    title = f"{words.label(name)}, as a multiple of the first value"
    return [Lines(title, shown)] if own.x and len(shown) > 1 else []


def _relative(data: Database, column: str, key: str, name: str, *, context: bool) -> Curve:
    curve = _curve(data, slice_for(By.GROUP, column, key), name)
    if not curve.y or curve.y[0] <= 0:
        return Curve((), ())
    label = f"other values of {words.label(column)}" if context else key
    return Curve(curve.x, tuple(value / curve.y[0] for value in curve.y), label, context)


def _curve(data: Database, part: Slice, name: str) -> Curve:
    points = data.points([data.time or "", name], part, MOST_POINTS)
    return Curve(_times(at for at, _ in points), tuple(value for _, value in points))


def _scatter(data: Database, part: Slice, numbers: list[str]) -> Scatter:
    x, y, is_map = _axes(numbers)
    points, context = data.points([x, y], part, MOST_POINTS), data.points([x, y], part.without(), 2 * MOST_POINTS)
    if is_map and max(x for x, _ in points) - min(x for x, _ in points) > 180:
        points, context = _west_of_date_line(points), _west_of_date_line(context)
    title = "map" if is_map else f"{words.label(y)} over {words.label(x)}"
    return Scatter(title, words.label(x), words.label(y), tuple(points), tuple(context), is_map)


def _west_of_date_line(points: list[Point]) -> list[Point]:
    """East longitudes beyond the date line as more than 180 degrees west: Alaska is one region, not two edges of a map."""
    return [(x - 360 if x > 0 else x, y) for x, y in points]


def _axes(numbers: list[str]) -> tuple[str, str, bool]:
    lowered = {name.lower(): name for name in numbers}
    longitude = next((lowered[name] for name in lowered if name in LONGITUDES), None)
    latitude = next((lowered[name] for name in lowered if name in LATITUDES), None)
    if longitude and latitude:
        return longitude, latitude, True
    return numbers[0], numbers[1], False


def _histogram(data: Database, name: str, part: Slice) -> Histogram:
    figures = data.figures(name, part)
    if figures is None:
        return Histogram(words.label(name), (0.0, 1.0), (0,), 0.5)
    bins = min(MOST_BINS, max(5, round(2 * math.sqrt(figures.count))))
    width = (figures.high - figures.low) / bins or 1.0
    counts = [0] * bins
    for position, count in data.bins(name, part, figures.low, width):
        counts[min(position, bins - 1)] += count
    edges = tuple(figures.low + width * position for position in range(bins + 1))
    return Histogram(words.label(name), edges, tuple(counts), figures.median)


def _few_values(data: Database, part: Slice, but: str = "") -> list[Panel]:
    few = [name for name in data.names(Kind.TEXT) if name != but and 1 <= data.distinct(name, part) <= FEW_VALUES]
    return [_counts(data, name, part, FEW_VALUES) for name in few[:1]]


def _frequent(data: Database, but: str, part: Slice) -> list[Panel]:
    return [_counts(data, name, part, FREQUENT) for name in data.repeating(part, but)[:1]]


def _counts(data: Database, name: str, part: Slice, most: int) -> Counts:
    top = data.top(name, part, most)
    left_out = data.distinct(name, part) - len(top)
    title = f"{words.label(name)}, rows of each" if left_out <= 0 else f"{words.label(name)}, the {len(top)} with most rows"
    return Counts(title, tuple(str(value) for value, _ in top), tuple(count for _, count in top))


def _times(isos: Iterable[str]) -> Times:
    return tuple(datetime.fromisoformat(iso) for iso in isos)
