"""What is deleted goes, with the operator down, too; what runs in it is finished."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.ground import working
from tests.e2e.stage import POOL, Stage

COLLECTION = 10
"""Seconds from the garbage collector's turn to the end of idle pods."""

TASK = 25

DRAIN = 40
"""Seconds. The namespace's controller looks again after half of the pods' grace, which is 30 s longer."""


@pytest.fixture
def orphaned(stage: Stage) -> Iterator[Stage]:
    """Two pools without an operator: `idle` with 3 pods, `work` with 2, one of which runs a task."""
    stage.declare(
        "idle", scaling={"minReplicas": 3, "maxReplicas": 3}, agent={"drainSeconds": DRAIN}, queue=stage.queue("idle")
    )
    stage.declare(scaling={"minReplicas": 2, "maxReplicas": 2}, agent={"drainSeconds": DRAIN})
    stage.until_pods(3, 60, "idle")
    stage.until_pods(2, 60)
    stage.enqueue(working(TASK, 1))
    stage.until("a run", 30, lambda: stage.history.runs)
    stage.operator.stop()
    yield stage
    stage.operator.scale(1)


def test_a_deleted_pools_idle_pods_go_at_once_and_busy_ones_finish_without_an_operator(orphaned: Stage) -> None:
    stage = orphaned
    stage.kubectl("delete", POOL, "idle", "work", "--timeout=10s")
    stage.until("the garbage collector's turn", 60, lambda: stage.kubectl("get", "deployments", "--output=name") == "")
    stage.until_pods(0, COLLECTION, "idle")
    busy = stage.history.pods
    assert {pod["metadata"]["name"] for pod in stage.pods()} == busy
    stage.until_pods(0, TASK + COLLECTION)
    assert stage.history.unfinished == []


def test_a_deleted_namespace_goes_once_its_busy_pods_have_finished_without_an_operator(orphaned: Stage) -> None:
    stage = orphaned
    stage.kubectl("delete", "namespace", stage.kubectl.namespace, "--wait=false")
    stage.until_pods(0, 2 * COLLECTION, "idle")
    stage.until_pods(0, TASK + COLLECTION)
    stage.kubectl("wait", "--for=delete", f"namespace/{stage.kubectl.namespace}", f"--timeout={DRAIN + 30}s")
    (run,) = stage.history.runs
    assert run.ended is not None
