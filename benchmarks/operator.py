"""The operator as a process, against a real API server alone and an embedded DynamoDB: how soon it scales, and its memory.

Without the programs that `make cluster-up` builds there is no API server, and these rows are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.backlog import PAYLOAD, make_backlog
from benchmarks.processes import resident_mb
from benchmarks.report import Figure, Goal
from benchmarks.servers import Server
from controller.errors import ObjectMissing
from controller.kube import POOLS, Api
from controller.names import API_VERSION, KIND, PLURAL
from tests.apiserver.alone import ApiServerAlone, serve_pools
from thunderagent import TableSettings, TaskQueue

ROOT = Path(__file__).parents[1]
POLL = 5
PATIENCE = 60.0
STOP_SECONDS = 15.0
POOLS_MORE = 20


class Bench:
    """Pools of one namespace, each with a table of its own."""

    def __init__(self, api: Api, server: Server) -> None:
        self._api = api
        self._server = server

    def create_pool(self, name: str) -> TableSettings:
        """A pool without work, and its table."""
        table = make_backlog(self._server, 0).table
        spec = {
            "queue": {"table": table.table, "endpoint": table.endpoint, "region": "us-east-1"},
            "scaling": {"maxReplicas": 1000, "tasksPerReplica": 1, "pollSeconds": POLL},
            "agent": {"handler": "app:handle"},
            "template": {"spec": {"containers": [{"name": "agent", "image": "app:1"}]}},
        }
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}
        self._api.call("POST", f"{POOLS}/namespaces/default/{PLURAL}", body=body, timeout=10.0)
        return table

    def replicas(self, name: str) -> int:
        """What the pool's Deployment asks for; -1 where there is none."""
        try:
            deployment = self._api.call("GET", f"/apis/apps/v1/namespaces/default/deployments/{name}", timeout=10.0)
        except ObjectMissing:
            return -1
        return int(deployment["spec"]["replicas"])

    def wait_for_replicas(self, name: str, count: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.replicas(name) != count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"Deployment {name} did not come to {count} replicas within {PATIENCE:g} s.")
            time.sleep(0.02)


def measure(server: Server, programs: Path, rounds: int) -> list[Figure]:
    """From enqueue to patched replicas, ``rounds`` times; memory with one pool, and what each further one adds."""
    with tempfile.TemporaryDirectory() as folder, ApiServerAlone(programs, Path(folder)) as kubernetes:
        api = kubernetes.api()
        serve_pools(api)
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubernetes.kubeconfig()))
        with _operator(kubeconfig) as pid:
            bench = Bench(api, server)
            seconds = _seconds_to_scale(bench, rounds)
            one = resident_mb(pid)
            many = _memory_with_more(bench, pid)
    how = f"a real API server, a poll every {POLL} s, median of {rounds}"
    return [
        Figure("enqueue to replicas patched, median", median(seconds), "s", "", how, Goal(POLL + 1), tuple(seconds)),
        Figure("enqueue to replicas patched, worst", max(seconds), "s", "", how, Goal(POLL + 1)),
        Figure("operator: memory with one pool", one, "MB", "", "resident (VmRSS), after these rounds", Goal(100)),
        Figure("operator: memory a pool more", (many - one) / POOLS_MORE, "MB", "", f"{POOLS_MORE} pools on as many tables"),
    ]


def _seconds_to_scale(bench: Bench, rounds: int) -> list[float]:
    """Each round adds a task, and so a replica; they begin at any moment of a poll."""
    table = bench.create_pool("scaled")
    bench.wait_for_replicas("scaled", 0)
    queue = TaskQueue(table)
    seconds = []
    for number in range(rounds):
        time.sleep(POLL * number / rounds)
        queue.enqueue(PAYLOAD)
        begun = time.monotonic()
        bench.wait_for_replicas("scaled", number + 1)
        seconds.append(time.monotonic() - begun)
    return seconds


def _memory_with_more(bench: Bench, pid: int) -> float:
    for number in range(POOLS_MORE):
        bench.create_pool(f"more-{number}")
    for number in range(POOLS_MORE):
        bench.wait_for_replicas(f"more-{number}", 0)
    time.sleep(2 * POLL)
    return resident_mb(pid)


@contextmanager
def _operator(kubeconfig: Path) -> Iterator[int]:
    """``python -m controller``; its pid."""
    allowed = [{"namespaces": ["*"], "tables": ["*"], "regions": ["*"], "endpoints": ["*"]}]
    settings: Mapping[str, Any] = {
        "KUBECONFIG": str(kubeconfig),
        "PYTHONPATH": str(ROOT),
        "THUNDERAGENT_OPERATOR_ALLOWED": json.dumps(allowed),
        "THUNDERAGENT_OPERATOR_PORT": "0",
        "THUNDERAGENT_OPERATOR_LIST_SECONDS": "5",
    }
    command = [sys.executable, "-m", "controller"]
    with subprocess.Popen(command, env={**os.environ, **settings}, stderr=subprocess.DEVNULL) as process:
        try:
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
