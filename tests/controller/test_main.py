"""The operator's process, as far as it needs no API server: what kopf is told, and what a start that cannot be says."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import kopf
import pytest

from controller import watch
from controller.main import main
from controller.watch import Watch


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What kopf is run with; it ends at once, and the third time the watch is asked to end."""
    runs: list[dict[str, Any]] = []

    def run(**arguments: Any) -> None:
        runs.append(arguments)
        if len(runs) == 3:
            arguments["stop_flag"].set()
        raise RuntimeError("the API server was away for too long")

    monkeypatch.setattr(kopf, "run", run)
    monkeypatch.setattr(watch, "BEGIN_BASE", 0.0)
    return runs


def watched(*namespaces: str) -> list[tuple[str | None, Any]]:
    """Run a watch to its end in a thread, as the operator does."""
    events: list[tuple[str | None, Any]] = []
    watching = Watch(lambda kind, pool: events.append((kind, pool)), namespaces, random.Random(0))
    watching.start()
    watching._thread.join(timeout=20)
    assert not watching._thread.is_alive()
    return events


def test_kopf_is_begun_again_whenever_it_ends(told: list[dict[str, Any]]) -> None:
    """kopf#1088, #1104, #1145, #1276: watch streams die quietly."""
    watched()
    assert len(told) == 3


def test_kopf_only_listens(told: list[dict[str, Any]]) -> None:
    """No peering, no finalizers, no events and no rights beyond the pools."""
    watched()
    arguments = told[0]
    assert arguments["standalone"]
    assert arguments["clusterwide"]
    assert not arguments["settings"].posting.enabled
    assert arguments["settings"].scanning.disabled
    registry = arguments["registry"]
    assert not registry._changing.get_all_handlers()
    assert not registry._spawning.get_all_handlers()


def test_kopf_need_not_know_the_name_of_the_user(told: list[dict[str, Any]]) -> None:
    """A container's numeric user has none, and kopf would end at looking it up."""
    watched()
    assert told[0]["identity"]


def test_namespaces_are_watched_one_by_one(told: list[dict[str, Any]]) -> None:
    watched("a", "b")
    assert told[0]["namespaces"] == ["a", "b"]
    assert "clusterwide" not in told[0]


def test_kopf_has_a_thread_of_its_own(told: list[dict[str, Any]]) -> None:
    """It cancels every task of its loop when it ends."""
    before = threading.active_count()
    watched()
    assert threading.active_count() == before


BAD_STARTS = [
    pytest.param({"THUNDERAGENT_OPERATOR_ALLOWED": "{"}, "allowed", id="settings that cannot be read"),
    pytest.param({"KUBECONFIG": "/nowhere/config"}, "kubeconfig", id="no cluster"),
]


@pytest.mark.parametrize(("environ", "words"), BAD_STARTS)
def test_a_start_that_cannot_be_says_why(
    environ: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main() == 2
    assert words in capsys.readouterr().err
