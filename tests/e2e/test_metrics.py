"""A real Prometheus over the cluster: it finds operator and agents by the chart's own monitors, and every panel has its series.

Times of the alerting rules are a sixtieth, as in `tests/observability`: an hour of theirs is a minute here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.discovery import discovered
from tests.e2e.ground import working
from tests.e2e.monitors import gate_of, jobs_of
from tests.e2e.release import CHART, NAME
from tests.e2e.stage import Stage
from tests.observability.complete import empty_panels, empty_selectors_of_alerts
from tests.observability.prometheus import Prometheus, prometheus
from tests.observability.tools import prometheus_tool

SINCE = 300.0
"""Seconds that are looked back over at the end: all that the test has taken."""

LONG = 90.0
"""Seconds within which an alert has to fire."""

WRONG_TABLE = "e2e-no-such-table"


@pytest.fixture
def seen(stage: Stage, tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus with the jobs that the chart's monitors ask for."""
    prometheus_tool("prometheus")
    flags = (
        "--set=metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true",
        "--show-only=templates/podmonitor.yaml",
    )
    rendered = stage.operator.helm("template", NAME, str(CHART), *flags, "--show-only=templates/servicemonitor.yaml")
    monitors = [found for found in yaml.safe_load_all(rendered) if found]
    assert sorted(each["kind"] for each in monitors) == ["PodMonitor", "ServiceMonitor"]
    with (
        discovered(stage.kubectl, tmp_path) as targets,
        prometheus(tmp_path / "prometheus", *jobs_of(monitors, targets, gate_of(stage.kubectl, tmp_path))) as running,
    ):
        yield running


def test_a_prometheus_finds_operator_and_agents_and_the_alerts_of_a_failure_fire(stage: Stage, seen: Prometheus) -> None:
    pool = f'namespace="{stage.kubectl.namespace}",pool="work"'
    stage.declare(scaling={"minReplicas": 2, "maxReplicas": 2, "tasksPerReplica": 2, "targetAgeSeconds": 10})
    stage.until_pods(2, 90)
    all_is_well(stage, seen, pool)
    tasks_fail_and_one_loses_its_agent(stage, seen, pool)
    more_comes_than_the_pool_may_grow_for(stage, seen, pool)
    a_table_is_missing(stage, seen)
    assert "ThunderAgentOperatorWithoutLeader" not in seen.have_fired(SINCE)
    assert empty_panels(seen, SINCE) == []
    assert empty_selectors_of_alerts(seen, SINCE) == []


def all_is_well(stage: Stage, seen: Prometheus, pool: str) -> None:
    seen.reaches(f'thunderagent_pool_replicas{{{pool},state="available"}}', 2)
    seen.reaches(f"count(thunderagent_slots{{{pool}}})", 2)
    tasks = stage.enqueue(working(0.1, 20))
    waiting = stage.enqueue([{"payload": {"dependsOn": tasks[:2]}}])
    stage.until_done([*tasks, *waiting], 90)
    seen.reaches(f'sum(thunderagent_tasks_total{{{pool},outcome="success"}})', 21)
    seen.reaches(f'sum(thunderagent_claims_total{{{pool},result="won"}})', 21)
    seen.reaches(f"thunderagent_pool_ready_tasks{{{pool}}}", 0)
    seen.reaches("sum(thunderagent_operator_leader)", 1)
    assert seen.value(f"sum(thunderagent_task_wait_seconds_count{{{pool}}})") == 21
    assert seen.value(f'sum(thunderagent_tasks_total{{{pool},outcome!="success"}})') == 0
    assert seen.value(f"thunderagent_pool_desired_replicas{{{pool}}}") == 2
    assert seen.value(f'thunderagent_pool_condition{{{pool},type="Ready"}}') == 1


def tasks_fail_and_one_loses_its_agent(stage: Stage, seen: Prometheus, pool: str) -> None:
    failing = stage.enqueue([{"payload": {"fails": "on purpose"}} for _ in range(6)])
    stage.until_done(failing, 60)
    seen.reaches(f'sum(thunderagent_tasks_total{{{pool},outcome="failed"}})', 6)
    seen.fires("ThunderAgentFailedRatio", LONG)
    (lost,) = stage.enqueue([{"payload": {"seconds": 600}, "maxRetry": 0}])
    stage.until("the run of the task that is lost", 30, lambda: _pod_of(stage, lost))
    stage.kubectl("delete", "pod", _pod_of(stage, lost), "--grace-period=0", "--force")
    seen.fires("ThunderAgentTasksTakenOver", LONG)


def more_comes_than_the_pool_may_grow_for(stage: Stage, seen: Prometheus, pool: str) -> None:
    tasks = stage.enqueue(working(4, 24))
    summary = seen.fires("ThunderAgentOldestTaskTooOld", LONG)["summary"]
    assert summary == "Tasks of pool work wait too long."
    seen.fires("ThunderAgentPoolAtMaxReplicas", LONG)
    assert seen.value(f"thunderagent_pool_wanted_replicas{{{pool}}}") == 3  # of what is counted: as much as 2 replicas are for
    stage.until_done(tasks, 120)


def a_table_is_missing(stage: Stage, seen: Prometheus) -> None:
    stage.declare("lost", queue={**stage.queue(), "table": WRONG_TABLE})
    seen.fires("ThunderAgentReadsFailing", LONG)
    lost = f'namespace="{stage.kubectl.namespace}",pool="lost"'
    failed = seen.value(f'thunderagent_pool_reads_total{{{lost},result="TableMissing"}}')
    assert failed is not None
    assert failed > 0
    seen.fires("ThunderAgentPoolNotReady", LONG)


def _pod_of(stage: Stage, task_id: str) -> str:
    return next((run.pod for run in stage.history.runs if run.task == task_id), "")
