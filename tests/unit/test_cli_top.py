"""``thunderagent top`` and ``thunderagent task show``, over a table in memory and a kubectl that says what the test wants."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.builders import LEASE, NOW, foreign_record, put_pending
from tests.unit.cli_world import World
from thunderagent.cli import top as top_command
from thunderagent.cli.live.kubectl import NoPools
from thunderagent.cli.live.topview import top_view
from thunderagent.cli.main import main
from thunderagent.cli.surroundings import Surroundings
from thunderagent.errors import StoreUnavailable
from thunderagent.store import Page
from thunderagent.store.memory import MemoryStore

POOL = {
    "metadata": {"namespace": "team", "name": "reports"},
    "spec": {
        "queue": {"table": "TaskTable"},
        "scaling": {"minReplicas": 1, "maxReplicas": 8},
        "agent": {"slots": {"processes": 2, "threads": 3}},
    },
    "status": {
        "backlog": 12,
        "running": 6,
        "desiredReplicas": 4,
        "availableReplicas": 3,
        "oldestReadySeconds": 75,
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "ImagePullBackOff", "message": "1 pod"},
            {"type": "Active", "status": "True", "reason": "Backlog", "message": "From 3 to 4: 12 ready ask for 4."},
        ],
    },
}
OTHER = {"metadata": {"namespace": "team", "name": "mail"}, "spec": {"queue": {"table": "MailTable"}}}


def kubectl_that_knows(*items: dict[str, Any]) -> Any:
    return lambda arguments: json.dumps({"items": list(items)})


def kubectl_that_fails(arguments: Sequence[str]) -> str:
    raise NoPools("current-context is not set.")


class TopWorld(World):
    """A table with tasks in every state, and a kubectl."""

    def __init__(self, kubectl: Any = kubectl_that_fails) -> None:
        super().__init__()
        self.kubectl = kubectl
        put_pending(self.store, "ready-1", "ready-2", created_at=NOW - 90)
        self._put("later", lockTime=NOW + 500)
        self._put("waits", payload={"dependsOn": ["ready-1"]}, lockTime=NOW + 5)
        self._put("runs", status="RUNNING", lockOwner="team.reports/pod-1/u1-abc", lockTime=NOW + LEASE, taskType="report")
        self._put("runs too", status="RUNNING", lockOwner="team.reports/pod-1/u1-abc", lockTime=NOW + LEASE)
        self._put("lost", status="RUNNING", lockOwner="team.reports/pod-2/u2-xyz", lockTime=NOW - 30, createdAt=NOW - 400)
        self._put("ended", status="SUCCESS")
        self._put(
            "broken", status="FAILED", updatedAt=NOW - 10, error={"type": "ValueError", "message": "no\x1b[31m such", "at": NOW}
        )
        self._put("broken before", status="FAILED", updatedAt=NOW - 50, createdAt=NOW - 60)
        self._put("broken long ago", status="FAILED", updatedAt=NOW - 90, createdAt=NOW - 300)

    def _put(self, task_id: str, **attributes: Any) -> None:
        self.store.put_record(foreign_record(task_id, **attributes))

    def surroundings(self) -> Surroundings:
        return Surroundings(
            environ=self.environ,
            open_store=self._open,
            sleep=self.time.sleep,
            monotonic=self.time,
            wall=self.time,
            kubectl=self.kubectl,
        )

    def run(self, *arguments: str, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(
            main, list(arguments), input=input, obj=self.surroundings(), prog_name="thunderagent", catch_exceptions=False
        )


# --- top ----------------------------------------------------------------------------------------------------------------


def test_one_look_as_json_tells_of_the_table() -> None:
    seen = TopWorld().json("top", "--once", "--no-pools")
    assert seen["counts"] == {"PENDING": 4, "RUNNING": 3, "SUCCESS": 1, "DONE": 0, "FAILED": 3}
    assert (seen["ready"], seen["waiting"], seen["scheduled"], seen["expired"]) == (2, 1, 1, 1)
    assert seen["oldestReadyAge"] == 90
    assert seen["pools"] is None
    assert seen["cut"] == []


def test_agents_are_told_by_the_leases_that_they_hold_the_lost_ones_first() -> None:
    agents = TopWorld().json("top", "--once", "--no-pools")["agents"]
    assert [(each["owner"], each["running"], each["expired"]) for each in agents] == [
        ("team.reports/pod-2/u2-xyz", 0, 1),
        ("team.reports/pod-1/u1-abc", 2, 0),
    ]


def test_the_last_failure_comes_first_with_its_error() -> None:
    failures = TopWorld().json("top", "--once", "--no-pools")["failures"]
    assert [each["taskId"] for each in failures] == ["broken", "broken before", "broken long ago"]
    assert failures[0]["error"].startswith("ValueError: no")
    assert failures[1]["error"] == "no reason was written"


def test_a_count_that_stops_at_the_limit_says_so() -> None:
    seen = TopWorld().json("top", "--once", "--no-pools", "--limit", "2")
    assert seen["counts"]["PENDING"] == 2
    assert set(seen["cut"]) >= {"PENDING", "RUNNING"}
    assert "2+ PENDING" in TopWorld().run("top", "--once", "--no-pools", "--limit", "2").stdout


def test_the_pools_of_this_table_are_told_as_their_status_has_them() -> None:
    (pool,) = TopWorld(kubectl_that_knows(OTHER, POOL)).json("top", "--once")["pools"]
    assert (pool["namespace"], pool["name"], pool["backlog"], pool["desired"], pool["available"]) == (
        "team",
        "reports",
        12,
        4,
        3,
    )
    assert (pool["min"], pool["max"], pool["slots"], pool["ready"], pool["reason"]) == (1, 8, 6, "False", "ImagePullBackOff")


@pytest.mark.parametrize(
    ("flags", "asked"),
    [
        ((), ["--all-namespaces"]),
        (("--namespace", "team"), ["--namespace=team"]),
        (("--context", "prod"), ["--all-namespaces", "--context=prod"]),
    ],
    ids=["all namespaces", "one namespace", "a context of its own"],
)
def test_kubectl_is_asked_for(flags: Sequence[str], asked: list[str]) -> None:
    calls: list[list[str]] = []

    def kubectl(arguments: Sequence[str]) -> str:
        calls.append(list(arguments))
        return '{"items": []}'

    TopWorld(kubectl).json("top", "--once", *flags)
    assert calls == [["get", "thunderagentpools.thunderagent.dev", "--output=json", *asked]]


@pytest.mark.parametrize("said", ["", "[]", "{}", "null", "no resources"])
def test_what_kubectl_prints_and_is_no_list_costs_the_pools_alone(said: str) -> None:
    seen = TopWorld(lambda arguments: said).json("top", "--once")
    assert seen["pools"] is None
    assert seen["notes"] == ["No pools are shown: kubectl did not print a list of pools."]
    assert seen["ready"] == 2


def test_without_a_cluster_the_table_is_shown_alone_and_the_reason_is_told() -> None:
    result = TopWorld().run("top", "--once")
    assert result.exit_code == 0
    assert "No pools are shown: current-context is not set." in result.stdout
    assert "1 past their lease; 2 ready, the oldest for 1 min 30 s; 1 wait for others, 1 for a time" in result.stdout


def test_the_view_has_all_parts_and_lets_no_text_of_others_drive_the_terminal() -> None:
    text = TopWorld(kubectl_that_knows(POOL)).run("top").stdout  # no terminal, so one look
    for part in (
        "team/reports",
        "ImagePullBackOff",
        "1-8",
        "team.reports/pod-2/u2-xyz",
        "2 of 6",
        "runs too",
        "over 30s",
        "broken",
    ):
        assert part in text
    assert "\x1b" not in text
    assert "no\\x1b[31m such" in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 20), (140, 50)])
def test_the_view_keeps_to_the_terminal_and_tells_what_it_left_out(width: int, height: int) -> None:
    from thunderagent.cli.live.tablelook import TableLook  # noqa: PLC0415

    world = TopWorld()
    for number in range(30):
        world._put(f"r{number}", status="RUNNING", lockOwner=f"p/h/{number}-a", lockTime=NOW + LEASE)
    seen = TableLook(world.store, "TaskTable", 100, world.surroundings().rng, lambda: 0.0).look()
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(top_view(seen, width, height))
    lines = console.export_text().splitlines()
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= max(height, 24)
    assert any("more" in line for line in lines)


def test_the_live_view_outlives_an_outage_and_ends_with_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    world = TopWorld()
    looks: list[str] = []

    class Fading(MemoryStore):
        def page(self, *arguments: Any, **options: Any) -> Page:
            if len(looks) == 1:
                raise StoreUnavailable("no route to DynamoDB")
            return world.store.page(*arguments, **options)

    def sleep(seconds: float) -> None:
        looks.append(f"{seconds:g}")
        if len(looks) == 3:
            raise KeyboardInterrupt

    world.used = Fading(world.time)
    world.time.sleep = sleep  # type: ignore[method-assign]
    monkeypatch.setattr(top_command, "on_terminal", lambda stream: True)
    result = world.run("top", "--no-pools", "--every", "2s")
    assert result.exit_code == 0
    assert looks == ["2", "2", "2"]


# --- task show ----------------------------------------------------------------------------------------------------------


def run(began: int, ended: int, outcome: str, error: str = "") -> dict[str, Any]:
    told = {"owner": "crew/host/1-a", "began": NOW + began, "ended": NOW + ended, "outcome": outcome}
    return told | ({"error": error} if error else {})


def test_a_story_tells_waits_and_runs_in_their_order() -> None:
    world = World()
    history = [run(-90, -60, "retry", "ValueError: no such column"), run(-20, -10, "success")]
    world.store.put_record(
        foreign_record("t", status="SUCCESS", retryCount=1, history=history, createdAt=NOW - 100, updatedAt=NOW - 10)
    )
    told = world.json("task", "show", "t")
    assert [(each["what"], each.get("seconds")) for each in told["story"]] == [
        ("enqueued", None),
        ("waited", 10),
        ("ran: retry", 30),
        ("waited", 40),
        ("ran: success", 10),
        ("ended: SUCCESS", None),
    ]
    assert (told["waited"], told["ran"]) == (50, 40)
    assert told["story"][2]["error"] == "ValueError: no such column"


@pytest.mark.parametrize(
    ("attributes", "last"),
    [
        ({}, "waits for an agent"),
        ({"lockTime": NOW + 50}, "waits for its time"),
        ({"payload": {"dependsOn": "other"}}, "waits for other tasks"),
        ({"status": "RUNNING", "lockOwner": "o", "lockTime": NOW + 60}, "runs: lease has 1m"),
        ({"status": "RUNNING", "lockOwner": "o", "lockTime": NOW - 60}, "runs: lease over for 1m"),
        ({"status": "FAILED", "error": {"type": "Fail", "message": "for good"}}, "ended: FAILED"),
    ],
    ids=["ready", "scheduled", "waiting", "running", "lost", "failed"],
)
def test_a_story_ends_with_where_the_task_stands(attributes: dict[str, Any], last: str) -> None:
    world = World()
    world.store.put_record(foreign_record("t", **attributes))
    assert world.json("task", "show", "t")["story"][-1]["what"] == last


def test_a_story_says_what_is_waited_for_and_how_far_that_is() -> None:
    world = World()
    put_pending(world.store, "first")
    world.store.put_record(foreign_record("t", payload={"dependsOn": ["first", "nowhere"]}))
    assert world.json("task", "show", "t")["waitsFor"] == {"first": "PENDING", "nowhere": "not in the table"}
    assert "first (PENDING)" in world.run("task", "show", "t").stdout


def test_a_story_tells_of_runs_that_are_no_longer_kept_and_no_payload() -> None:
    world = World()
    world.store.put_record(
        foreign_record("t", payload={"password": "hunter2"}, retryCount=9, maxRetry=20, history=[run(-9, -8, "retry")])
    )
    text = world.run("task", "show", "t").stdout
    assert "8 earlier runs of which nothing is kept" in text
    assert "9 of 20 used" in text
    assert "hunter2" not in text


def test_the_story_of_a_task_that_is_not_there_is_an_error() -> None:
    result = World().run("task", "show", "t")
    assert result.exit_code == 1
    assert "There is no task t" in result.stderr
