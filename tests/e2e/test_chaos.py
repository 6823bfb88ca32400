"""`make chaos`: everything fails at random for a while, and afterwards nothing is lost, repeated, stuck or left over."""

from __future__ import annotations

import os

import pytest

from tests.e2e.chaos import Chaos, unexplained
from tests.e2e.faults import Faults
from tests.e2e.stage import Stage

SECONDS = float(os.environ.get("CHAOS_SECONDS", "240"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))

MOST = 4
FINISH = 300.0
"""Seconds in which all tasks must have ended once nothing goes wrong any more: a lease, a look, and the backlog's own time."""

REST = 120.0


@pytest.mark.chaos
@pytest.mark.timeout(SECONDS + 1200)
def test_whatever_fails_no_task_is_lost_or_run_beside_itself_and_the_pool_comes_to_rest(stage: Stage, faults: Faults) -> None:
    stage.declare(scaling={"maxReplicas": MOST, "tasksPerReplica": 2}, agent={"leaseSeconds": 30, "renewSeconds": 5})
    stage.until_replicas(0, 60)
    chaos = Chaos(stage, faults, SEED)
    with stage.watched() as replicas:
        chaos.run(SECONDS)
        chaos.settle()
        print(f"\nseed {SEED}, {len(chaos.tasks)} tasks\n{chaos.log}")
        took = stage.until_done(chaos.tasks, FINISH)
        rest = stage.until_replicas(0, REST)
    # A node that lost its API server counts as gone for a while, and the record with it.
    stage.until("the record", REST, lambda: chaos.tasks and stage.history.runs)
    history = stage.history
    print(f"{len(history.runs)} runs; all ended {took:.0f} s after the last fault, and 0 replicas {rest:.0f} s after that")
    assert stage.table.counts() == {"SUCCESS": len(chaos.tasks)}
    assert unexplained(history, chaos.log) == []
    assert max(replicas.values) <= MOST
