"""Outages of everything that is not ours, and crashes of what is: nothing is interrupted, and afterwards it scales again."""

from __future__ import annotations

import random
import time
from itertools import groupby
from pathlib import Path

import pytest

from tests.cluster import audit
from tests.cluster.kubectl import Kubectl
from tests.cluster.record import Record
from tests.e2e.faults import Faults
from tests.e2e.ground import working
from tests.e2e.release import NAME, NAMESPACE
from tests.e2e.stage import Stage

RECOVERY = 90
"""Seconds after a fault within which a pool scales again."""

FAILOVER = 20


def test_an_operator_killed_again_and_again_in_the_middle_of_scaling_interrupts_no_run(stage: Stage, faults: Faults) -> None:
    rng = random.Random(6)
    stage.declare(scaling={"maxReplicas": 5})
    tasks: list[str] = []
    with stage.watched() as replicas:
        for _ in range(4):
            tasks += stage.enqueue(working(1, 5) + working(8, 2))
            time.sleep(rng.uniform(0.5, 6))
            assert faults.kill_containers(NAMESPACE)
            # A container that ends again and again is started ever later, so its pod is made anew.
            stage.operator.kubectl("delete", "pod", "--selector=app.kubernetes.io/component=operator", "--force")
        stage.until_done(tasks, RECOVERY + 60)
        stage.until_replicas(0, RECOVERY)
    assert max(replicas.values) <= 5
    assert stage.history.unfinished == []
    assert len(stage.history.runs) == len(tasks)


def test_another_replica_of_the_operator_leads_within_20_seconds_of_the_leaders_crash(
    stage: Stage, faults: Faults, cluster: Record
) -> None:
    stage.declare(scaling={"maxReplicas": 3})
    stage.until_replicas(0, 30)
    stage.operator.scale(2)
    began = time.time()
    try:
        leader = holder(stage.operator.kubectl)
        first = stage.enqueue(working(25, 1))
        stage.until_replicas(1, 30)
        assert faults.kill_containers(NAMESPACE, leader.rpartition("_")[0]) == 1
        took = stage.until("another leader", 2 * FAILOVER, lambda: holder(stage.operator.kubectl) not in {leader, ""})
        tasks = first + stage.enqueue(working(1, 3))
        stage.until_replicas(3, 30)
        stage.until_done(tasks, 60)
        stage.until_replicas(0, 60)
    finally:
        stage.operator.scale(1)
    print(f"\nanother leader after {took:.1f} s")
    assert took <= FAILOVER
    if cluster.audit_log is not None:
        deciders = scaled_by(Path(cluster.audit_log), stage.kubectl.namespace, began)
        assert len(deciders) == len(set(deciders)) == 2, "the old leader first, then the new one, and never in turns"


def scaled_by(log: Path, namespace: str, since: float) -> list[str]:
    """The operators that have scaled a Deployment of the namespace, by their pods' addresses, each time that they changed.

    A container that was killed starts again in its pod, with the pod's address; it does not lead as long as the other one does.
    """
    scaled = [
        request
        for request in audit.requests_of(log, f"system:serviceaccount:{NAMESPACE}:{NAME}", since)
        if request.resource == "deployments/scale" and request.verb in {"update", "patch"} and request.namespace == namespace
    ]
    return [address for address, _ in groupby(request.address for request in sorted(scaled, key=lambda each: each.at))]


def holder(kubectl: Kubectl) -> str:
    """Who holds the operator's Lease."""
    return str(kubectl.get("lease", NAMESPACE)["spec"].get("holderIdentity", ""))


def test_a_pool_scales_again_after_60_seconds_without_an_api_server(stage: Stage, faults: Faults) -> None:
    stage.declare(scaling={"maxReplicas": 4})
    tasks = stage.enqueue(working(20, 2))
    stage.until("two runs", 60, lambda: len(stage.history.runs) == 2)
    restarts = operator_restarts(stage)
    with faults.without("kube-apiserver"):
        time.sleep(60)
    stage.until("the API server", 60, lambda: stage.kubectl("get", "--raw=/readyz"))
    back = time.monotonic()
    tasks += stage.enqueue(working(15, 8))
    stage.until_replicas(4, RECOVERY)
    print(f"\nscaled {time.monotonic() - back:.0f} s after the API server was back")
    stage.until_done(tasks, 90)
    stage.until_replicas(0, RECOVERY)
    assert stage.history.unfinished == []
    assert operator_restarts(stage) - restarts <= 1, "to step down once, since leadership was lost, is right"


@pytest.mark.timeout(900)
def test_a_table_that_hangs_for_3_minutes_changes_no_replicas(stage: Stage, faults: Faults) -> None:
    """keda#1850: the source was down, and everything was scaled to zero."""
    stage.declare(scaling={"maxReplicas": 4}, agent={"leaseSeconds": 120, "renewSeconds": 10})
    tasks = stage.enqueue(working(2, 40))
    stage.until_pods(4, 60)
    restarts = operator_restarts(stage)
    with stage.watched() as replicas:
        stage.until("the replicas", 20, lambda: replicas.values)
        with faults.frozen_dynamodb(stage.ground):
            time.sleep(180)
            unread = stage.condition("Ready")
        assert replicas.values == [4]
    assert unread[:2] == ("False", "TableUnreachable")
    told = stage.kubectl.get("events", "--field-selector=involvedObject.kind=ThunderAgentPool,type=Warning")["items"]
    counts = [event["count"] for event in told if event["reason"] == "TableUnreachable"]
    assert counts == [1], "an event for each change, not for each cycle"
    assert operator_restarts(stage) == restarts
    stage.until_done(tasks, 180)
    stage.until_replicas(0, RECOVERY)
    assert stage.table.counts() == {"SUCCESS": 40}
    assert all(pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in stage.pods())


def operator_restarts(stage: Stage) -> int:
    """How often the operator's container has been started again."""
    return sum(pod["status"]["containerStatuses"][0]["restartCount"] for pod in stage.operator.pods())


def test_a_restart_of_the_kubelet_interrupts_no_run(stage: Stage, faults: Faults) -> None:
    stage.declare(scaling={"maxReplicas": 3})
    tasks = stage.enqueue(working(3, 12))
    stage.until("three runs", 60, lambda: len(stage.history.runs) >= 3)
    faults.restart("kubelet")
    stage.until_done(tasks, 90)
    stage.until_replicas(0, RECOVERY)
    assert stage.history.unfinished == []
    assert len(stage.history.runs) == len(tasks)
