"""Two hundred pools on one operator, all of them idle: what that costs."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.cluster import audit
from tests.cluster.record import Record
from tests.e2e.release import NAME, NAMESPACE
from tests.e2e.stage import POOL, Stage

POOLS = 200
MEASURED = 60.0
"""Seconds."""


@pytest.mark.timeout(900)
def test_200_idle_pools_write_no_status_and_share_the_reads_of_their_table(stage: Stage, cluster: Record) -> None:
    if cluster.audit_log is None:
        pytest.skip("the audit log of this cluster is out of reach")
    stage.kubectl.apply(*(stage.manifest(f"idle-{number}", scaling={"pollSeconds": 5}) for number in range(POOLS)))
    stage.until(f"{POOLS} Deployments", 240, lambda: len(stage.kubectl.get("deployments")["items"]) == POOLS)
    stage.until("all pools in order", 120, lambda: all(is_ready(pool) for pool in stage.kubectl.get(POOL)["items"]))
    time.sleep(70)  # what moves by itself is written within a minute
    before, since = metrics(stage), time.time()
    time.sleep(MEASURED)
    after, until = metrics(stage), time.time()
    asked = Counter(
        f"{request.verb} {request.resource}"
        for request in audit.requests_of(Path(cluster.audit_log), f"system:serviceaccount:{NAMESPACE}:{NAME}", since)
        if request.at <= until
    )
    reads = after["dynamodb"] - before["dynamodb"]
    print(
        f"\n{POOLS} idle pools, a poll every 5 s, in a minute: {after['cpu'] - before['cpu']:.1f} s of processor time, "
        f"{after['memory'] / 2**20:.0f} MiB, {reads:.0f} calls to DynamoDB, to the API server {dict(asked)}"
    )
    assert asked["patch thunderagentpools/status"] == 0
    assert reads <= 12 * 3 * 2  # two statuses and the clock, twelve times a minute, and as much again for late joiners
    stage.kubectl("delete", POOL, "--all", "--wait=false")


def is_ready(pool: object) -> bool:
    status = pool.get("status", {}) if isinstance(pool, dict) else {}
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))


def metrics(stage: Stage) -> dict[str, float]:
    """Processor seconds, bytes of memory and calls to DynamoDB, as the operator's /metrics tells them."""
    (pod,) = stage.operator.pods()
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}:8080/proxy/metrics"
    totals: defaultdict[str, float] = defaultdict(float)
    names = {
        "process_cpu_seconds_total": "cpu",
        "process_resident_memory_bytes": "memory",
        "thunderagent_scaling_dynamodb_calls_total": "dynamodb",
    }
    for line in stage.kubectl("get", f"--raw={path}").splitlines():
        name, _, value = line.rpartition(" ")
        if name.partition("{")[0] in names:
            totals[names[name.partition("{")[0]]] += float(value)
    return dict(totals)
