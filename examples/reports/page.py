"""Pages from templates: self-contained HTML, nothing is loaded from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from examples.reports import words
from examples.reports.analyse import Report
from examples.reports.chart import NARROW, WIDE, draw

SPARK_WIDTH, SPARK_HEIGHT = 120, 28


def environment() -> Environment:
    """Templates escape what they are given, for every word on a page may come from a stranger's file."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": words.number, "moment": words.moment, "label": words.label, "spark": spark, "cell": cell}
    return made


def report_page(report: Report, made_at: datetime) -> str:
    """The HTML of one report. ``made_at`` is in UTC."""
    sizes = (WIDE, NARROW) if report.chart.panels else ()
    drawings = [Markup(draw(report.chart, size)) for size in sizes]
    return environment().get_template("report.html.j2").render(report=report, drawings=drawings, made_at=made_at)


def cell(value: object) -> str:
    """A value of a loaded row, as a table shows it."""
    if value is None:
        return "–"
    return words.number(value) if isinstance(value, float) else words.moment(str(value))


def spark(values: Sequence[float]) -> Markup:
    """A line the size of a word, for eyes only: the key figure beside it says what matters."""
    if len(values) < 2:
        return Markup("")
    low, high = min(values), max(values)
    height = high - low
    high, height = (high, height) if height else (high + 0.5, 1.0)
    step = SPARK_WIDTH / (len(values) - 1)
    points = " ".join(
        f"{position * step:.1f},{2 + (SPARK_HEIGHT - 4) * (high - value) / height:.1f}" for position, value in enumerate(values)
    )
    return Markup(
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<polyline points="{points}"/></svg>'
    )
