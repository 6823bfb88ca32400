"""What the cluster shows of a pool, in the words of scaling: a Deployment as a workload, its pods as replicas and victims.

Pods are a pool's by the chain of owner references Deployment -> ReplicaSet -> Pod, by uid. A label alone proves nothing:
anybody can put it on a pod.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from controller.names import BUSY
from thunderagent.scaling import Candidate, Phase, Replica, ReplicaState, owner_of, read_cost
from thunderagent.scaling.victims import COST_ANNOTATION

Object = Mapping[str, Any]

HOSTNAME_MAX = 63
"""Characters of a pod's name that become its hostname (kubelet's GeneratePodHostNameAndDomain)."""

PENDING_LIMIT = 90
"""Seconds that a pod may take to be scheduled before a person is told: a node autoscaler needs about this long."""

KARPENTER = "karpenter.sh/do-not-disrupt"
CLUSTER_AUTOSCALER = "cluster-autoscaler.kubernetes.io/safe-to-evict"

_READ = frozenset({COST_ANNOTATION, BUSY, KARPENTER, CLUSTER_AUTOSCALER})
"""Annotations that are looked at. The rest, which may be large, is not kept."""

_PHASES = {str(phase): phase for phase in Phase}
_PULL_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"})
_START_REASONS = frozenset({"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"})


@dataclass(frozen=True, slots=True)
class PodTrouble:
    """Why a pod does not become ready: a stable reason, and the words of who says so."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the pool. ``owner`` is what the lockOwner of its agent begins with. Times are epoch seconds."""

    name: str
    uid: str
    owner: str
    replica_set: str
    node: str
    phase: str
    ready: bool
    terminating: bool
    created: float | None
    ready_since: float | None
    restarts: int
    annotations: Mapping[str, str]
    trouble: PodTrouble | None = None

    @property
    def is_active(self) -> bool:
        """As ReplicaSets see it: neither ended nor on its way out."""
        return not self.terminating and self.phase not in {"Succeeded", "Failed"}

    @property
    def is_replica(self) -> bool:
        return self.phase not in {"Succeeded", "Failed"}

    def as_replica(self) -> Replica:
        """As the decision sees it; what it runs is found in the table."""
        if self.terminating:
            return Replica(self.owner, ReplicaState.TERMINATING)
        return Replica(self.owner, ReplicaState.READY if self.ready else ReplicaState.STARTING)

    def as_candidate(self, running: int) -> Candidate:
        """As a possible victim of its ReplicaSet."""
        return Candidate(
            name=self.name,
            running=running,
            node=self.node,
            phase=_PHASES.get(self.phase, Phase.UNKNOWN),
            ready=self.ready,
            cost=read_cost(self.annotations),
            ready_since=self.ready_since,
            restarts=self.restarts,
            created=self.created,
            uid=self.uid,
        )


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment as scaling needs it. ``replicas`` is what it is asked for, the others are what there is."""

    name: str
    uid: str
    version: str
    generation: int
    observed_generation: int
    replicas: int
    existing: int
    available: int
    selector: Mapping[str, Any]
    conditions: Mapping[str, Object] = field(default_factory=dict)
    replicas_writer: str = ""

    @property
    def is_observed(self) -> bool:
        """Whether the Deployment's own controller has seen its latest spec."""
        return self.observed_generation >= self.generation


def workload_of(deployment: Object) -> Workload:
    """The Deployment's numbers. What its controller has not written yet counts as 0."""
    metadata, spec, status = deployment["metadata"], deployment["spec"], deployment.get("status") or {}
    return Workload(
        name=metadata["name"],
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        generation=metadata.get("generation", 0),
        observed_generation=status.get("observedGeneration", 0),
        replicas=spec.get("replicas", 1),
        existing=status.get("replicas", 0),
        available=status.get("availableReplicas", 0),
        selector=spec.get("selector") or {},
        conditions={condition["type"]: condition for condition in status.get("conditions") or ()},
        replicas_writer=_replicas_writer(metadata),
    )


