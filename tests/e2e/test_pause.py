"""A person's hold on the scaling, what wakes a pool and what lets it sleep, and a Deployment that the pool only scales."""

from __future__ import annotations

from tests.e2e.faults import Faults
from tests.e2e.ground import AWS, variables, working
from tests.e2e.stage import Stage

POLLS = 4
"""Readings of the backlog after which what has not happened will not."""


def test_a_pool_that_is_paused_neither_grows_nor_shrinks_until_it_goes_on(stage: Stage) -> None:
    stage.declare(scaling={"maxReplicas": 3})
    stage.until_replicas(0, 30)
    stage.annotate("work", paused="true")
    stage.until("the pause", 30, lambda: stage.condition("Paused")[:2] == ("True", "Paused"))
    tasks = stage.enqueue(working(0.1, 3))
    stage.until("the backlog in the status", 30, lambda: stage.status().get("backlog") == 3)
    stage.until_readings(POLLS)
    assert stage.replicas() == 0
    stage.annotate("work", paused=None)
    stage.until_done(tasks, 60)
    stage.annotate("work", paused="all")
    stage.until("the pause", 30, lambda: stage.condition("Paused")[0] == "True")
    held = stage.replicas()
    stage.until_readings(12)
    assert stage.replicas() == held
    stage.annotate("work", paused=None)
    stage.until_replicas(0, 60)


def test_a_pool_paused_in_grows_and_does_not_shrink_until_it_goes_on(stage: Stage) -> None:
    stage.declare(scaling={"maxReplicas": 3})
    stage.annotate("work", paused_in="true")
    tasks = stage.enqueue(working(0.1, 3))
    stage.until_replicas(3, 60)
    stage.until_done(tasks, 60)
    stage.until("no work", 60, lambda: stage.condition("Active")[0] == "False")
    stage.until_readings(12)
    assert stage.replicas() == 3
    stage.annotate("work", paused_in=None)
    stage.until_replicas(0, 60)


def test_a_pool_paused_out_shrinks_and_does_not_grow_until_it_goes_on(stage: Stage) -> None:
    stage.declare(scaling={"maxReplicas": 3})
    tasks = stage.enqueue(working(0.1, 2))
    stage.until_replicas(2, 60)
    stage.annotate("work", paused_out="true")
    stage.until_done(tasks, 60)
    stage.until_replicas(0, 60)
    tasks = stage.enqueue(working(0.1, 3))
    stage.until("the backlog in the status", 30, lambda: stage.status().get("backlog") == 3)
    stage.until_readings(POLLS)
    assert stage.replicas() == 0
    stage.annotate("work", paused_out=None)
    stage.until_done(tasks, 60)


def test_a_pool_paused_at_2_has_2_replicas_until_it_goes_on(stage: Stage) -> None:
    stage.declare(scaling={"maxReplicas": 3})
    stage.annotate("work", paused_at_replicas="2")
    stage.until_replicas(2, 30)
    tasks = stage.enqueue(working(0.5, 6))
    stage.until_done(tasks, 90)
    assert stage.replicas() == 2
    assert stage.condition("Paused")[:2] == ("True", "PausedAtReplicas")
    stage.annotate("work", paused_at_replicas=None)
    stage.until_replicas(0, 60)
    assert stage.condition("Paused")[:2] == ("False", "NotPaused")


def test_a_pool_falls_back_from_0_replicas_while_its_table_hangs_and_returns_to_0(stage: Stage, faults: Faults) -> None:
    """keda#7239: a fallback from zero never ended."""
    stage.declare(scaling={"maxReplicas": 3, "fallback": {"failedReads": 2, "replicas": 2}})
    stage.until("a good reading", 30, lambda: stage.condition("Ready")[0] == "True")
    assert stage.replicas() == 0
    with faults.frozen_dynamodb(stage.ground):
        stage.until_replicas(2, 120)
        stage.until("the fallback in the status", 60, lambda: stage.condition("Fallback")[0] == "True")
        assert stage.condition("Ready")[0] == "False"
    stage.until("the end of the fallback", 60, lambda: stage.condition("Fallback")[0] == "False")
    stage.until_replicas(0, 90)


def test_a_backlog_up_to_the_activation_threshold_does_not_wake_a_pool(stage: Stage) -> None:
    stage.declare(scaling={"maxReplicas": 3, "activationThreshold": 5})
    stage.until_replicas(0, 30)
    tasks = stage.enqueue(working(0.1, 5))
    stage.until("the reason in the status", 30, lambda: stage.condition("Active")[:2] == ("False", "BelowActivation"))
    stage.until_readings(POLLS)
    assert stage.replicas() == 0
    tasks += stage.enqueue(working(0.1, 1))
    stage.until_done(tasks, 60)


def test_the_last_replica_stays_for_the_cooldown_after_the_last_task(stage: Stage) -> None:
    cooldown = 12
    stage.declare(scaling={"maxReplicas": 3, "cooldownSeconds": cooldown})
    stage.until_replicas(0, 30)
    with stage.watched() as replicas:
        stage.until_done(stage.enqueue(working(0.1, 3)), 60)
        stage.until_replicas(0, 60)
    last_task = max(run.ended or 0 for run in stage.history.runs)
    (gone,) = [at for at, asked in replicas.asked[1:] if asked == 0]
    assert replicas.values[-2:] == [1, 0]
    assert cooldown - 1 <= gone - last_task <= cooldown + 5


def test_a_deployment_of_somebody_else_is_scaled_and_left_as_it_is_otherwise(stage: Stage) -> None:
    agent = {**AWS, "THUNDERAGENT_TABLE": stage.table.name, "THUNDERAGENT_ENDPOINT": stage.ground.endpoint}
    template = stage.template()
    container = template["spec"]["containers"][0]
    container |= {"args": ["agent", "run", "work:handle"], "env": [*container["env"], *variables(agent)]}
    stage.kubectl.apply(stage.deployment("theirs", 0, template["spec"]))
    stage.declare(scaling={"maxReplicas": 3}, agent={"handler": None}, template=None, targetRef={"name": "theirs"})
    tasks = stage.enqueue(working(2, 6))
    stage.until_replicas(3, 60, "theirs")
    stage.until_done(tasks, 90)
    stage.until_replicas(0, 60, "theirs")
    assert stage.history.unfinished == []
    theirs = stage.kubectl.get("deployment", "theirs")
    assert "ownerReferences" not in theirs["metadata"]
    assert theirs["spec"]["template"]["spec"]["containers"][0]["args"] == container["args"]
