"""From an agent's metrics and a local pool's cycle to a sample: what an agent tells its pool, and what the pool writes down."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.builders import NOW
from thunderagent.agent.tally import ERRORS_TOLD, Tally, as_state, from_state, tally_of
from thunderagent.local.pool import PoolView
from thunderagent.local.samples import Sampler, sample_of
from thunderagent.metrics import AgentMetrics
from thunderagent.pool.parse import parse_pool
from thunderagent.report.sample import PoolSample
from thunderagent.report.samplefile import SampleFile, read_file
from thunderagent.scaling import Counts, FailedRead, Observation, ReplicaState, decide, initial_state, observe

POOL = parse_pool(
    {
        "apiVersion": "thunderagent.dev/v1alpha1",
        "kind": "ThunderAgentPool",
        "metadata": {"name": "crew"},
        "spec": {"queue": {"table": "TaskTable"}, "scaling": {"maxReplicas": 4, "tasksPerReplica": 2}},
    }
)


def view(seen: Observation | FailedRead, tally: Tally | None = None) -> PoolView:
    """A cycle that had no agents before it."""
    decision = decide(POOL.scaling_rules(), initial_state(0, 0.0), seen, 10.0)
    replicas = {ReplicaState.STARTING: decision.target}
    return PoolView("crew", decision, None, replicas, seen=seen, asked=(0, decision.target), tally=tally or Tally())


def reading(**counts: Any) -> Observation:
    return observe(pool="crew", counts=Counts(**counts), replicas=[], desired=0)


def test_an_agent_tells_its_outcomes_its_errors_and_its_waits() -> None:
    metrics = AgentMetrics(CollectorRegistry(), "crew")
    metrics.tasks["success"].inc(3)
    metrics.buried.inc()
    metrics.dependencies["abandoned"].inc(2)
    metrics.error("report", "ValueError", "failed")
    metrics.wait_seconds.observe(0.3)
    tally = from_state(as_state(tally_of(metrics)))
    assert tally is not None
    assert {name: count for name, count in tally.tasks.items() if count} == {"success": 3, "buried": 1, "abandoned": 2}
    assert tally.errors == {"ValueError (failed), report": 1}
    assert (tally.waits["0.1"], tally.waits["0.5"], tally.waits["+Inf"]) == (0, 1, 1)


def test_errors_of_any_number_and_length_fit_into_what_an_agent_tells() -> None:
    metrics = AgentMetrics(CollectorRegistry(), "crew")
    for number in range(500):
        metrics.error(f"type {number} " + "x" * 500, "E" * 500, "failed")
    assert len(tally_of(metrics).errors) <= ERRORS_TOLD
    assert len(as_state(tally_of(metrics))) < 8192


@pytest.mark.parametrize("line", ["READY=1", "STOPPING=1", "WATCHDOG=1", ""])
def test_other_lines_of_the_socket_are_no_tally(line: str) -> None:
    assert from_state(line) is None


def test_tallies_add_up_whatever_each_has() -> None:
    both = Tally({"success": 1}, {"A (failed)": 1}, {"1.0": 2}) + Tally({"success": 2, "failed": 1}, {}, {"1.0": 1})
    assert both == Tally({"success": 3, "failed": 1}, {"A (failed)": 1}, {"1.0": 3})


def test_a_cycle_becomes_a_sample_with_the_decisions_own_words() -> None:
    seen = reading(ready=5, waiting=2, oldest_ready_age=12.5, leases={"crew/vm/1": 1})
    sample = sample_of(view(seen, Tally({"success": 3})), POOL, NOW, NOW - 60)
    assert (sample.ready, sample.waiting, sample.running, sample.oldest) == (5, 2, 1, 12.5)
    assert (sample.was, sample.desired, sample.starting, sample.minimum, sample.maximum) == (0, 3, 3, 0, 4)
    assert (sample.reason, sample.problem, sample.tasks) == ("Backlog", "", {"success": 3})
    assert sample.sentence.startswith("From 0 to 3: ")
    assert sample.conditions == {"Ready": True, "Active": True, "Paused": False, "Fallback": False}


def test_a_reading_that_failed_leaves_the_backlog_unknown() -> None:
    sample = sample_of(view(FailedRead(0, "StoreThrottled", "slow down")), POOL, NOW, NOW - 60)
    assert (sample.ready, sample.waiting, sample.running, sample.expired, sample.oldest) == (None,) * 5
    assert (sample.problem, sample.conditions["Ready"]) == ("StoreThrottled", False)


def test_each_cycle_is_a_line_of_the_file(tmp_path: Path) -> None:
    with SampleFile(tmp_path / "samples") as file:
        sampler = Sampler(POOL, file, lambda: NOW)
        sampler.tell(view(reading(ready=1)))
        sampler.tell(view(reading()))
    found, _ = read_file(tmp_path / "samples")
    assert [(each.at, each.began, each.ready) for each in found] == [(NOW, NOW, 1), (NOW, NOW, 0)]


class FullDisk(SampleFile):
    """On which nothing can be written for some time."""

    is_full = True

    def add(self, sample: PoolSample) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().add(sample)


def test_a_full_disk_is_told_once_and_stops_no_pool(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with FullDisk(tmp_path / "samples") as file, caplog.at_level(logging.WARNING, "thunderagent.pool"):
        sampler = Sampler(POOL, file, lambda: NOW)
        sampler.tell(view(reading(ready=1)))
        sampler.tell(view(reading(ready=2)))
        file.is_full = False
        sampler.tell(view(reading(ready=3)))
    assert [record.getMessage() for record in caplog.records] == ["samples cannot be written"]
    assert [each.ready for each in read_file(tmp_path / "samples")[0]] == [3]
