"""The trials of ``make faults`` in a few seconds, and that they find what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail
from tests.faults.load import Findings, Kills, judge, kill_agents, lose_replies
from tests.faults.trials import Moment, run_trials
from tests.integration.agents import Entry
from tests.standins.dynalite import StandInUnavailable
from tests.standins.ministack import Ministack
from thunderagent import Task, transitions
from thunderagent.store.layout import CLASSIC, Layout, dispatch_layout

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    try:
        with Ministack() as server:
            yield server.endpoint
    except StandInUnavailable as unavailable:
        skip_or_fail(str(unavailable))


def test_no_agent_that_was_paused_writes_after_its_task_was_taken_over(endpoint: str) -> None:
    tally = run_trials(endpoint, 80, seed=1)

    assert tally.stale == ()
    assert set(tally.moments) == {moment.value for moment in Moment}


def test_a_rule_less_and_stale_writes_are_found(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trials would be worth nothing if they passed without the rule that they try."""
    monkeypatch.setattr(transitions, "held", lambda lease: transitions.RUNNING)

    assert len(run_trials(endpoint, 40, seed=1).stale) >= 10


LAYOUTS = pytest.mark.parametrize("layout", [CLASSIC, dispatch_layout(shards=2)], ids=["classic", "dispatch"])


@LAYOUTS
def test_of_tasks_whose_replies_get_lost_none_is_stranded_and_none_runs_twice(
    endpoint: str, tmp_path: Path, layout: Layout
) -> None:
    found = lose_replies(endpoint, tmp_path, tasks=200, agents=2, seed=1, layout=layout)

    assert found.is_clean, found
    assert (found.tasks, found.runs) == (200, 200)
    assert found.lost_replies >= 10


@LAYOUTS
def test_of_tasks_whose_agents_are_killed_each_ends_and_none_runs_beside_itself(
    endpoint: str, tmp_path: Path, layout: Layout
) -> None:
    found = kill_agents(endpoint, tmp_path, seconds=8, agents=2, seed=1, every=1.0, layout=layout)

    assert found.is_clean, found
    assert found.kills >= 3


# --- the judge ----------------------------------------------------------------------------------------------------------


def task(status: str = "SUCCESS", **changes: object) -> Task:
    return Task.from_record({"taskId": "t", "status": status, "retryCount": 0, "maxRetry": 1, **changes})


def line(event: str, at: float, *, agent: str = "A", pid: int = 1) -> Entry:
    return Entry(event, "t", pid, agent, at)


ONE_RUN = [line("start", 1), line("end", 2)]
KILLED_AT_3 = Kills(agents={"A": 3.0})
LOST = {"type": "LeaseExpired", "message": "", "at": 1}


@pytest.mark.parametrize(
    ("of", "history", "kills", "wrong"),
    [
        pytest.param(task(), ONE_RUN, Kills(), [], id="one run and its end"),
        pytest.param(task("RUNNING"), ONE_RUN, Kills(), ["stranded"], id="a task that has not ended"),
        pytest.param(task(), [line("start", 1)], Kills(), ["unrun"], id="a success of a run without an end"),
        pytest.param(task(), [], Kills(), ["unrun"], id="a success without a run"),
        pytest.param(
            task(retryCount=1),
            [*ONE_RUN, line("start", 4, agent="B", pid=2), line("end", 5, agent="B", pid=2)],
            Kills(),
            ["twice"],
            id="a second run though nobody was killed",
        ),
        pytest.param(
            task(retryCount=1),
            [*ONE_RUN, line("start", 4, agent="B", pid=2), line("end", 5, agent="B", pid=2)],
            KILLED_AT_3,
            [],
            id="a second run after the first one's agent was killed",
        ),
        pytest.param(
            task(retryCount=1),
            [*ONE_RUN, line("start", 2.5, agent="B", pid=2), line("end", 5, agent="B", pid=2)],
            KILLED_AT_3,
            ["twice"],
            id="a second run before the first one's agent was killed",
        ),
        pytest.param(
            task(),
            [*ONE_RUN, line("start", 4, agent="B", pid=2), line("end", 5, agent="B", pid=2)],
            KILLED_AT_3,
            ["overcharged"],
            id="a second run that used no retry",
        ),
        pytest.param(task("FAILED", retryCount=1, error=LOST), [line("start", 1)], KILLED_AT_3, [], id="all retries lost"),
        pytest.param(
            task("FAILED", error=LOST), [line("start", 1)], KILLED_AT_3, ["overcharged"], id="failed with a retry left"
        ),
    ],
)
def test_what_the_judge_finds(of: Task, history: list[Entry], kills: Kills, wrong: list[str]) -> None:
    found: Findings = judge([of], history, kills)

    assert [name for name in ("stranded", "unrun", "twice", "overcharged") if getattr(found, name)] == wrong
    assert found.is_clean == (wrong == [])
