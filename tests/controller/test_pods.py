"""What the cluster shows of a pool: whose pods are whose, how far they are, and who holds which lease."""

from __future__ import annotations

from typing import Any

import pytest

from controller.conditions import rfc3339
from controller.pods import leases_by_pod, pods_of, selector_text, sets_with_pods, workload_of
from tests.builders import NOW
from tests.controller.fakecluster import Manifest
from thunderagent.scaling import Phase, ReplicaState

SETS = [
    {"metadata": {"uid": "set-1", "ownerReferences": [{"uid": "deployment", "controller": True}]}},
    {"metadata": {"uid": "set-2", "ownerReferences": [{"uid": "other deployment", "controller": True}]}},
]
READY = {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(NOW - 50)}


def pod(name: str = "p", owner: str = "set-1", phase: str = "Running", **changes: Any) -> Manifest:
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "creationTimestamp": rfc3339(NOW - 100),
        "ownerReferences": [{"uid": owner, "controller": True}],
        **changes.pop("metadata", {}),
    }
    status = {"phase": phase, "conditions": [READY] if phase == "Running" else [], **changes.pop("status", {})}
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status, **changes}


def seen(*pods: Manifest) -> Any:
    return pods_of("deployment", SETS, pods, "team.reports", NOW)


STRANGERS = [
    pytest.param(pod(owner="set-2"), id="of another Deployment's ReplicaSet"),
    pytest.param(pod(owner="set-9"), id="of a ReplicaSet that is not there"),
    pytest.param(pod(metadata={"ownerReferences": []}), id="of nobody"),
    pytest.param(pod(metadata={"ownerReferences": [{"uid": "set-1"}]}), id="of an owner that does not control it"),
    pytest.param(pod(phase="Failed"), id="evicted: it has ended"),
    pytest.param(pod(phase="Succeeded"), id="completed: it has ended"),
]


@pytest.mark.parametrize("stranger", STRANGERS)
def test_pods_that_are_not_the_pools(stranger: Manifest) -> None:
    assert seen(stranger) == ()


def test_a_pod_as_a_replica_and_as_a_victim() -> None:
    cost = {"controller.kubernetes.io/pod-deletion-cost": "3"}
    restarted = {"containerStatuses": [{"name": "agent", "restartCount": 2}]}
    (found,) = seen(pod(metadata={"annotations": cost}, status=restarted))
    candidate = found.as_candidate(running=1)
    assert found.as_replica().owner == "team.reports/p/uid-p"
    assert (candidate.cost, candidate.restarts, candidate.node) == (3, 2, "n1")
    assert (candidate.created, candidate.ready_since, candidate.phase) == (NOW - 100, NOW - 50, Phase.RUNNING)


STATES = [
    pytest.param(pod(), ReplicaState.READY, True, id="ready"),
    pytest.param(pod(phase="Pending"), ReplicaState.STARTING, True, id="pending"),
    pytest.param(pod(metadata={"deletionTimestamp": rfc3339(NOW)}), ReplicaState.TERMINATING, False, id="on its way out"),
]


@pytest.mark.parametrize(("given", "state", "active"), STATES)
def test_states(given: Manifest, state: ReplicaState, active: bool) -> None:
    (found,) = seen(given)
    assert (found.as_replica().state, found.is_active) == (state, active)


def test_a_phase_that_is_unknown_is_unknown() -> None:
    (found,) = seen(pod(phase="Dreaming"))
    assert found.as_candidate(0).phase is Phase.UNKNOWN


def waiting(reason: str) -> Manifest:
    return {"conditions": [], "containerStatuses": [{"name": "agent", "state": {"waiting": {"reason": reason}}}]}


UNSCHEDULED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]}
TROUBLES = [
    pytest.param(waiting("ErrImagePull"), "ImagePullFailed", id="image pull"),
    pytest.param(waiting("InvalidImageName"), "ImagePullFailed", id="image name"),
    pytest.param(waiting("CrashLoopBackOff"), "PodsFailing", id="crash loop"),
    pytest.param(waiting("CreateContainerConfigError"), "PodsFailing", id="runs as root, secret missing"),
    pytest.param(waiting("ContainerCreating"), None, id="still starting"),
    pytest.param(UNSCHEDULED, "PodsPending", id="no room on any node"),
]


