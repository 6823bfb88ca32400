"""A pool at work: from nothing to the most it may have, and back."""

from __future__ import annotations

import time

from tests.e2e.ground import Table, working
from tests.e2e.release import NAME
from tests.e2e.stage import Stage


def test_300_tasks_bring_a_pool_from_0_to_its_most_in_one_step_and_back(stage: Stage) -> None:
    stage.declare(scaling={"maxReplicas": 8, "tasksPerReplica": 10})
    stage.until_replicas(0, 30)
    with stage.watched() as replicas:
        stage.annotate("work", paused="true")  # or a reading might see the first of them alone
        stage.until_seen()
        tasks = stage.enqueue(working(0.2, 300))
        stage.annotate("work", paused=None)
        stage.until_done(tasks, 180)
        stage.until_replicas(0, 60)
    assert stage.table.counts() == {"SUCCESS": 300}
    assert replicas.values[:2] == [0, 8]
    assert replicas.values[-1] == 0
    assert not stage.history.unfinished
    assert not stage.history.repeated


def test_a_pool_of_one_queue_works_a_table_of_the_dispatch_layout_and_leaves_another_queue_alone(stage: Stage) -> None:
    table = Table(stage.ground, f"{stage.table.name}-dispatch")
    table.create("--layout=dispatch", "--shards=3", "--queue=mail")
    others = table.enqueue(working(0.2, 50))
    stage.declare(queue={**stage.queue(), "table": table.name, "name": "mail"}, scaling={"maxReplicas": 3})
    stage.until_replicas(0, 30)
    stage.until_readings(5)
    assert stage.replicas() == 0, "the default queue is none of its business"
    tasks = table.enqueue({**task, "queue": "mail"} for task in working(0.2, 60))
    stage.until_done(tasks, 120)
    stage.until_replicas(0, 60)

    assert table.counts() == {"SUCCESS": len(tasks), "PENDING": len(others)}
    assert not stage.history.repeated


def test_helm_test_finds_the_release_in_order(stage: Stage) -> None:
    assert "Phase:          Succeeded" in stage.operator.helm("test", NAME)


def test_200_tasks_of_2_seconds_end_soon_for_few_replica_seconds(stage: Stage) -> None:
    """The figure of a burst: one slot a pod, at most 10 pods. KEDA with HPA takes 71 to 79 s and 925 replica-seconds."""
    stage.declare(scaling={"maxReplicas": 10, "tasksPerReplica": 10, "pollSeconds": 5})
    stage.until_replicas(0, 30)
    with stage.watched() as replicas:
        tasks = stage.enqueue(working(2, 200))
        enqueued = time.time()
        stage.until_done(tasks, 180)
        stage.until_replicas(0, 120)
        stage.until_pods(0, 30)
    last = max(run.ended or 0 for run in stage.history.runs)
    first = min(run.began for run in stage.history.runs)
    print(
        f"\n200 tasks of 2 s: the first run after {first - enqueued:.1f} s, the last ended after {last - enqueued:.1f} s, "
        f"{replicas.seconds:.0f} replica-seconds, asked for {replicas.values}"
    )
    assert stage.table.counts() == {"SUCCESS": 200}
    assert (replicas.values[0], max(replicas.values)) == (0, 10)
