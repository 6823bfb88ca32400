"""The Grafana dashboards of the chart, made from tables of panels: ``make dashboards`` writes them, a test finds drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.dashboards.build import dashboard_json
from scripts.dashboards.operator import OPERATOR
from scripts.dashboards.pools import POOLS

FOLDER = Path(__file__).parents[2] / "charts" / "thunderagent" / "dashboards"

DASHBOARDS: Mapping[str, Callable[[], str]] = {
    "pools.json": lambda: dashboard_json(POOLS),
    "operator.json": lambda: dashboard_json(OPERATOR),
}
"""The text of each dashboard, by the name of its file in the chart."""
