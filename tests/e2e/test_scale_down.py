"""No scale-down interrupts a run, whatever runs where."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from tests.e2e.stage import Stage

SEED = 20
SCALE_DOWNS = 100
STEP = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}]}


def burst(rng: random.Random) -> list[dict[str, Any]]:
    """Short tasks, and among them some that outlast most of the scale-downs that follow."""
    seconds = [rng.uniform(0.1, 1.5) for _ in range(rng.randint(6, 14))] + [
        rng.uniform(6, 14) for _ in range(rng.randint(1, 4))
    ]
    rng.shuffle(seconds)
    return [{"payload": {"seconds": round(each, 2)}} for each in seconds]


@pytest.mark.timeout(900)
def test_100_random_scale_downs_under_long_and_short_tasks_interrupt_no_run(stage: Stage) -> None:
    rng = random.Random(SEED)
    tasks: list[str] = []
    stage.declare(scaling={"maxReplicas": 10, "cooldownSeconds": 0, "scaleDown": STEP})
    stage.until_replicas(0, 30)
    began = time.monotonic()
    with stage.watched() as replicas:
        while replicas.scale_downs < SCALE_DOWNS and time.monotonic() - began < 600:
            tasks += stage.enqueue(burst(rng))
            time.sleep(rng.uniform(2, 16))
        stage.until_done(tasks, 120)
        stage.until_replicas(0, 60)
    history = stage.history
    print(
        f"\n{replicas.scale_downs} scale-downs in {time.monotonic() - began:.0f} s, {len(history.runs)} runs in "
        f"{len(history.pods)} pods, {len(history.unfinished)} interrupted"
    )
    assert replicas.scale_downs >= SCALE_DOWNS
    assert history.unfinished == []
    assert len(history.runs) == len(tasks)
    assert stage.table.counts() == {"SUCCESS": len(tasks)}
