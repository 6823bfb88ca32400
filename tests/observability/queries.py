"""The queries of the dashboards' panels, as Prometheus takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.observability.tools import DASHBOARDS

FILES = sorted(DASHBOARDS.glob("*.json"))

ANY = {"$namespace": ".*", "$pool": ".*", "$price_read": "0.125", "$price_write": "0.625"}
"""What Grafana writes for the variables where a person has chosen nothing."""


@dataclass(frozen=True)
class Query:
    """One query of one panel."""

    board: str
    panel: str
    expr: str

    def filled(self, rate: str, span: str) -> str:
        """With values for Grafana's variables: ``rate`` for the interval of a rate, ``span`` for the whole time range."""
        text = self.expr.replace("$__rate_interval", rate).replace("$__range", span)
        for name, value in ANY.items():
            text = text.replace(name, value)
        assert "$" not in text, f"{self.panel}: an unknown variable in {self.expr}"
        return text

    def __str__(self) -> str:
        return f"{self.board}: {self.panel}: {self.expr[:60]}"


def board(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((DASHBOARDS / name).read_text())
    return found


def panels(of: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All panels but the headings of rows."""
    return [panel for panel in of["panels"] if panel["type"] != "row"]


def queries() -> Sequence[Query]:
    """Every query of every dashboard."""
    return list(_queries())


def _queries() -> Iterator[Query]:
    for file in FILES:
        for panel in panels(board(file.name)):
            for target in panel["targets"]:
                yield Query(file.stem, panel["title"], target["expr"])
