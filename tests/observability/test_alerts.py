"""Each alert fires when it should and stays quiet when it should not, as Prometheus's own evaluation has it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.observability.declared import series_names
from tests.observability.queries import FILES, board, panels
from tests.observability.tools import ROOT, RULES, RUNBOOKS, promtool
from tests.unit.test_docs import LINK, check_command, commands

GROUPS = yaml.safe_load(RULES.read_text())["groups"]
ALERTS: Sequence[Mapping[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
NAMES = [rule["alert"] for rule in ALERTS]


@dataclass(frozen=True)
class Case:
    """Series as promtool writes them, a value a minute, without their labels namespace and pool; what fires at ``after``."""

    alert: str
    says: str
    series: Mapping[str, str]
    after: str
    fires: bool

    def __str__(self) -> str:
        return f"{self.alert} {'fires' if self.fires else 'is quiet'} {self.says}"


def fires(alert: str, says: str, after: str, **series: str) -> Case:
    return Case(f"ThunderAgent{alert}", says, _named(series), after, True)


def quiet(alert: str, says: str, after: str, **series: str) -> Case:
    return Case(f"ThunderAgent{alert}", says, _named(series), after, False)


def _named(series: Mapping[str, str]) -> dict[str, str]:
    """``pool_reads__result__ok`` as ``thunderagent_pool_reads{result="ok"}``."""
    named = {}
    for name, values in series.items():
        base, *labels = name.split("__")
        pairs = [f'{key}="{value}"' for key, value in zip(labels[::2], labels[1::2], strict=True)]
        shared = [] if base.startswith(("operator_", "scaling_")) else ['namespace="team"', 'pool="reports"']
        named[f"thunderagent_{base}{{{', '.join([*shared, *pairs])}}}"] = values
    return named


CASES = [
    fires(
        "OldestTaskTooOld",
        "when a task has waited for longer than the pool's target",
        "10m",
        pool_oldest_ready_seconds="660x20",
        pool_target_age_seconds="600x20",
    ),
    quiet(
        "OldestTaskTooOld",
        "where the pool allows for more",
        "10m",
        pool_oldest_ready_seconds="660x20",
        pool_target_age_seconds="3600x20",
    ),
    fires(
        "OldestTaskTooOld",
        "also while two replicas of the operator tell of the pool",
        "10m",
        pool_oldest_ready_seconds__instance__a="660x20",
        pool_target_age_seconds__instance__a="600x20",
        pool_target_age_seconds__instance__b="600x20",
    ),
    quiet(
        "OldestTaskTooOld",
        "after a peak that is over",
        "20m",
        pool_oldest_ready_seconds="700x3 0x30",
        pool_target_age_seconds="600x40",
    ),
    fires(
        "PoolAtMaxReplicas",
        "when the oldest task gets older at maxReplicas",
        "40m",
        pool_desired_replicas="10x60",
        pool_max_replicas="10x60",
        pool_oldest_ready_seconds="100+30x60",
        pool_ready_tasks="100x60",
    ),
    quiet(
        "PoolAtMaxReplicas",
        "while the backlog shrinks",
        "40m",
        pool_desired_replicas="10x60",
        pool_max_replicas="10x60",
        pool_oldest_ready_seconds="4000-30x60",
        pool_ready_tasks="1000-10x60",
    ),
    quiet(
        "PoolAtMaxReplicas",
        "while the pool may still grow",
        "40m",
        pool_desired_replicas="9x60",
        pool_max_replicas="10x60",
        pool_oldest_ready_seconds="100+30x60",
        pool_ready_tasks="100x60",
    ),
    fires(
        "ReadsFailing",
        "when every reading of ten minutes failed",
        "20m",
        pool_reads_total__result__ok="100x60",
        pool_reads_total__result__AccessDenied="0x5 0+12x60",
    ),
    fires("ReadsFailing", "for a pool that has never been read", "20m", pool_reads_total__result__TableMissing="1+12x60"),
    quiet(
        "ReadsFailing",
        "while some readings succeed",
        "20m",
        pool_reads_total__result__ok="100+6x60",
        pool_reads_total__result__TableThrottled="0+6x60",
    ),
    fires("CycleStalled", "when no cycle has ended for 6 minutes", "8m", pool_last_cycle_timestamp_seconds="60x20"),
    quiet("CycleStalled", "while cycles end", "20m", pool_last_cycle_timestamp_seconds="0+60x30"),
    quiet("CycleStalled", "of a pool that is gone", "20m", pool_last_cycle_timestamp_seconds="0+60x3 stale"),
    fires("OperatorWithoutLeader", "when no replica leads", "10m", operator_leader="1x2 0x30"),
    fires("OperatorWithoutLeader", "when the operator is gone", "20m", operator_leader="1x2 stale"),
    quiet(
        "OperatorWithoutLeader",
        "while one of two leads",
        "20m",
        operator_leader__instance__a="0x30",
        operator_leader__instance__b="1x30",
    ),
    quiet("OperatorWithoutLeader", "where there is no operator", "20m", pool_ready_tasks="0x30"),
    fires("PoolNotReady", "when the condition is not True for long", "20m", pool_condition__type__Ready="0x30"),
    quiet("PoolNotReady", "while it is True", "20m", pool_condition__type__Ready="1x30"),
    quiet("PoolNotReady", "because another condition is not True", "20m", pool_condition__type__Paused="0x30"),
    fires(
        "NoAgent",
        "when work waits and no replica is there",
        "12m",
        pool_ready_tasks="5x30",
        pool_condition__type__Active="1x30",
        pool_condition__type__Paused="0x30",
        pool_replicas__state__available="0x30",
    ),
    quiet(
        "NoAgent",
        "while a person has paused the pool",
        "12m",
        pool_ready_tasks="5x30",
        pool_condition__type__Active="1x30",
        pool_condition__type__Paused="1x30",
        pool_replicas__state__available="0x30",
    ),
    quiet(
        "NoAgent",
        "while the backlog is below the activation threshold",
        "12m",
        pool_ready_tasks="5x30",
        pool_condition__type__Active="0x30",
        pool_replicas__state__available="0x30",
    ),
    quiet(
        "NoAgent",
        "when the first agent comes after two minutes",
        "12m",
        pool_ready_tasks="5x30",
        pool_condition__type__Active="1x30",
        pool_replicas__state__available="0 0 1x30",
    ),
    fires("ExpiredLeasesStay", "when nobody takes a lost task", "12m", pool_expired_tasks="1x30"),
    quiet("ExpiredLeasesStay", "when it is taken within minutes", "12m", pool_expired_tasks="1x2 0x30"),
    fires(
        "FailedRatio",
        "when one task in five fails",
        "30m",
        tasks_total__outcome__failed="0+2x60",
        tasks_total__outcome__success="0+8x60",
    ),
    quiet(
        "FailedRatio",
        "when one task in a hundred fails",
        "30m",
        tasks_total__outcome__failed="0+1x60",
        tasks_total__outcome__success="0+99x60",
    ),
    quiet(
        "FailedRatio",
        "when two tasks failed in a quiet night",
        "30m",
        tasks_total__outcome__failed="0x5 1 2x60",
        tasks_total__outcome__success="0x60",
    ),
    quiet(
        "FailedRatio",
        "while runs are only retried",
        "30m",
        tasks_total__outcome__retry="0+9x60",
        tasks_total__outcome__failed="0x60",
        tasks_total__outcome__success="0+1x60",
    ),
    fires("LeasesLost", "when another agent took a running task", "10m", leases_lost_total__reason__taken_over="0x5 1x30"),
    quiet("LeasesLost", "when a task was cancelled", "10m", leases_lost_total__reason__cancelled="0x5 1x30"),
    quiet("LeasesLost", "an hour later", "60m", leases_lost_total__reason__taken_over="0x5 1x80"),
    fires("TasksTakenOver", "when it happens again and again", "40m", take_overs_total="0x5 0+1x60", buried_total="0x60"),
    fires("TasksTakenOver", "when one task was given up", "20m", take_overs_total="0x60", buried_total="0x5 1x60"),
    quiet("TasksTakenOver", "after one node was lost", "20m", take_overs_total="0x5 3x60", buried_total="0x60"),
    fires(
        "Throttled",
        "when agents are refused, also where the client's own retries succeed",
        "20m",
        dynamodb_throttled_attempts_total__operation__UpdateItem="0x2 0+2x60",
        dynamodb_calls_total__operation__UpdateItem__result__throttled="0x60",
    ),
    fires(
        "Throttled",
        "when readings of the backlog are refused",
        "20m",
        scaling_dynamodb_throttled_attempts_total__operation__Query="0x2 0+2x60",
    ),
    quiet(
        "Throttled",
        "when an attempt was refused now and then",
        "20m",
        dynamodb_throttled_attempts_total__operation__UpdateItem="0x5 3x60",
        dynamodb_calls_total__operation__UpdateItem__result__ok="0+500x60",
    ),
    quiet(
        "Throttled",
        "when attempts were made again because connections broke",
        "20m",
        dynamodb_throttled_attempts_total__operation__UpdateItem="0x60",
        dynamodb_retries_total__operation__UpdateItem="0+20x60",
    ),
    fires("ClockOffset", "when a clock is a minute late", "10m", clock_offset_seconds__instance__a="-60x30"),
    quiet("ClockOffset", "for a second", "10m", clock_offset_seconds__instance__a="1x30"),
    fires(
        "SlowStarts",
        "when one task in ten has started late for hours",
        "5h",
        task_wait_seconds_bucket__le__60_0="0+90x400",
        task_wait_seconds_count="0+100x400",
    ),
    quiet(
        "SlowStarts",
        "when one task in a hundred starts late",
        "5h",
        task_wait_seconds_bucket__le__60_0="0+99x400",
        task_wait_seconds_count="0+100x400",
    ),
    quiet(
        "SlowStarts",
        "once it is over, though the day was bad",
        "10h",
        task_wait_seconds_bucket__le__60_0="0+50x200 10000+100x500",
        task_wait_seconds_count="0+100x200 20000+100x500",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_alert(case: Case, tmp_path: Path) -> None:
    expected = [{"labels": "{}", "value": 1}] if case.fires else []
    unit = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name.replace("60_0", "60.0"), "values": values} for name, values in case.series.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{case.alert}", alertstate="firing"}})',
                        "eval_time": case.after,
                        "exp_samples": expected,
                    }
                ],
            }
        ],
    }
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(unit))
    promtool("test", "rules", file)


def test_prometheus_accepts_the_rules() -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool("check", "rules", RULES)


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(name: str) -> None:
    assert {case.fires for case in CASES if case.alert == name} == {True, False}


@pytest.mark.parametrize("rule", ALERTS, ids=NAMES)
def test_every_alert_says_what_it_is_about_and_names_declared_metrics_alone(rule: Mapping[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert set(re.findall(r"\bthunderagent_\w+", rule["expr"])) <= series_names()


@pytest.mark.parametrize("rule", ALERTS, ids=NAMES)
def test_every_alert_has_a_runbook_that_says_what_to_type(rule: Mapping[str, Any]) -> None:
    page = (ROOT / rule["annotations"]["runbook"]).read_text()
    assert page.startswith(f"# {rule['alert']}\n")
    assert "```sh\n" in page
    assert {"## What it means", "## What to type", "## What to do"} <= set(page.splitlines())


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda page: page.stem)
def test_the_commands_and_links_of_a_runbook_work(page: Path) -> None:
    for arguments in commands(page, "thunderagent"):
        check_command(arguments)  # raises what the command line would say
    links = [found["target"] for found in LINK.finditer(page.read_text())]
    assert [link for link in links if not (page.parent / link).is_file()] == []


def test_the_panels_that_runbooks_name_exist() -> None:
    titles = {panel["title"] for file in FILES for panel in panels(board(file.name))}
    named = {
        name for page in RUNBOOKS.glob("*.md") for name in re.findall(r'panels? (?:"[^"]+" and )?"([^"]+)"', page.read_text())
    }
    assert named
    assert named <= titles


def test_no_runbook_is_left_of_an_alert_that_is_gone() -> None:
    pages = {f"docs/runbooks/{page.name}" for page in RUNBOOKS.glob("*.md")} - {"docs/runbooks/README.md"}
    assert pages == {rule["annotations"]["runbook"] for rule in ALERTS}
