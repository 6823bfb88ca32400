"""The benchmarks compute and print rightly. What they measure is not tested: a time says most about the machine."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import bare_loop, cost
from benchmarks.hidden_task import look_for_one, table_of
from benchmarks.idle import reads_an_hour
from benchmarks.pairs import Pair, interleaved, ratios
from benchmarks.report import Figure, Goal, as_json, print_table
from benchmarks.rerun import LOOK_MAX, ROUNDING, seconds_until_rerun
from benchmarks.rerun import SETTINGS as RERUN
from benchmarks.write_units import Index, busiest_key_units, task_units, write_units
from thunderagent import transitions
from thunderagent.store.expressions import update_arguments
from thunderagent.store.layout import CLASSIC, Layout, Way, dispatch_layout
from thunderagent.task import Outcome, OutcomeKind, Task
from thunderagent.transitions import Lease

COST_PAGE = Path(__file__).parents[2] / "docs/cost.md"

# --- the model of write units -------------------------------------------------------------------------------------------

INDEX = Index(("status", "createdAt"))
PENDING = {"taskId": "a", "status": "PENDING", "createdAt": 1}
NO_KEY = {"taskId": "a", "status": "PENDING"}
KB = {"payload": "x" * 1024}


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        pytest.param({}, PENDING, 2, id="a new item: itself and its entry"),
        pytest.param(PENDING, {}, 2, id="an item that goes: itself and its entry"),
        pytest.param(PENDING, PENDING | {"lockTime": 5}, 2, id="another attribute: the entry is written once"),
        pytest.param(PENDING, PENDING | {"status": "RUNNING"}, 3, id="a key of the index: the entry is removed and made anew"),
        pytest.param(PENDING, PENDING, 1, id="nothing changes: the entry is not written"),
        pytest.param(NO_KEY, NO_KEY | {"lockTime": 5}, 1, id="an item without a key is not in the index"),
        pytest.param(PENDING, NO_KEY, 2, id="an entry that goes for want of a key is removed"),
        pytest.param(PENDING | KB, PENDING | KB | {"lockTime": 5}, 4, id="above 1 KB all counts twice"),
        pytest.param(PENDING, PENDING | KB | {"status": "RUNNING"}, 5, id="growing above 1 KB: 2, and 1 + 2 in the index"),
        pytest.param(PENDING | KB, PENDING, 4, id="shrinking counts as the larger of the two"),
    ],
)
def test_a_write_costs_what_dynamodb_documents(before: dict[str, Any], after: dict[str, Any], units: int) -> None:
    assert write_units(before, after, [INDEX]) == units


def test_what_a_write_costs_an_index_is_split_by_the_key_it_goes_to() -> None:
    running = PENDING | {"status": "RUNNING"}
    assert INDEX.partition_units(PENDING, running) == {"PENDING": 1, "RUNNING": 1}
    assert INDEX.partition_units(running, running | {"lockTime": 5}) == {"RUNNING": 1}
    assert INDEX.partition_units(PENDING | KB, running | KB) == {"PENDING": 2, "RUNNING": 2}
    assert INDEX.partition_units(NO_KEY, NO_KEY) == {}


@pytest.mark.parametrize(("way", "renewals", "units"), [(Way.CLASSIC, 0, 2), (Way.CLASSIC, 10, 12), (Way.DISPATCH, 0, 0.25)])
def test_a_task_costs_its_busiest_key_two_units_and_its_renewals(way: Way, renewals: int, units: float) -> None:
    assert busiest_key_units(renewals, way) == units


def test_without_an_index_only_the_item_counts() -> None:
    assert write_units({}, PENDING, []) == 1


@pytest.mark.parametrize(("renewals", "units"), [(0, 8), (1, 10), (10, 28)])
def test_a_task_costs_three_writes_their_index_entries_and_its_renewals(renewals: int, units: int) -> None:
    assert task_units(renewals) == units


# --- what an agent is compared with -------------------------------------------------------------------------------------

TASK = Task.from_record({"taskId": "a", "status": "PENDING", "createdAt": 1, "lockTime": 1})
LEASE = Lease(TASK, "token", bare_loop.OWNER, 1_800_000_000, (1_800_000_000 + bare_loop.LEASE,))


def test_the_bare_loop_claims_as_an_agent_does() -> None:
    claim = transitions.claim(TASK, now=LEASE.began, lease_end=LEASE.ends, owner=LEASE.owner, token=LEASE.token)
    assert _shape(bare_loop.claim_arguments("table", "a", "token", LEASE.began)) == _shape(update_arguments(claim))


def test_the_bare_loop_completes_as_an_agent_does() -> None:
    now = LEASE.began + 1
    complete = transitions.complete(LEASE, Outcome(OutcomeKind.SUCCESS), now=now, expires_at=now + bare_loop.KEEP)
    bare = bare_loop.complete_arguments("table", "a", "token", LEASE.began, now)
    assert _shape(bare) == _shape(update_arguments(complete))


def _shape(arguments: dict[str, Any]) -> tuple[Any, ...]:
    """What a write sets, what it removes and when, with the values in place of their placeholders."""
    values = arguments["ExpressionAttributeValues"]
    update, condition = arguments["UpdateExpression"], arguments["ConditionExpression"]
    for placeholder in sorted(values, key=len, reverse=True):
        update = update.replace(placeholder, json.dumps(values[placeholder], sort_keys=True))
        condition = condition.replace(placeholder, json.dumps(values[placeholder], sort_keys=True))
    sets, _, removes = update.removeprefix("SET ").partition(" REMOVE ")
    names = set(arguments["ExpressionAttributeNames"].values())
    return sorted(sets.split(", ")), set(removes.split(", ")), condition, names, arguments["Key"]


# --- measuring side by side ---------------------------------------------------------------------------------------------


def test_pairs_take_turns_in_going_first() -> None:
    order: list[str] = []

    def ours() -> str:
        order.append("ours")
        return "a"

    def theirs() -> str:
        order.append("theirs")
        return "b"

    assert interleaved(ours, theirs, 3) == [("a", "b")] * 3
    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_a_ratio_is_taken_within_a_pair() -> None:
    assert ratios([Pair(2.0, 1.0), Pair(30.0, 10.0)]) == (2.0, 3.0)


def test_an_idle_agent_reads_a_bounded_number_of_times() -> None:
    calls, units = reads_an_hour()
    assert 360 < calls < 3600 / 7.5 + 3600 / 15 + 10, "a poll each 10 s and a look each 30 s, both jittered"
    assert units == calls / 2


# --- a hidden task, and a lost one ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [CLASSIC, dispatch_layout(1)], ids=["classic", "dispatch"])
def test_the_first_poll_finds_a_ready_task_that_is_older_than_all_that_wait(layout: Layout) -> None:
    assert look_for_one(table_of(3000, layout), layout, created=-1, agents=1, seed=0).polls == 1


def test_a_ready_task_in_the_middle_is_found_on_classic_by_a_sweep_and_on_dispatch_at_once() -> None:
    classic = look_for_one(table_of(3000, CLASSIC), CLASSIC, created=1500, agents=1, seed=0)
    dispatch = look_for_one(table_of(3000, dispatch_layout(1)), dispatch_layout(1), created=1500, agents=1, seed=0)
    assert 3 < classic.polls < 20
    assert dispatch.polls == 1


def test_a_lost_run_begins_again_within_a_lease_and_a_look() -> None:
    seconds = seconds_until_rerun(seed=1)
    assert RERUN.lease - RERUN.renew <= seconds <= RERUN.lease + LOOK_MAX * RERUN.expired_look + ROUNDING


# --- what it costs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [*cost.million_tasks(), *cost.idle_month()], ids=lambda row: row.name)
def test_the_page_on_cost_says_what_the_units_come_to(row: cost.Row) -> None:
    assert str(row) in COST_PAGE.read_text(encoding="utf-8").splitlines()


# --- what is printed ----------------------------------------------------------------------------------------------------

MET = Figure("speed", 0.95, "times", "a bare loop", "median of 3 pairs", Goal(0.9, at_least=True), (0.91, 0.95, 1.2))
MISSED = Figure("cost", 1.71, "times", "a bare loop", "median of 3 pairs", Goal(1.6))
NO_GOAL = Figure("memory", 52345.4, "kB", "", "VmRSS")


@pytest.mark.parametrize(
    ("goal", "value", "met"),
    [
        pytest.param(Goal(0.9, at_least=True), 0.9, True, id="at least: the bound itself will do"),
        pytest.param(Goal(0.9, at_least=True), 0.89, False, id="at least: below it is missed"),
        pytest.param(Goal(8), 8, True, id="at most: the bound itself will do"),
        pytest.param(Goal(8), 9, False, id="at most: above it is missed"),
    ],
)
def test_a_goal_says_whether_a_value_meets_it(goal: Goal, value: float, met: bool) -> None:
    assert goal.met_by(value) is met


def test_the_table_shows_value_range_and_whether_the_goal_is_met() -> None:
    text = _printed([MET, MISSED, NO_GOAL])
    assert "0.95 times (0.91 to 1.2)" in text
    assert "≥ 0.9 met" in text
    assert "≤ 1.6 MISSED" in text
    assert "52,345 kB" in text


def test_the_json_says_what_the_table_says() -> None:
    written = json.loads(as_json([MET, MISSED, NO_GOAL]))
    assert [figure["met"] for figure in written["figures"]] == [True, False, None]
    assert [figure["goal"] for figure in written["figures"]] == ["≥ 0.9", "≤ 1.6", None]
    assert written["figures"][0]["samples"] == [0.91, 0.95, 1.2]
    assert written["machine"]["processors"] >= 1


def _printed(figures: list[Figure]) -> str:
    output = io.StringIO()
    print_table(figures, Console(file=output, width=200))
    return output.getvalue()
