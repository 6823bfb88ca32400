"""A real Prometheus over a pool at work: right numbers while all is well, then failures, and the alerts that they are for.

An hour of the rules takes a minute here: the pool is scraped each second, and all times of the rules are a sixtieth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from tests.faults.plan import ANY, THROTTLED, Rule
from tests.faults.proxy import FaultProxy
from tests.integration.agents import Scene, eventually
from tests.observability.complete import empty_panels, empty_selectors_of_alerts
from tests.observability.localpool import MeasuredPool, measured_pool
from tests.observability.prometheus import Prometheus, fixed, prometheus
from tests.observability.tools import prometheus_tool
from thunderagent.agent.health import HealthServer
from thunderagent.cli.main import main
from thunderagent.metrics import ControllerMetrics

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]

SINCE = 240.0
"""Seconds that are looked back over at the end: all that the test has taken."""

LONG = 60.0
"""Seconds within which an alert has to fire: the longest of its times, hurried, and some."""

TOO_SLOW_A_MACHINE = {"ThunderAgentSlowStarts"}
"""Hurried, this one is about starts within a second: what a busy machine makes of 22 tasks proves nothing."""

POOL = 'namespace="",pool="crew"'


@contextmanager
def operator_of_nothing() -> Iterator[str]:
    """The address of what an operator serves that leads and has no pool: a local pool has none of these series."""
    metrics = ControllerMetrics(CollectorRegistry())
    metrics.build.info({"version": "0"})
    metrics.leader.set(1)
    metrics.pools.set(0)
    server = HealthServer("127.0.0.1", 0, metrics.registry, lambda: None)
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.close()


def test_numbers_alerts_and_panels_over_a_load_with_failures(scene: Scene, proxy: FaultProxy, tmp_path: Path) -> None:
    prometheus_tool("prometheus")
    with (
        operator_of_nothing() as operator,
        measured_pool(scene, proxy.endpoint, minReplicas=2, maxReplicas=2) as pool,
        prometheus(tmp_path / "prometheus", fixed("pool", pool.targets), fixed("operator", [operator])) as seen,
    ):
        all_is_well(scene, pool, seen)
        reports_tell_the_same(pool, seen)
        assert seen.have_fired(SINCE) - TOO_SLOW_A_MACHINE == set()
        tasks_fail_and_agents_die(scene, pool, seen)
        more_work_than_the_pool_may_grow_for(scene, seen)
        the_table_cannot_be_reached(proxy, seen)
        assert {"ThunderAgentOperatorWithoutLeader", "ThunderAgentClockOffset"}.isdisjoint(seen.have_fired(SINCE))
        assert empty_panels(seen, SINCE) == []
        assert empty_selectors_of_alerts(seen, SINCE) == []


def all_is_well(scene: Scene, pool: MeasuredPool, seen: Prometheus) -> None:
    pool.has_agents(2)
    seen.reaches(f'thunderagent_pool_replicas{{{POOL},state="available"}}', 2)
    seen.reaches(f"sum(thunderagent_slots{{{POOL}}})", 22)  # each agent has one for sync handlers and ten for async ones
    first = scene.enqueue("plain", 20)
    after = scene.enqueue("plain", 2, {"dependsOn": first[:2]})
    scene.all_ended([*first, *after])

    seen.reaches(f'sum(thunderagent_tasks_total{{{POOL},outcome="success"}})', 22)
    seen.reaches(f"sum(thunderagent_slots_busy{{{POOL}}})", 0)
    seen.reaches(f"thunderagent_pool_ready_tasks{{{POOL}}}", 0)
    assert seen.value(f'sum(thunderagent_claims_total{{{POOL},result="won"}})') == 22
    assert seen.value(f'sum(thunderagent_tasks_total{{{POOL},outcome!="success"}})') == 0
    assert seen.value(f"sum(thunderagent_task_wait_seconds_count{{{POOL}}})") == 22
    assert seen.value(f"sum(thunderagent_task_run_seconds_count{{{POOL}}})") == 22
    assert seen.value(f"thunderagent_pool_desired_replicas{{{POOL}}}") == 2
    assert seen.value(f'thunderagent_pool_condition{{{POOL},type="Ready"}}') == 1
    assert seen.value(f'thunderagent_pool_reads_total{{{POOL},result!="ok"}}') is None
    units = seen.value(f'sum(thunderagent_dynamodb_consumed_units_total{{{POOL},operation="UpdateItem"}})')
    assert units is not None
    assert units >= 22  # a claim and an end of each task, for which the embedded DynamoDB counts half a unit each


def reports_tell_the_same(pool: MeasuredPool, seen: Prometheus) -> None:
    """The page from Prometheus's scrapes and the one from the pool's own samples."""
    of_prometheus = figures_of("--prometheus", seen.url, "--last", f"{SINCE:.0f}")

    def samples() -> dict[str, str]:
        return figures_of("--samples", str(pool.samples))

    eventually(lambda: samples()["tasks ended"] == "22", lambda: f"{samples()}")  # agents tell of themselves now and then
    of_samples = samples()
    assert of_samples["of these FAILED"] == "0"
    assert of_samples["replicas desired"] == of_prometheus["replicas desired"] == "2 to 2"
    assert of_prometheus["of these FAILED"] == "0"
    assert 15 <= int(of_prometheus["tasks ended"]) <= 30  # it extrapolates from the scrapes to the ends of the range


def figures_of(*arguments: str) -> dict[str, str]:
    """The key figures of a report."""
    result = CliRunner().invoke(main, ["report", *arguments, "--out", "-"])
    assert result.exit_code == 0, result.stderr
    return dict(re.findall(r'<span class="label">([^<]*)</span><span class="figure">([^<]*)</span>', result.stdout))


def tasks_fail_and_agents_die(scene: Scene, pool: MeasuredPool, seen: Prometheus) -> None:
    scene.all_ended(scene.enqueue("raises", 6, {"kind": "fail"}))
    scene.all_ended(scene.enqueue("raises", 1, {"kind": "ValueError"}, max_retry=1))
    seen.reaches(f'sum(thunderagent_tasks_total{{{POOL},outcome="failed"}})', 7)
    seen.reaches(f'sum(thunderagent_task_errors_total{{{POOL},error="ValueError",outcome="retry"}})', 1)
    (lost,) = scene.enqueue("hold", 1, {"gate": "never"}, max_retry=0)
    pool.kill_agent_of(lost)

    annotations = seen.fires("ThunderAgentFailedRatio", LONG)
    assert re.fullmatch(r"\d+(\.\d+)?% of the tasks of pool crew fail\.", annotations["summary"])
    assert scene.ended(lost).error is not None
    seen.fires("ThunderAgentTasksTakenOver", LONG)


def more_work_than_the_pool_may_grow_for(scene: Scene, seen: Prometheus) -> None:
    held = scene.enqueue("hold", 10, {"gate": "go"})
    summary = seen.fires("ThunderAgentOldestTaskTooOld", LONG)["summary"]
    assert summary == "Tasks of pool crew wait too long."
    seen.fires("ThunderAgentPoolAtMaxReplicas", LONG)
    # Two run, and the count of the ready ones stops at the four that all replicas are for.
    assert seen.value(f"thunderagent_pool_wanted_replicas{{{POOL}}}") == 3
    assert seen.value(f"thunderagent_pool_count_cut{{{POOL}}}") == 1
    scene.open_gate("go")
    scene.all_ended(held)
    seen.fires("ThunderAgentSlowStarts", LONG)


def the_table_cannot_be_reached(proxy: FaultProxy, seen: Prometheus) -> None:
    proxy.script(Rule(ANY, THROTTLED))
    seen.fires("ThunderAgentReadsFailing", LONG)
    seen.fires("ThunderAgentPoolNotReady", LONG)
    seen.fires("ThunderAgentThrottled", LONG)
    failed = seen.value(f'sum(thunderagent_pool_reads_total{{{POOL},result="StoreThrottled"}})')
    assert failed is not None
    assert failed > 0
    proxy.script()
    seen.reaches(f'thunderagent_pool_condition{{{POOL},type="Ready"}}', 1)
