"""What killed agents were running is found again, and wakes a pool that has no replicas."""

from __future__ import annotations

import time

from tests.e2e.faults import Faults
from tests.e2e.ground import working
from tests.e2e.stage import Stage

LEASE, POLL = 20, 1


def test_running_tasks_of_killed_agents_wake_a_pool_from_0_within_a_lease_and_two_polls(stage: Stage, faults: Faults) -> None:
    stage.declare(scaling={"maxReplicas": 3}, agent={"leaseSeconds": LEASE})
    tasks = stage.enqueue(working(15, 3))
    stage.until("three runs", 60, lambda: len(stage.history.runs) == 3)
    stage.operator.stop()
    assert faults.kill_containers(stage.kubectl.namespace) == 3
    killed = time.monotonic()
    stage.kubectl("scale", "deployment/work", "--replicas=0")
    stage.until_pods(0, 15)
    assert stage.table.counts() == {"RUNNING": 3}
    stage.operator.scale(1)
    stage.until("replicas again", 60, lambda: stage.replicas() > 0)
    assert time.monotonic() - killed < LEASE + 2 * POLL
    stage.until_done(tasks, 120)
    history = stage.history
    assert len(history.unfinished) == 3
    assert not history.repeated
    assert stage.table.counts() == {"SUCCESS": 3}
    stage.until_replicas(0, 60)


def test_agents_killed_in_their_pods_start_again_and_lose_no_task(stage: Stage, faults: Faults) -> None:
    stage.declare(scaling={"maxReplicas": 3}, agent={"leaseSeconds": LEASE})
    tasks = stage.enqueue(working(6, 3))
    stage.until("three runs", 60, lambda: len(stage.history.runs) == 3)
    assert faults.kill_containers(stage.kubectl.namespace) == 3
    stage.until_done(tasks, 120)
    assert len(stage.history.unfinished) == 3
    stage.until_replicas(0, 60)
