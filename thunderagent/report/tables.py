"""The tables under the charts: changes of the replicas, outcomes, failures, reasons, and all series in figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement

from thunderagent.report.elements import text
from thunderagent.report.figures import rows
from thunderagent.report.record import Change, Record
from thunderagent.report.words import count
from thunderagent.times import moment

MOST_ROWS = 50
"""Rows that a table shows. What is beyond them is counted."""


@dataclass(frozen=True, slots=True)
class _Table:
    """``is_told``: the last column is a sentence."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    is_told: bool = False


def tables(record: Record) -> list[Element]:
    """A section for each table."""
    figures = [(each.name, each.lowest, each.mean, each.highest, each.when, each.last) for each in rows(record)]
    return [
        _section(_Table("Changes of the replicas", ("When", "From", "To", "Why"), _changes(record.changes), is_told=True)),
        _section(_Table("Outcomes", ("Outcome", "Runs or tasks"), _by_count(record.outcomes.totals))),
        _section(_Table("Failures", ("Error", "Runs"), _by_count(record.errors.totals))),
        _section(_Table("Reasons for the number of replicas", ("Reason", "Decisions"), _by_count(record.reasons.totals))),
        _section(_Table("Figures", ("Series", "Lowest", "Mean", "Highest", "At", "Last"), figures)),
    ]


def _changes(changes: Sequence[Change]) -> list[tuple[str, ...]]:
    return [(moment(each.at), str(each.before), str(each.after), each.why) for each in changes]


def _by_count(totals: Mapping[str, float]) -> list[tuple[str, ...]]:
    ordered = sorted(totals.items(), key=lambda each: -each[1])
    return [(name, count(total)) for name, total in ordered if round(total)]


def _section(table: _Table) -> Element:
    section = Element("section")
    section.append(text("h2", table.title))
    if not table.rows:
        section.append(text("p", "None in this time.", "hint"))
        return section
    scroll = SubElement(section, "div", {"class": "scroll", "role": "region", "aria-label": table.title, "tabindex": "0"})
    scroll.append(_drawn(table))
    if len(table.rows) > MOST_ROWS:
        section.append(text("p", f"{len(table.rows) - MOST_ROWS} more are not shown.", "hint"))
    return section


def _drawn(table: _Table) -> Element:
    drawn = Element("table")
    head = SubElement(SubElement(drawn, "thead"), "tr")
    head.extend(text("th", name, _kind(table, number), scope="col") for number, name in enumerate(table.heads))
    body = SubElement(drawn, "tbody")
    for cells in table.rows[:MOST_ROWS]:
        row = SubElement(body, "tr")
        row.append(text("th", cells[0], scope="row"))
        row.extend(text("td", cell, _kind(table, number)) for number, cell in enumerate(cells[1:], 1))
    return drawn


def _kind(table: _Table, column: int) -> str:
    return "told" if table.is_told and column == len(table.heads) - 1 else ""
