"""Cycles of the operator against the real API server: what it makes of a pool, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from controller.cycle import PoolCycle, Report
from controller.deployments import Deployments
from controller.kube import POOLS
from controller.names import FIELD_MANAGER, PLURAL
from tests.apiserver.sides import Real
from tests.controller.world import World, spec

MERGE = "application/merge-patch+json"


class Operator:
    """One pool's cycles: the cluster is real, the table and the clock are the test's."""

    def __init__(self, real: Real) -> None:
        self.world = World()
        self._real = real
        around = replace(self.world.around, cluster=real.cluster, deployments=Deployments(real.cluster, "1.0"))
        self._around = around
        self._cycles: dict[str, PoolCycle] = {}

    def cycle(self) -> Report:
        pool = self.pool()
        uid = pool["metadata"]["uid"]
        cycle = self._cycles.setdefault(uid, PoolCycle(uid, self._around))
        report = asyncio.run(cycle.run(pool))
        self.world.clock.advance(report.pause)
        return report

    def pool(self) -> Any:
        found = asyncio.run(self._real.cluster.pool(self._real.namespace, "reports"))
        assert found is not None
        return found

    def deployment(self) -> Any:
        found = asyncio.run(self._real.cluster.deployment(self._real.namespace, "reports"))
        assert found is not None
        return found

    def ready(self) -> tuple[str, str, str]:
        [ready] = [each for each in self.pool()["status"]["conditions"] if each["type"] == "Ready"]
        return ready["status"], ready["reason"], ready["message"]

    def edit_pool(self, change: Mapping[str, Any]) -> None:
        self._patch(f"{POOLS}/namespaces/{self._real.namespace}/{PLURAL}/reports", change)

    def edit_deployment(self, change: Mapping[str, Any]) -> None:
        self._patch(f"/apis/apps/v1/namespaces/{self._real.namespace}/deployments/reports", change)

    def delete_pool(self) -> None:
        path = f"{POOLS}/namespaces/{self._real.namespace}/{PLURAL}/reports"
        self._real.api.call("DELETE", path, timeout=10.0)

    def _patch(self, path: str, change: Mapping[str, Any]) -> None:
        self._real.api.call("PATCH", path, query=[("fieldManager", "somebody")], body=change, kind=MERGE, timeout=10.0)


@pytest.fixture
def operator(real: Real) -> Operator:
    real.create_pool(spec(), "reports")
    return Operator(real)


def containers(operator: Operator) -> Any:
    return operator.deployment()["spec"]["template"]["spec"]["containers"]


def test_a_pool_gets_a_deployment_of_no_replicas_that_it_owns_and_that_runs_its_handler(operator: Operator) -> None:
    operator.cycle()
    deployment = operator.deployment()
    [owner] = deployment["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("ThunderAgentPool", operator.pool()["metadata"]["uid"], True)
    assert deployment["spec"]["replicas"] == 0
    [agent] = containers(operator)
    variables = {each["name"]: each.get("value") for each in agent["env"]}
    assert variables["THUNDERAGENT_TABLE"] == "TaskTable"
    assert agent["securityContext"]["allowPrivilegeEscalation"] is False
    assert operator.ready()[:2] == ("True", "Scaling")


def test_a_backlog_is_scaled_for_in_one_step_by_the_scale_subresource(operator: Operator) -> None:
    operator.cycle()
    operator.world.enqueue(7)
    assert operator.cycle().scaled == (0, 7)
    deployment = operator.deployment()
    assert deployment["spec"]["replicas"] == 7
    [scaler] = [each for each in deployment["metadata"]["managedFields"] if "f:replicas" in each["fieldsV1"].get("f:spec", {})]
    assert (scaler["manager"], scaler["subresource"]) == (FIELD_MANAGER, "scale")


def test_cycles_that_find_nothing_new_write_nothing(operator: Operator) -> None:
    for _ in range(3):
        operator.cycle()
    before = (operator.deployment()["metadata"]["resourceVersion"], operator.pool()["metadata"]["resourceVersion"])
    for _ in range(5):
        operator.cycle()
    after = (operator.deployment()["metadata"]["resourceVersion"], operator.pool()["metadata"]["resourceVersion"])
    assert after == before


def test_a_new_image_rolls_out_and_what_others_have_written_stays(operator: Operator) -> None:
    operator.cycle()
    operator.world.enqueue(3)
    operator.cycle()
    operator.edit_deployment({"metadata": {"annotations": {"team": "reports"}}, "spec": {"minReadySeconds": 7}})
    image = {"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "myapp:2"}]}}}}
    operator.edit_pool(image)
    operator.cycle()
    deployment = operator.deployment()
    assert [each["image"] for each in containers(operator)] == ["myapp:2"]
    assert deployment["metadata"]["annotations"]["team"] == "reports"
    assert (deployment["spec"]["minReadySeconds"], deployment["spec"]["replicas"]) == (7, 3)


@pytest.mark.parametrize(
    ("container", "words"),
    [
        pytest.param({"name": "main", "image": "myapp:1"}, "agent", id="no container of the agent's name"),
        pytest.param(
            {"name": "agent", "image": "myapp:1", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
            "duplicate entries",
            id="a variable twice",
        ),
        pytest.param({"name": "agent", "image": ""}, "image: Required value", id="no image"),
        pytest.param({"name": "agent", "image": "myapp:1", "imagePullPolicy": "Often"}, "Often", id="an unknown pull policy"),
    ],
)
def test_a_template_that_makes_no_pod_is_told_in_the_words_of_the_api_server(
    container: dict[str, Any], words: str, operator: Operator
) -> None:
    operator.cycle()
    operator.edit_pool({"spec": {"template": {"spec": {"containers": [container]}}}})
    operator.cycle()
    status, reason, message = operator.ready()
    assert (status, reason) == ("False", "TemplateRefused")
    assert words in message
    assert [each["image"] for each in containers(operator)] == ["myapp:1"], "the pods that are there go on as they were"


def test_somebody_else_who_scales_is_told_of_and_not_fought(operator: Operator) -> None:
    operator.world.enqueue(4)
    for _ in range(2):
        operator.cycle()
    for _ in range(4):
        operator.edit_deployment({"spec": {"replicas": 1}})
        operator.cycle()
    assert operator.ready()[:2] == ("False", "Conflict")
    assert operator.deployment()["spec"]["replicas"] == 1


def test_a_pool_made_anew_with_the_name_of_another_gets_a_status_of_its_own(operator: Operator, real: Real) -> None:
    operator.cycle()
    old = operator.pool()
    operator.delete_pool()
    new = real.create_pool(spec(maxReplicas=3), "reports")
    asyncio.run(PoolCycle(old["metadata"]["uid"], operator._around).run(old))
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert "status" not in operator.pool()
