"""The dashboards are as their source makes them, and what they ask for exists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.dashboards import DASHBOARDS as MADE
from tests.observability.declared import series_names
from tests.observability.queries import FILES, board, panels, queries
from tests.observability.tools import DASHBOARDS, promtool

UNITS = {"short", "s", "cps", "reqps", "percentunit", "currencyUSD", "bytes"}
"""Of Grafana's units, those that its panels know by these names."""

BOARDS = [board(file.name) for file in FILES]
IDS = [file.stem for file in FILES]


@pytest.mark.parametrize(("name", "made"), MADE.items(), ids=MADE)
def test_a_dashboard_is_as_its_source_makes_it(name: str, made: Callable[[], str]) -> None:
    assert (DASHBOARDS / name).read_text() == made(), f"{name} has drifted: run `make dashboards`"


def test_there_is_no_other_dashboard() -> None:
    assert {file.name for file in FILES} == set(MADE)


@pytest.mark.parametrize("found", BOARDS, ids=IDS)
def test_every_panel_says_what_it_shows_and_in_which_unit(found: Mapping[str, Any]) -> None:
    for panel in panels(found):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"]


@pytest.mark.parametrize("found", BOARDS, ids=IDS)
def test_panels_have_numbers_titles_and_places_of_their_own(found: Mapping[str, Any]) -> None:
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    assert len({panel["title"] for panel in found["panels"]}) == len(found["panels"])
    places = [panel["gridPos"] for panel in found["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert not [(one, other) for one, other in combinations(places, 2) if overlap(one, other)]


def overlap(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    return not (beside or above)


@pytest.mark.parametrize("found", BOARDS, ids=IDS)
def test_a_person_chooses_data_source_namespace_and_pool(found: Mapping[str, Any]) -> None:
    kinds = {variable["name"]: variable["type"] for variable in found["templating"]["list"]}
    assert {"datasource": "datasource", "namespace": "query", "pool": "query"}.items() <= kinds.items()
    assert found["uid"].startswith("thunderagent-")
    used = {name for query in queries() for name in re.findall(r"\$(\w+)", query.expr) if not name.startswith("__")}
    assert used <= set(kinds)


@pytest.mark.parametrize("query", queries(), ids=str)
def test_a_query_names_declared_metrics_alone(query: Any) -> None:
    named = set(re.findall(r"\b(?:thunderagent|process)_\w+", query.expr))
    assert named
    assert named <= series_names()


def test_prometheus_can_parse_every_query(tmp_path: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": each.filled("1m", "1h")} for number, each in enumerate(queries())]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"SUCCESS: {len(rules)} rules found" in promtool("check", "rules", file)
