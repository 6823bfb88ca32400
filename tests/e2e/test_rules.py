"""What a pool must not be, and what the API server says to whoever tries; and what the operator's settings do not allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.ground import AWS
from tests.e2e.stage import POOL, Stage

Change = Callable[[dict[str, Any]], None]


def scaling(**fields: Any) -> Change:
    return lambda spec: spec["scaling"].update(fields)


def agent(**fields: Any) -> Change:
    return lambda spec: spec["agent"].update(fields)


def queue(**fields: Any) -> Change:
    return lambda spec: spec["queue"].update(fields)


def spec(**fields: Any) -> Change:
    return lambda spec: spec.update(fields)


def without(field: str) -> Change:
    return lambda spec: spec.__delitem__(field)


def policy(**fields: Any) -> Change:
    return scaling(scaleDown={"policies": [fields]})


REFUSED = [
    pytest.param(scaling(minReplicas=5, maxReplicas=2), "minReplicas must not be above maxReplicas", id="min above max"),
    pytest.param(spec(targetRef={"name": "other"}), "it has both template and targetRef", id="template and targetRef"),
    pytest.param(without("template"), "it needs a template for the pods, or a targetRef", id="neither template nor targetRef"),
    pytest.param(
        agent(leaseSeconds=60, renewSeconds=31),
        "renewSeconds must be at most half of leaseSeconds",
        id="renew above half a lease",
    ),
    pytest.param(
        agent(leaseSeconds=60, renewSeconds=60),
        "renewSeconds must be at most half of leaseSeconds",
        id="renew as long as the lease",
    ),
    pytest.param(queue(table=""), "spec.queue.table in body should be at least 3 chars long", id="no name of a table"),
    pytest.param(lambda spec: spec["queue"].__delitem__("table"), 'missing required field "table"', id="no table"),
    pytest.param(without("queue"), 'missing required field "queue"', id="no queue"),
    pytest.param(scaling(tasksPerReplica=0), "should be greater than or equal to 1", id="no task a replica"),
    pytest.param(policy(type="Pods"), 'missing required field "value"', id="a policy without a value"),
    pytest.param(policy(type="Pods", value=1), 'missing required field "periodSeconds"', id="a policy without a period"),
    pytest.param(
        policy(type="Pods", value=0, periodSeconds=60), "should be greater than or equal to 1", id="a policy of nothing"
    ),
    pytest.param(
        policy(type="Most", value=1, periodSeconds=60), 'supported values: "Percent", "Pods"', id="a policy of an unknown type"
    ),
    pytest.param(scaling(minReplicas=-1), "should be greater than or equal to 0", id="negative replicas"),
    pytest.param(scaling(cooldownSeconds=-1), "should be greater than or equal to 0", id="a negative cooldown"),
    pytest.param(scaling(activationThreshold=-1), "should be greater than or equal to 0", id="a negative threshold"),
    pytest.param(agent(drainSeconds=-1), "should be greater than or equal to 0", id="a negative drain"),
    pytest.param(scaling(pollSeconds=0), "should be greater than or equal to 1", id="no time between polls"),
    pytest.param(
        agent(drainSeconds=10, taskTimeoutSeconds=11),
        "drainSeconds must be at least taskTimeoutSeconds",
        id="less drain than a task may take",
    ),
    pytest.param(
        agent(drainSeconds=10, taskTypes=[{"name": "long", "timeoutSeconds": 11}]),
        "drainSeconds must be at least timeoutSeconds of every task type",
        id="less drain than a task of a type may take",
    ),
    pytest.param(scaling(fallback={"replicas": 11}), "replicas must not be above maxReplicas", id="a fallback above max"),
    pytest.param(queue(taskTypes=["a", "a"]), "taskTypes", id="a task type twice"),
    pytest.param(agent(env=[{"name": "A"}, {"name": "A"}]), "env", id="a variable twice"),
    pytest.param(
        agent(waits={"busySeconds": 5, "quietSeconds": 2}), "it must not shrink from busySeconds", id="waits that shrink"
    ),
    pytest.param(
        agent(retry={"baseSeconds": 9, "capSeconds": 3}), "baseSeconds must not be above capSeconds", id="a cap below the base"
    ),
]


@pytest.fixture(scope="module")
def declared(shared_stage: Stage) -> Stage:
    """A namespace with the pool `work`."""
    shared_stage.declare()
    return shared_stage


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_a_pool_is_refused_that_has(change: Change, words: str, declared: Stage) -> None:
    manifest = declared.manifest("another")
    change(manifest["spec"])
    assert words in declared.kubectl.refusal_of(manifest)


def test_a_pool_is_refused_whose_name_has_a_dot(declared: Stage) -> None:
    """It is part of lockOwner, where a dot stands between namespace and name."""
    assert "name must be 1 to 63 lower-case letters" in declared.kubectl.refusal_of(declared.manifest("a.b"))


def test_another_table_of_a_pool_that_is_there_is_refused(declared: Stage) -> None:
    manifest = declared.manifest()
    manifest["spec"]["queue"]["table"] = "e2e-another"
    assert "table cannot be changed" in declared.kubectl.refusal_of(manifest)


TEMPLATES = [
    pytest.param({"name": "other"}, 'none is named "agent"', id="no container of the agent's name"),
    pytest.param({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "duplicate", id="a variable twice"),
    pytest.param({"image": ""}, "image", id="no image"),
    pytest.param({"ports": [{"containerPort": 99999}]}, "containerPort", id="a port that cannot be"),
]


@pytest.mark.parametrize(("container", "words"), TEMPLATES)
def test_the_condition_tells_of_a_template_with(container: dict[str, Any], words: str, declared: Stage) -> None:
    """What lies inside a template is judged by the API server, and its words are told."""
    template = declared.template()
    template["spec"]["containers"][0].update(container)
    name = f"bad-{abs(hash(words)) % 1000}"
    declared.declare(name, template=template)
    try:
        declared.until("the refusal", 30, lambda: declared.condition("Ready", name)[:2] == ("False", "TemplateRefused"))
        assert words in declared.condition("Ready", name)[2]
    finally:
        declared.kubectl("delete", POOL, name)


NOT_ALLOWED = [
    pytest.param({"table": "TaskTable"}, "table TaskTable", id="a table of somebody else"),
    pytest.param({"endpoint": "record"}, "endpoint http://record.", id="an endpoint that is not allowed"),
]


@pytest.mark.parametrize(("change", "words"), NOT_ALLOWED)
def test_the_operator_makes_no_call_for_a_pool_that_names(change: dict[str, str], words: str, declared: Stage) -> None:
    trap = declared.ground.record(f"trap-{declared.kubectl.namespace}")
    where = {"table": declared.table.name, "region": AWS["AWS_REGION"], "endpoint": trap, **change}
    where = {key: trap if value == "record" else value for key, value in where.items()}
    declared.declare("barred", queue=where)
    try:
        declared.until("the condition", 30, lambda: declared.condition("Ready", "barred")[1] == "NotAllowed")
        declared.until_readings(3)
        assert words in declared.condition("Ready", "barred")[2]
        assert declared.replicas("barred") == -1
        assert declared.ground.lines(f"trap-{declared.kubectl.namespace}") == []
    finally:
        declared.kubectl("delete", POOL, "barred")
