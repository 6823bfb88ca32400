"""A small Kubernetes in memory: what the operator asks of the API server, and the controllers that act on it.

Versions, conflicts, ownership and generations are as in the real one. Time and progress are the test's: pods become ready, go
and are replaced when :meth:`FakeCluster.settle` is called, and the ReplicaSet's own view of the pods can be held back.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from controller.cluster import Object
from controller.conditions import rfc3339
from controller.errors import ClusterUnavailable, ObjectChanged, ObjectMissing, Refused
from controller.names import API_VERSION, FIELD_MANAGER, KIND
from controller.pods import epoch
from controller.status import Notice
from tests.controller.applied import Leaves, Path, apply, leaves, rebuilt
from thunderagent.scaling import Candidate, Phase, read_cost, victim_order

Manifest = dict[str, Any]
Key = tuple[str, str]


@dataclass
class Stored:
    """A Deployment as the API server keeps it: its leaves, and which manager owns which."""

    fields: Leaves
    owned: dict[str, set[Path]]
    metadata: Manifest
    status: Manifest = field(default_factory=dict)


@dataclass
class FakeCluster:
    """``wall`` gives epoch seconds. What a test may set:

    ``errors``: raised, once each, by the next calls of a method. ``refuse``: words with which an apply is refused.
    ``quota``: pods that a namespace may have. ``image_pulls``: whether new pods get beyond pulling, ``schedulable``: to a node.
    ``lag``: seconds by which the ReplicaSet controller sees pods late. ``asleep``: no controller does anything.
    ``writes`` lists what was written, in order.
    """

    wall: Callable[[], float]
    errors: dict[str, list[Exception]] = field(default_factory=dict)
    refuse: str | None = None
    quota: int = 1000
    image_pulls: bool = True
    schedulable: bool = True
    lag: float = 0.0
    asleep: bool = False
    writes: list[tuple[str, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    before_scale: Callable[[], None] = lambda: None
    fence: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._pools: dict[Key, Manifest] = {}
        self._deployments: dict[Key, Stored] = {}
        self._sets: dict[str, Manifest] = {}
        self._pods: dict[Key, Manifest] = {}
        self._leases: dict[Key, Manifest] = {}
        self._seen: list[tuple[float, dict[Key, Manifest]]] = []

    # --- what the operator asks ----------------------------------------------------------------------------------------

    async def pools(self) -> list[Object]:
        self._call("pools")
        return [deepcopy(pool) for pool in self._pools.values()]

    async def pool(self, namespace: str, name: str) -> Object | None:
        self._call("pool")
        return deepcopy(self._pools.get((namespace, name)))

    async def deployment(self, namespace: str, name: str) -> Object | None:
        self._call("deployment")
        stored = self._deployments.get((namespace, name))
        return None if stored is None else _deployment(stored)

    async def replica_sets(self, namespace: str, selector: str) -> list[Object]:
        self._call("replica_sets")
        return [deepcopy(each) for each in self._sets.values() if each["metadata"]["namespace"] == namespace]

    async def pods(self, namespace: str, selector: str) -> list[Object]:
        self._call("pods")
        here = (pod for (where, _), pod in self._pods.items() if where == namespace)
        return [deepcopy(pod) for pod in here if _selected(pod, selector)]

    async def apply_deployment(self, body: Object, *, manager: str, force: bool = False) -> Object:
        self._write("apply_deployment", manager)
        if self.refuse is not None:
            raise Refused(self.refuse, 422)
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        stored = self._deployments.get(key)
        self._check_uid(body, stored)
        if stored is None:
            stored = Stored({}, {}, self._new_metadata(*key))
        fields = apply(stored.fields, stored.owned, manager, body, force=force)
        fields.setdefault(("spec", "replicas"), 1)
        self._store(key, stored, fields)
        return _deployment(stored)

    async def scale_deployment(self, namespace: str, name: str, replicas: int, version: str) -> None:
        self.before_scale()
        self._write("scale_deployment", f"{name}={replicas}")
        stored = self._deployments.get((namespace, name))
        if stored is None:
            raise ObjectMissing(f"deployments.apps {name!r} not found", 404)
        if stored.metadata["resourceVersion"] != version:
            raise ObjectChanged("the object has been modified; please apply your changes to the latest version", 409)
        self.set_replicas(namespace, name, replicas, manager=f"{FIELD_MANAGER}/scale")

    async def annotate_pod(self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]) -> None:
        self._write("annotate_pod", name)
        pod = self._pods.get((namespace, name))
        if pod is None:
            raise ObjectMissing(f"pods {name!r} not found", 404)
        if pod["metadata"]["uid"] != uid:
            raise ObjectChanged("Precondition failed: UID in precondition", 409)
        present = {**pod["metadata"].get("annotations", {}), **annotations}
        pod["metadata"]["annotations"] = {name: value for name, value in present.items() if value is not None}

    async def write_status(self, namespace: str, name: str, uid: str, status: Object) -> None:
        self._write("write_status", name)
        pool = self._pools.get((namespace, name))
        if pool is None:
            raise ObjectMissing(f"{name!r} not found", 404)
        if pool["metadata"]["uid"] != uid:
            raise ObjectChanged("the server rejected our request due to an error in our request", 422)
        json.dumps(status)
        pool["status"] = deepcopy(dict(status))

    async def emit(self, pool: Object, notice: Notice) -> None:
        self._write("emit", notice.reason)
        self.notices.append(notice)

    async def lease(self, namespace: str, name: str) -> Object | None:
        self._call("lease")
        return deepcopy(self._leases.get((namespace, name)))

    async def create_lease(self, body: Object) -> Object:
        self._call("create_lease")
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        if key in self._leases:
            raise ObjectChanged(f"leases {key[1]!r} already exists", 409)
        return self._put_lease(key, body)

    async def replace_lease(self, body: Object) -> Object:
        self._call("replace_lease")
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        if self._leases[key]["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            raise ObjectChanged("the object has been modified", 409)
        return self._put_lease(key, body)

    # --- what a test does and sees -------------------------------------------------------------------------------------

    def create_pool(self, spec: Mapping[str, Any], name: str = "reports", namespace: str = "team", **metadata: Any) -> Manifest:
        """Put a pool into the cluster, as kubectl apply does."""
        fresh = {**self._new_metadata(namespace, name), "generation": 1, **metadata}
        pool = {"apiVersion": API_VERSION, "kind": KIND, "metadata": fresh, "spec": deepcopy(dict(spec))}
        self._pools[namespace, name] = pool
        return pool

    def edit_pool(self, change: Callable[[Manifest], None], name: str = "reports", namespace: str = "team") -> None:
        """Change a pool's spec."""
        pool = self._pools[namespace, name]
        change(pool["spec"])
        pool["metadata"]["generation"] += 1

    def pool_object(self, name: str = "reports", namespace: str = "team") -> Manifest:
        """The pool as kubectl get would show it."""
        return deepcopy(self._pools[namespace, name])

    def annotate_pool(self, name: str = "reports", namespace: str = "team", **annotations: str) -> None:
        """Set the pool's annotations to ``thunderagent.dev/<name with hyphens>``."""
        named = {f"thunderagent.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self._pools[namespace, name]["metadata"]["annotations"] = named

    def delete_pool(self, name: str = "reports", namespace: str = "team") -> None:
        """Delete a pool, and what it owns, as the garbage collector does: nobody else has to be there."""
        uid = self._pools.pop((namespace, name))["metadata"]["uid"]
        for key, stored in list(self._deployments.items()):
            owners = rebuilt(stored.fields).get("metadata", {}).get("ownerReferences", [])
            if any(owner["uid"] == uid for owner in owners):
                self.delete_deployment(*key)

    def delete_deployment(self, namespace: str, name: str) -> None:
        uid = self._deployments.pop((namespace, name)).metadata["uid"]
        for set_uid, each in list(self._sets.items()):
            if each["metadata"]["ownerReferences"][0]["uid"] == uid:
                del self._sets[set_uid]
                for pod in self._pods_of(set_uid):
                    self._terminate(pod)

    def put_deployment(self, name: str, namespace: str = "team", replicas: int = 0, **metadata: Any) -> None:
        """A Deployment that somebody else has made."""
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "agent", "image": "theirs:1"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        fields = leaves({"spec": spec})
        stored = Stored({}, {"helm": set(fields)}, {**self._new_metadata(namespace, name), **metadata})
        self._store((namespace, name), stored, fields)

    def set_replicas(self, namespace: str, name: str, replicas: int, manager: str) -> None:
        """What kubectl scale or another autoscaler does."""
        stored = self._deployments[namespace, name]
        path = ("spec", "replicas")
        if stored.fields[path] != replicas:
            for owned in stored.owned.values():
                owned.discard(path)
        stored.owned.setdefault(manager, set()).add(path)
        self._store((namespace, name), stored, {**stored.fields, path: replicas})

    def replicas(self, name: str = "reports", namespace: str = "team") -> int:
        return int(self._deployments[namespace, name].fields["spec", "replicas"])

    def manifest(self, name: str = "reports", namespace: str = "team") -> Manifest:
        """The Deployment as kubectl get would show it."""
        return _deployment(self._deployments[namespace, name])

    def has_deployment(self, name: str = "reports", namespace: str = "team") -> bool:
        return (namespace, name) in self._deployments

    def pod_objects(self, name: str = "reports", namespace: str = "team") -> list[Manifest]:
        """Active pods of a Deployment, oldest first."""
        uid = self._deployments[namespace, name].metadata["uid"]
        sets = [set_uid for set_uid, each in self._sets.items() if each["metadata"]["ownerReferences"][0]["uid"] == uid]
        return [pod for set_uid in sets for pod in self._pods_of(set_uid) if _is_active(pod)]

    def all_pods(self) -> list[Manifest]:
        return list(self._pods.values())

    def put_pod(self, pod: Manifest) -> None:
        """A pod that somebody else has made."""
        self._pods[pod["metadata"]["namespace"], pod["metadata"]["name"]] = pod

    def end_pod(self, pod: Manifest) -> None:
        """The pod's containers have ended and it is gone."""
        del self._pods[pod["metadata"]["namespace"], pod["metadata"]["name"]]

    def touch_deployment(self, name: str = "reports", namespace: str = "team") -> None:
        """Its status is written: a new version, nothing else."""
        self._deployments[namespace, name].metadata["resourceVersion"] = str(next(self._numbers))

    def expire_lease(self, namespace: str, name: str) -> None:
        del self._leases[namespace, name]

    # --- its controllers ------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let every controller do what it has to do, and pods start."""
        self._seen = [*self._seen, (self.wall(), deepcopy(self._pods))][-10:]
        if self.asleep:
            return
        for key, stored in self._deployments.items():
            self._run_deployment(key, stored)

    def start_pods(self) -> None:
        """Pods that are scheduled become ready."""
        for pod in self._pods.values():
            if _is_active(pod) and not pod["status"].get("containerStatuses") and pod["spec"].get("nodeName"):
                ready = {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(self.wall())}
                pod["status"] = {"phase": "Running", "conditions": [ready]}

    def _run_deployment(self, key: Key, stored: Stored) -> None:
        deployment = _deployment(stored)
        current = self._current_set(key, deployment)
        failure = None
        for set_uid in list(self._sets):
            if self._sets[set_uid]["metadata"]["ownerReferences"][0]["uid"] == stored.metadata["uid"]:
                wanted = deployment["spec"]["replicas"] if set_uid == current else 0
                failure = self._run_set(key, set_uid, wanted) or failure
        self.start_pods()
        active = self.pod_objects(key[1], key[0])
        conditions = [] if failure is None else [{"type": "ReplicaFailure", "status": "True", "message": failure}]
        stored.status = {
            "observedGeneration": stored.metadata["generation"],
            "replicas": len(active),
            "availableReplicas": sum(_is_ready(pod) for pod in active),
            "conditions": conditions,
        }
        stored.metadata["resourceVersion"] = str(next(self._numbers))

    def _current_set(self, key: Key, deployment: Manifest) -> str:
        template = json.dumps(deployment["spec"]["template"], sort_keys=True)
        uid = deployment["metadata"]["uid"]
        for set_uid, each in self._sets.items():
            if each["metadata"]["ownerReferences"][0]["uid"] == uid and each["template"] == template:
                return set_uid
        metadata = self._new_metadata(key[0], f"{key[1]}-{next(self._numbers):04d}")
        metadata["ownerReferences"] = [{"uid": uid, "controller": True, "kind": "Deployment"}]
        self._sets[metadata["uid"]] = {"metadata": metadata, "template": template}
        return str(metadata["uid"])

    def _run_set(self, key: Key, set_uid: str, wanted: int) -> str | None:
        active = [pod for pod in self._pods_of(set_uid) if _is_active(pod)]
        for pod in self._victims(active)[: max(0, len(active) - wanted)]:
            self._terminate(pod)
        for _ in range(wanted - len(active)):
            if len([pod for (where, _), pod in self._pods.items() if where == key[0] and _is_active(pod)]) >= self.quota:
                return f'pods "{key[1]}-x" is forbidden: exceeded quota: team, requested: pods=1, used: pods={self.quota}'
            self._create_pod(key[0], set_uid)
        return None

    def _victims(self, active: Sequence[Manifest]) -> list[Manifest]:
        by_uid = {pod["metadata"]["uid"]: pod for pod in active}
        late = [pods for at, pods in self._seen if at <= self.wall() - self.lag]
        seen = {pod["metadata"]["uid"]: pod for pod in (late[-1] if late else {}).values()}
        candidates = [_candidate(seen.get(uid, pod)) for uid, pod in by_uid.items()]
        return [by_uid[candidate.uid] for candidate in victim_order(candidates, self.wall())]

    def _create_pod(self, namespace: str, set_uid: str) -> None:
        replica_set = self._sets[set_uid]
        metadata = self._new_metadata(namespace, f"{replica_set['metadata']['name']}-{next(self._numbers):04d}")
        metadata["ownerReferences"] = [{"uid": set_uid, "controller": True, "kind": "ReplicaSet"}]
        template = json.loads(replica_set["template"])
        metadata["labels"] = template["metadata"]["labels"]
        pod: Manifest = {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": {"phase": "Pending"}}
        if not self.schedulable:
            words = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
            pod |= {"spec": {}, "status": {"phase": "Pending", "conditions": [words]}}
        elif not self.image_pulls:
            waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
            pod["status"]["containerStatuses"] = [{"name": "agent", "restartCount": 0, "state": {"waiting": waiting}}]
        self._pods[namespace, metadata["name"]] = pod

    def _terminate(self, pod: Manifest) -> None:
        pod["metadata"].setdefault("deletionTimestamp", rfc3339(self.wall()))

    def _pods_of(self, set_uid: str) -> list[Manifest]:
        return [pod for pod in self._pods.values() if _owner_uid(pod) == set_uid]

    # --- the API server -------------------------------------------------------------------------------------------------

    def _call(self, method: str) -> None:
        self.calls.append(method)
        queued = self.errors.get(method) or self.errors.get("*")
        if queued:
            raise queued.pop(0)

    def _write(self, method: str, what: str) -> None:
        self.fence()
        self._call(method)
        self.writes.append((method, what))

    def _store(self, key: Key, stored: Stored, fields: Leaves) -> None:
        changed = {path: value for path, value in fields.items() if path[0] == "spec"} != {
            path: value for path, value in stored.fields.items() if path[0] == "spec"
        }
        stored.fields = fields
        stored.metadata["generation"] = stored.metadata.get("generation", 0) + changed
        stored.metadata["resourceVersion"] = str(next(self._numbers))
        self._deployments[key] = stored

    def _check_uid(self, body: Object, stored: Stored | None) -> None:
        uid = body["metadata"].get("uid")
        if uid is not None and (stored is None or stored.metadata["uid"] != uid):
            raise ObjectChanged("uid mismatch: the provided object specified another uid", 409)

    def _put_lease(self, key: Key, body: Object) -> Manifest:
        lease = deepcopy(dict(body))
        lease["metadata"] = {**lease["metadata"], "resourceVersion": str(next(self._numbers))}
        self._leases[key] = lease
        return deepcopy(lease)

    def _new_metadata(self, namespace: str, name: str) -> Manifest:
        number = next(self._numbers)
        return {
            "name": name,
            "namespace": namespace,
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(number),
            "creationTimestamp": rfc3339(self.wall()),
        }


def unavailable(count: int = 1) -> list[Exception]:
    """Errors of an API server that is away for so many calls."""
    return [ClusterUnavailable("The API server did not answer: connection refused") for _ in range(count)]


def _deployment(stored: Stored) -> Manifest:
    body: Manifest = rebuilt(stored.fields)
    managed = [
        {"manager": manager, "operation": "Apply", "fieldsV1": _fields_v1(paths)}
        for manager, paths in stored.owned.items()
        if paths
    ]
    metadata = {**body.get("metadata", {}), **stored.metadata, "managedFields": managed}
    return deepcopy({"apiVersion": "apps/v1", "kind": "Deployment", **body, "metadata": metadata, "status": stored.status})


def _fields_v1(paths: set[Path]) -> Manifest:
    return {"f:spec": {f"f:{path[1]}": {} for path in sorted(paths) if path[0] == "spec"}}


def _candidate(pod: Manifest) -> Candidate:
    metadata, status = pod["metadata"], pod["status"]
    ready = next((each for each in status.get("conditions", []) if each["type"] == "Ready"), None)
    return Candidate(
        name=metadata["name"],
        node=pod["spec"].get("nodeName", ""),
        phase=Phase(status["phase"]),
        ready=ready is not None,
        cost=read_cost(metadata.get("annotations", {})),
        ready_since=None if ready is None else epoch(ready["lastTransitionTime"]),
        created=epoch(metadata["creationTimestamp"]),
        uid=metadata["uid"],
    )


def _selected(pod: Manifest, selector: str) -> bool:
    wanted = dict(part.split("=") for part in selector.split(",") if part)
    labels: Mapping[str, str] = pod["metadata"].get("labels", {})
    return wanted.items() <= labels.items()


def _owner_uid(pod: Manifest) -> str:
    return str(next((owner["uid"] for owner in pod["metadata"].get("ownerReferences", [])), ""))


def _is_active(pod: Manifest) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] not in {"Succeeded", "Failed"}


def _is_ready(pod: Manifest) -> bool:
    return any(each["type"] == "Ready" for each in pod["status"].get("conditions", []))