@pytest.mark.parametrize(("status", "reason"), TROUBLES)
def test_troubles(status: Manifest, reason: str | None) -> None:
    (found,) = seen(pod(phase="Pending", status=status))
    assert (found.trouble and found.trouble.reason) == reason


def test_a_rollout_has_pods_of_two_sets() -> None:
    sets = [*SETS, {"metadata": {"uid": "set-3", "ownerReferences": [{"uid": "deployment", "controller": True}]}}]
    leaving = {"deletionTimestamp": rfc3339(NOW)}
    during = pods_of("deployment", sets, [pod("a"), pod("b", owner="set-3")], "x", NOW)
    after = pods_of("deployment", sets, [pod("a", metadata=leaving), pod("b", owner="set-3")], "x", NOW)
    assert (sets_with_pods(during), sets_with_pods(after)) == (2, 1)


LONG = "reports-" + "x" * 80
HOLDERS = [
    pytest.param("team.reports/p/uid-p-k3f9", "p", id="pool, pod and uid"),
    pytest.param("-/p/17-k3f9", "p", id="an agent that knows only its host"),
    pytest.param("theirs/other-host/uid-p-k3f9", "p", id="the uid counts more than the host"),
    pytest.param(f"-/{LONG[:63]}/17-k3f9", LONG, id="a host name is a pod's name cut to 63 characters"),
    pytest.param("celery@p", "p", id="the pod's name inside of another form"),
    pytest.param("p-17", "p", id="host and pid in one"),
    pytest.param("p.team.svc:17", "p", id="a host with its domain"),
    pytest.param("team.reports/gone/uid-gone-k3f9", None, id="a pod that is gone"),
    pytest.param("", None, id="nobody"),
]


@pytest.mark.parametrize(("lock_owner", "holder"), HOLDERS)
def test_who_holds_a_lease(lock_owner: str, holder: str | None) -> None:
    pods = seen(pod("p"), pod(LONG))
    expected = lock_owner if holder is None else f"team.reports/{holder}/uid-{holder}-0"
    assert leases_by_pod({lock_owner: 2}, pods) == {expected: 2}


def test_leases_under_several_names_of_one_pod_add_up() -> None:
    assert leases_by_pod({"-/p/1-a": 1, "-/p/1-b": 2}, seen(pod("p"))) == {"team.reports/p/uid-p-0": 3}


def test_selectors_of_any_form() -> None:
    expressions = [
        {"key": "a", "operator": "In", "values": ["1", "2"]},
        {"key": "b", "operator": "NotIn", "values": ["3"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    text = selector_text({"matchLabels": {"app": "x"}, "matchExpressions": expressions})
    assert text == "app=x,a in (1,2),b notin (3),c,!d"


def deployment(**status: Any) -> Manifest:
    metadata = {"name": "d", "uid": "u", "resourceVersion": "9", "generation": 4}
    return {"metadata": metadata, "spec": {"replicas": 3}, "status": status}


def test_a_deployment_that_its_controller_has_not_seen_yet() -> None:
    assert not workload_of(deployment(observedGeneration=3)).is_observed
    assert not workload_of(deployment()).is_observed
    assert workload_of(deployment(observedGeneration=4)).is_observed


def test_who_wrote_the_replicas_last() -> None:
    replicas: Manifest = {"f:spec": {"f:replicas": {}}}
    entries = [
        {"manager": "thunderagent-operator", "time": "2026-12-01T10:00:00Z", "fieldsV1": replicas},
        {"manager": "keda", "time": "2026-12-01T10:00:05Z", "fieldsV1": replicas},
        {"manager": "kubectl", "time": "2026-12-01T10:00:09Z", "fieldsV1": {"f:spec": {"f:template": {}}}},
    ]
    found = deployment()
    found["metadata"]["managedFields"] = entries
    assert workload_of(found).replicas_writer == "keda"