def is_controlled_by(thing: Object, uid: str) -> bool:
    """Whether the object's controlling owner is the one with this uid."""
    owners = thing["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def selector_text(selector: Mapping[str, Any]) -> str:
    """A label selector as a query parameter."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(expression.get("values") or ())
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
        parts.append(forms[expression["operator"]])
    return ",".join(parts)


def pods_of(
    deployment_uid: str, replica_sets: Iterable[Object], pods: Iterable[Object], identity: str, now: float
) -> tuple[Pod, ...]:
    """The Deployment's pods that have not ended. ``identity`` is the pool's; ``now`` is in epoch seconds."""
    sets = {each["metadata"]["uid"] for each in replica_sets if is_controlled_by(each, deployment_uid)}
    found = (_pod(pod, identity, now) for pod in pods if _controller_uid(pod) in sets)
    return tuple(pod for pod in found if pod.is_replica)


def sets_with_pods(pods: Iterable[Pod]) -> int:
    """ReplicaSets that have active pods. More than one: a rollout is under way."""
    return len({pod.replica_set for pod in pods if pod.is_active})


def leases_by_pod(leases: Mapping[str, int], pods: Iterable[Pod]) -> dict[str, int]:
    """The leases with each that one of the pods holds under the pod's own name.

    An agent that the operator rendered says pool, pod and uid. One of somebody else's Deployment says what it likes; as long
    as it says its pod's name or hostname somewhere, as most do, its pod is known to be busy.
    """
    by_uid = {pod.uid: pod.owner for pod in pods}
    by_host = {name: pod.owner for pod in pods for name in (pod.name, _hostname(pod.name))}
    attributed: Counter[str] = Counter()
    for lock_owner, count in leases.items():
        owner = _holder(lock_owner, by_uid, by_host)
        attributed[lock_owner if owner is None else f"{owner}-0"] += count
    return dict(attributed)


def _holder(lock_owner: str, by_uid: Mapping[str, str], by_host: Mapping[str, str]) -> str | None:
    words = re.split(r"[^A-Za-z0-9.-]+", lock_owner)
    uid = owner_of(words[-1])
    if uid in by_uid:
        return by_uid[uid]
    for word in words:
        if word in by_host:
            return by_host[word]
    begun = (owner for name, owner in by_host.items() for word in words if word.startswith((f"{name}-", f"{name}.")))
    return next(begun, None)


def _hostname(pod_name: str) -> str:
    return pod_name[:HOSTNAME_MAX].rstrip("-.")


def _controller_uid(thing: Object) -> str:
    owners = thing["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _pod(pod: Object, identity: str, now: float) -> Pod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    ready = conditions.get("Ready", {})
    is_ready = ready.get("status") == "True"
    created = epoch(metadata.get("creationTimestamp"))
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        owner=f"{identity}/{metadata['name']}/{metadata['uid']}",
        replica_set=_controller_uid(pod),
        node=pod.get("spec", {}).get("nodeName") or "",
        phase=status.get("phase", "Pending"),
        ready=is_ready,
        terminating=metadata.get("deletionTimestamp") is not None,
        created=created,
        ready_since=epoch(ready.get("lastTransitionTime")) if is_ready else None,
        restarts=max((each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0),
        annotations={key: value for key, value in (metadata.get("annotations") or {}).items() if key in _READ},
        trouble=None if is_ready else _trouble(status, conditions, created, now),
    )


def _trouble(status: Object, conditions: Mapping[str, Object], created: float | None, now: float) -> PodTrouble | None:
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (each.get("state") or {}).get("waiting") or {}
        words = f"{each.get('name')}: {waiting.get('message') or waiting.get('reason')}"
        if waiting.get("reason") in _PULL_REASONS:
            return PodTrouble("ImagePullFailed", words)
        if waiting.get("reason") in _START_REASONS:
            return PodTrouble("PodsFailing", words)
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False" and created is not None and now - created > PENDING_LIMIT:
        return PodTrouble("PodsPending", scheduled.get("message") or scheduled.get("reason") or "not scheduled")
    return None


def epoch(text: str | None) -> float | None:
    """A time of the API server as epoch seconds."""
    return None if not text else datetime.fromisoformat(text).timestamp()


def _replicas_writer(metadata: Object) -> str:
    """Who last wrote spec.replicas, as the API server keeps it."""
    writers = [
        entry for entry in metadata.get("managedFields") or () if "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {})
    ]
    latest = max(writers, key=lambda entry: str(entry.get("time", "")), default=None)
    return "" if latest is None else str(latest.get("manager", ""))
