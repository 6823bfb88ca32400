"""The page: one file of HTML that loads nothing and runs nothing, made as a tree, so that whatever it tells is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from xml.etree.ElementTree import Element, SubElement, tostring

from thunderagent.report.charts import charts
from thunderagent.report.drawing import figure
from thunderagent.report.elements import printable, text
from thunderagent.report.figures import Figure, key_figures
from thunderagent.report.record import Record
from thunderagent.report.tables import tables
from thunderagent.times import brief, moment, span

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for this page: nothing but the style in it."""


def report_page(record: Record, made_at: float, version: str) -> str:
    """The HTML of a record. ``made_at``: the time of making it, in epoch seconds."""
    html = Element("html", {"lang": "en"})
    html.append(_head(record))
    main = SubElement(SubElement(html, "body"), "main")
    main.extend(_header(record, made_at, version))
    main.append(_tiles(key_figures(record)))
    drawn = SubElement(main, "div", {"class": "charts"})
    drawn.extend(figure(chart, record.period) for chart in charts(record))
    main.extend(tables(record))
    return "<!DOCTYPE html>\n" + tostring(html, encoding="unicode", method="html") + "\n"


def _head(record: Record) -> Element:
    head = Element("head")
    SubElement(head, "meta", {"charset": "utf-8"})
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": POLICY})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    SubElement(head, "meta", {"name": "color-scheme", "content": "light dark"})
    SubElement(head, "title").text = printable(f"Pool {record.pool}, {moment(record.period.start)}")
    SubElement(head, "style").text = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return head


def _header(record: Record, made_at: float, version: str) -> list[Element]:
    period = record.period
    facts = {
        "Time": f"{moment(period.start)} to {moment(period.end)}, all times in UTC",
        "Length": f"{span(period.seconds)} in steps of {brief(period.step)}",
        "Source": record.source,
        "Made": f"{moment(made_at)} by thunderagent {version}",
    }
    listed = Element("dl", {"class": "facts"})
    for name, value in facts.items():
        listed.append(text("dt", name))
        listed.append(text("dd", value))
    return [text("h1", f"Pool {record.pool}"), listed, *(text("p", note, "note") for note in record.notes)]


def _tiles(figures: Sequence[Figure]) -> Element:
    tiles = Element("ul", {"class": "tiles", "aria-label": "Key figures"})
    for each in figures:
        tile = SubElement(tiles, "li", {"class": "is-bad"} if each.is_bad else {})
        tile.append(text("span", each.label, "label"))
        tile.append(text("span", each.value, "figure"))
        if each.note:
            tile.append(text("span", each.note, "with"))
    return tiles
