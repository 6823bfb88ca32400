"""What one report says: its figures, its chart as values and its key figure, worked out from a loaded file."""

from __future__ import annotations

from dataclasses import dataclass

from examples.reports import words
from examples.reports.columns import Kind
from examples.reports.database import ALL, Database, Figures, Slice, slice_for
from examples.reports.drawings import column_panels, group_panels, period_panels
from examples.reports.grouping import By
from examples.reports.panels import Chart, Panel

PREVIEW_ROWS = 40
SPARK_POINTS = 32
TILES = 4


class NothingToReport(ValueError):
    """The loaded file does not hold what the report is about, so another run would find nothing either."""


@dataclass(frozen=True, slots=True)
class Request:
    """Which report of a file: see :class:`By`. ``source`` is the file's name as the reader knows it."""

    source: str
    by: By
    column: str
    key: str


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure: what it is, the figure, and what to compare it with."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All that a page shows. ``figures`` come with the mean over the whole file, None where the report covers it."""

    title: str
    source: str
    summary: str
    tiles: tuple[Tile, ...]
    chart: Chart
    figures: tuple[tuple[Figures, float | None], ...]
    rows: int
    preview_names: tuple[str, ...]
    preview: tuple[tuple[object, ...], ...]
    spark: tuple[float, ...]


def analyse(data: Database, request: Request) -> Report:
    """Work out a report. Raises :class:`NothingToReport` where its column or its rows are not in the file."""
    part = _part(data, request)
    rows = data.count(part)
    if not rows:
        raise NothingToReport(f"{request.source} has no rows for {request.key}")
    figures = [each for name in _numbers(data, request) if (each := data.figures(name, part))]
    panels = _panels(data, request, part)
    title = _title(request)
    description = _describe(figures) or f"{rows:,} rows."
    return Report(
        title=title,
        source=request.source,
        summary=_summary(data, request, rows),
        tiles=tuple(_tiles(data, request, part, rows, figures)[:TILES]),
        chart=Chart(f"{title}, {request.source}", description, tuple(panels)),
        figures=tuple((each, None if part is ALL else data.mean(each.column)) for each in figures),
        rows=rows,
        preview_names=tuple(data.kinds),
        preview=tuple(data.preview(part, PREVIEW_ROWS)),
        spark=_spark(data, part, figures),
    )


def _part(data: Database, request: Request) -> Slice:
    wanted = request.key if request.by is By.COLUMN else request.column
    if wanted not in data.kinds:
        raise NothingToReport(f"{request.source} has no column {wanted!r}")
    if request.by in (By.MONTH, By.YEAR) and data.kinds[wanted] is not Kind.TIME:
        raise NothingToReport(f"{request.source}: not all values of column {wanted!r} are times")
    return slice_for(request.by, request.column, request.key)


def _numbers(data: Database, request: Request) -> list[str]:
    names = data.names(Kind.NUMBER)
    return [name for name in names if name == request.key] if request.by is By.COLUMN else names[:24]


def _panels(data: Database, request: Request, part: Slice) -> list[Panel]:
    if request.by is By.COLUMN:
        return column_panels(data, request.key)
    if request.by is By.GROUP:
        return group_panels(data, request.column, request.key, part)
    return period_panels(data, request.by, request.key, part)


def _title(request: Request) -> str:
    return words.capital(words.label(request.key)) if request.by is By.COLUMN else words.period(request.key)


def _summary(data: Database, request: Request, rows: int) -> str:
    if request.by is By.COLUMN:
        return f"The column {request.key} over all {rows:,} rows of {request.source}."
    whole = data.count()
    share = f"{rows:,} of {whole:,} in {request.source} ({words.percent(rows, whole)})"
    verb = "is" if request.by is By.GROUP else "is in"
    return f"Rows whose {words.label(request.column)} {verb} {_title(request)}: {share}."


def _describe(figures: list[Figures]) -> str:
    return " ".join(
        f"{words.capital(words.label(each.column))}: from {words.number(each.low)}{_at(each.low_at)}"
        f" to {words.number(each.high)}{_at(each.high_at)}, mean {words.number(each.mean)}."
        for each in figures[:TILES]
    )


def _at(iso: str) -> str:
    return f" ({words.moment(iso)})" if iso else ""


def _tiles(data: Database, request: Request, part: Slice, rows: int, figures: list[Figures]) -> list[Tile]:
    if request.by is By.COLUMN:
        return _column_tiles(data, request.key, figures)
    if request.by is By.GROUP:
        return _group_tiles(data, request.column, part, rows, figures)
    if len(figures) == 1:
        each = figures[0]
        ends = (("highest", each.high, each.high_at), ("lowest", each.low, each.low_at))
        return [_period_tile(data, each), *(Tile(name, words.number(end), words.moment(at)) for name, end, at in ends)]
    return [_period_tile(data, each) for each in figures] or [Tile("rows", f"{rows:,}")]


def _period_tile(data: Database, each: Figures) -> Tile:
    usual = data.mean(each.column)
    note = "" if usual is None else f"all rows: {words.number(usual)}"
    return Tile(f"mean {words.label(each.column)}", words.number(each.mean), note)


def _group_tiles(data: Database, column: str, part: Slice, rows: int, figures: list[Figures]) -> list[Tile]:
    if data.time and figures:
        return _course_tiles(data, part, figures[0])
    whole = data.count()
    counts = [count for _, count in data.top(column, ALL, 1000)]
    rank = 1 + sum(count > rows for count in counts)
    tiles = [
        Tile("rows", f"{rows:,}", f"of {whole:,}"),
        Tile("share of all rows", words.percent(rows, whole)),
        Tile(f"rank by {words.label(column)}", f"{rank}", f"of {data.distinct(column, ALL)}"),
    ]
    return tiles + [_top_tile(data, name, part) for name in data.repeating(part)]


def _top_tile(data: Database, column: str, part: Slice) -> Tile:
    value, count = data.top(column, part, 1)[0]
    return Tile(f"most frequent {words.label(column)}", str(value), f"{count:,} rows")


def _column_tiles(data: Database, column: str, figures: list[Figures]) -> list[Tile]:
    if not figures:
        top = data.top(column, ALL, 1)
        most = [Tile("most frequent", str(top[0][0]), f"{top[0][1]:,} rows")] if top else []
        return [Tile("different values", f"{data.distinct(column, ALL):,}"), *most]
    each = figures[0]
    return _course_tiles(data, ALL, each) if data.time else _spread_tiles(each)


def _spread_tiles(each: Figures) -> list[Tile]:
    named = (("mean", each.mean), ("median", each.median), ("lowest", each.low), ("highest", each.high))
    return [Tile(name, words.number(value)) for name, value in named]


def _course_tiles(data: Database, part: Slice, each: Figures) -> list[Tile]:
    ends = data.ends(each.column, part)
    if ends is None:
        return _spread_tiles(each)
    (began, first), (ended, last) = ends
    return [
        Tile(f"last {words.label(each.column)}", words.number(last), words.moment(ended)),
        Tile("change", words.change(first, last), f"since {words.moment(began)}"),
        Tile("highest", words.number(each.high), words.moment(each.high_at)),
        Tile("lowest", words.number(each.low), words.moment(each.low_at)),
    ]


def _spark(data: Database, part: Slice, figures: list[Figures]) -> tuple[float, ...]:
    """The course of the first column of numbers in a few points, empty for files without times."""
    if not (data.time and figures):
        return ()
    points = data.points([data.time, figures[0].column], part, SPARK_POINTS)
    return tuple(round(value, 6) for _, value in points)
