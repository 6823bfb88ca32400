"""What the operator relies on when it speaks to Kubernetes, held against the real API server and against the small one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from controller.errors import ObjectChanged, ObjectMissing
from controller.names import BIRTH_MANAGER, FIELD_MANAGER
from controller.status import Notice
from tests.apiserver.sides import Real, Side
from tests.controller.world import spec

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def deployment(side: Side, *, replicas: int | None = None, image: str = "app:1", **metadata: Any) -> dict[str, Any]:
    """A Deployment to be applied; it mentions replicas only where it is told to."""
    labels = {"app": "reports"}
    body: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent", "image": image}]}},
    }
    if replicas is not None:
        body["replicas"] = replicas
    names = {"name": "reports", "namespace": side.namespace, **metadata}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": names, "spec": body}


def current(side: Side) -> Any:
    found = run(side.cluster.deployment(side.namespace, "reports"))
    assert found is not None
    return found


def test_what_is_not_there_is_none(side: Side) -> None:
    assert run(side.cluster.pool(side.namespace, "nothing")) is None
    assert run(side.cluster.deployment(side.namespace, "nothing")) is None
    assert run(side.leases.lease(side.namespace, "nothing")) is None
    assert run(side.cluster.pods(side.namespace, "app=nothing")) == []


def test_a_pool_that_was_created_is_listed_and_found(side: Side) -> None:
    created = side.create_pool(spec(), "reports")
    listed = run(side.cluster.pools())
    found = run(side.cluster.pool(side.namespace, "reports"))
    assert [pool["metadata"]["uid"] for pool in listed] == [created["metadata"]["uid"]]
    assert found is not None
    assert found["spec"]["queue"]["table"] == "TaskTable"


def test_an_apply_without_replicas_makes_one_and_leaves_later_numbers_alone(side: Side) -> None:
    assert run(side.cluster.apply_deployment(deployment(side), manager=FIELD_MANAGER))["spec"]["replicas"] == 1
    side.scale_as_somebody("reports", 5)
    applied = run(side.cluster.apply_deployment(deployment(side, image="app:2"), manager=FIELD_MANAGER, force=True))
    assert applied["spec"]["replicas"] == 5
    assert applied["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"


def test_an_apply_of_the_same_changes_no_generation(side: Side) -> None:
    first = run(side.cluster.apply_deployment(deployment(side), manager=FIELD_MANAGER))
    again = run(side.cluster.apply_deployment(deployment(side), manager=FIELD_MANAGER))
    assert again["metadata"]["generation"] == first["metadata"]["generation"]


def test_a_field_that_its_manager_no_longer_names_goes_unless_somebody_else_names_it(side: Side) -> None:
    born = deployment(side, replicas=0)
    run(side.cluster.apply_deployment(born, manager=BIRTH_MANAGER))
    run(side.cluster.apply_deployment(deployment(side), manager=FIELD_MANAGER, force=True))
    rest = {**born, "spec": {"replicas": 0}}
    applied = run(side.cluster.apply_deployment(rest, manager=BIRTH_MANAGER))
    assert applied["spec"]["replicas"] == 0
    assert applied["spec"]["template"]["spec"]["containers"][0]["image"] == "app:1"


def test_an_apply_against_a_field_of_somebody_else_is_a_change_unless_it_is_forced(side: Side) -> None:
    run(side.cluster.apply_deployment(deployment(side), manager="somebody-else"))
    with pytest.raises(ObjectChanged):
        run(side.cluster.apply_deployment(deployment(side, image="app:2"), manager=FIELD_MANAGER))
    applied = run(side.cluster.apply_deployment(deployment(side, image="app:2"), manager=FIELD_MANAGER, force=True))
    assert applied["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"


def test_an_apply_with_the_uid_of_another_deployment_is_refused(side: Side) -> None:
    run(side.cluster.apply_deployment(deployment(side), manager=FIELD_MANAGER))
    other = deployment(side, uid="00000000-0000-4000-8000-00000000ffff")
    with pytest.raises(ObjectChanged):
        run(side.cluster.apply_deployment(other, manager=FIELD_MANAGER, force=True))


def test_scaling_needs_the_version_that_was_looked_at(side: Side) -> None:
    run(side.cluster.apply_deployment(deployment(side, replicas=0), manager=BIRTH_MANAGER))
    seen = current(side)["metadata"]["resourceVersion"]
    run(side.cluster.scale_deployment(side.namespace, "reports", 3, seen))
    assert current(side)["spec"]["replicas"] == 3
    with pytest.raises(ObjectChanged):
        run(side.cluster.scale_deployment(side.namespace, "reports", 4, seen))
    assert current(side)["spec"]["replicas"] == 3


def test_scaling_what_is_gone_says_so(side: Side) -> None:
    with pytest.raises(ObjectMissing):
        run(side.cluster.scale_deployment(side.namespace, "nothing", 3, "1"))


def test_who_scaled_last_is_known_by_the_field_of_its_manager(side: Side) -> None:
    run(side.cluster.apply_deployment(deployment(side, replicas=0), manager=BIRTH_MANAGER))
    run(side.cluster.scale_deployment(side.namespace, "reports", 3, current(side)["metadata"]["resourceVersion"]))
    side.scale_as_somebody("reports", 5)
    owners = {
        each["manager"]
        for each in current(side)["metadata"]["managedFields"]
        if "f:replicas" in each["fieldsV1"].get("f:spec", {})
    }
    assert owners == {"somebody"}


def test_annotations_of_a_pod_are_set_and_removed_by_its_uid_alone(side: Side) -> None:
    pod = side.create_pod("agent-1")
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    run(side.cluster.annotate_pod(side.namespace, name, uid, {"a": "1", "b": "2"}))
    run(side.cluster.annotate_pod(side.namespace, name, uid, {"a": None}))
    [found] = [each for each in run(side.cluster.pods(side.namespace, "")) if each["metadata"]["name"] == name]
    assert found["metadata"]["annotations"] == {"b": "2"}
    with pytest.raises(ObjectChanged):
        run(side.cluster.annotate_pod(side.namespace, name, "00000000-0000-4000-8000-00000000ffff", {"a": "1"}))
    with pytest.raises(ObjectMissing):
        run(side.cluster.annotate_pod(side.namespace, "nothing", uid, {"a": "1"}))


def test_a_status_is_replaced_and_not_written_to_another_pool_of_the_name(side: Side) -> None:
    pool = side.create_pool(spec(), "reports")
    uid = pool["metadata"]["uid"]
    run(side.cluster.write_status(side.namespace, "reports", uid, {"replicas": 3, "backlog": 7}))
    run(side.cluster.write_status(side.namespace, "reports", uid, {"backlog": 8}))
    found = run(side.cluster.pool(side.namespace, "reports"))
    assert found is not None
    assert found["status"] == {"backlog": 8}
    with pytest.raises(ObjectChanged):
        run(side.cluster.write_status(side.namespace, "reports", "00000000-0000-4000-8000-00000000ffff", {"backlog": 9}))


def test_of_two_that_create_or_replace_a_lease_one_is_told_that_it_changed(side: Side) -> None:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "operator", "namespace": side.namespace},
        "spec": {"holderIdentity": "one"},
    }
    created = run(side.leases.create_lease(body))
    with pytest.raises(ObjectChanged):
        run(side.leases.create_lease(body))
    replacement = {**body, "metadata": created["metadata"], "spec": {"holderIdentity": "two"}}
    run(side.leases.replace_lease(replacement))
    with pytest.raises(ObjectChanged):
        run(side.leases.replace_lease(replacement))
    found = run(side.leases.lease(side.namespace, "operator"))
    assert found is not None
    assert found["spec"]["holderIdentity"] == "two"


def test_an_event_that_happens_again_is_counted_up_until_its_object_is_gone(real: Real) -> None:
    pool = real.create_pool(spec(), "reports")
    notice = Notice("Warning", "TableMissing", "No table.")
    path = f"/api/v1/namespaces/{real.namespace}/events"

    def told() -> list[tuple[str, int]]:
        run(real.cluster.emit(pool, notice))
        return [(each["metadata"]["name"], each["count"]) for each in real.api.all(path)]

    ((name, _),) = told()
    assert told() == [(name, 2)]
    (event,) = real.api.all(path)
    assert event["lastTimestamp"] >= event["firstTimestamp"]
    assert event["involvedObject"]["uid"] == pool["metadata"]["uid"]
    real.api.call("DELETE", f"{path}/{name}", timeout=10.0)
    ((another, count),) = told()
    assert (another != name, count) == (True, 1)
