"""The operator asks the API server for what its roles grant, for all of it, and for nothing else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import audit
from tests.cluster.record import Record
from tests.e2e.ground import working
from tests.e2e.release import NAME, NAMESPACE
from tests.e2e.stage import Stage

Right = tuple[str, str, str]
"""API group, resource and verb."""

USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"


def test_the_operator_uses_all_of_its_rights_and_asks_for_no_others(stage: Stage, cluster: Record) -> None:
    if cluster.audit_log is None:
        pytest.skip("the audit log of this cluster is out of reach")
    began = time.time()
    stage.operator.stop()
    stage.operator.kubectl("delete", "lease", NAME)
    stage.operator.scale(1)
    stage.declare(scaling={"maxReplicas": 3})
    stage.until_done(stage.enqueue(working(4, 3)), 90)
    stage.until_replicas(0, 60)
    the_same_event_happens_twice(stage)
    asked = list(audit.requests_of(Path(cluster.audit_log), USER, began))
    assert [request for request in asked if not request.allowed] == []
    assert used(asked) == granted(stage)


def the_same_event_happens_twice(stage: Stage) -> None:
    """The second time it is counted up, which is a right of its own."""
    for paused in ("true", None, "true"):
        stage.annotate("work", paused=paused)
        stage.until_seen()

    def counts() -> list[int]:
        events = stage.kubectl.get("events", "--field-selector=involvedObject.kind=ThunderAgentPool,reason=Paused")["items"]
        return [each["count"] for each in events]

    stage.until("one event that was counted up", 30, lambda: counts() == [2])


def used(asked: list[audit.Request]) -> set[Right]:
    """The rights that requests have needed. Server-side apply needs `create` for what is not there yet, and answers 201."""
    rights = {(request.group, request.resource, request.verb) for request in asked}
    created = {(request.group, request.resource, "create") for request in asked if request.status == 201}
    return rights | created


def granted(stage: Stage) -> set[Right]:
    """The rights of the operator's ServiceAccount."""
    kubectl = stage.operator.kubectl
    rules: list[dict[str, Any]] = []
    for binding in ("clusterrolebindings", "rolebindings"):
        for bound in kubectl.get(binding)["items"]:
            if any(subject["name"] == NAME and subject["kind"] == "ServiceAccount" for subject in bound.get("subjects", ())):
                role = bound["roleRef"]
                rules += kubectl.get(role["kind"].lower(), role["name"])["rules"]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
