"""The two clusters that must answer alike: the real API server, and the small one of the fast tests."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol

from controller.cluster import Cluster, Leases, Object
from controller.kube import POOLS, Api, KubernetesCluster, KubernetesLeases
from controller.names import API_VERSION, KIND, PLURAL
from tests.controller.fakecluster import FakeCluster, Manifest


class Side(Protocol):
    """One of the two: what the operator speaks to, and what other people do."""

    @property
    def cluster(self) -> Cluster: ...

    @property
    def leases(self) -> Leases: ...

    namespace: str

    def create_pool(self, spec: Mapping[str, Any], name: str) -> Object: ...

    def scale_as_somebody(self, name: str, replicas: int) -> None: ...

    def create_pod(self, name: str) -> Object: ...


@dataclass
class Small:
    """The one in memory."""

    namespace: str = "team"
    fake: FakeCluster = field(default_factory=lambda: FakeCluster(time.time))

    @property
    def cluster(self) -> Cluster:
        return self.fake

    @property
    def leases(self) -> Leases:
        return self.fake

    def create_pool(self, spec: Mapping[str, Any], name: str) -> Object:
        return deepcopy(self.fake.create_pool(spec, name, self.namespace))

    def scale_as_somebody(self, name: str, replicas: int) -> None:
        self.fake.set_replicas(self.namespace, name, replicas, manager="somebody")

    def create_pod(self, name: str) -> Object:
        pod: Manifest = {
            "metadata": {"name": name, "namespace": self.namespace, "uid": f"uid-of-{name}"},
            "spec": {},
            "status": {"phase": "Pending"},
        }
        self.fake.put_pod(pod)
        return pod


class Real:
    """The one that Kubernetes is made of, in a namespace of its own."""

    def __init__(self, api: Api, threads: ThreadPoolExecutor, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.cluster: Cluster = KubernetesCluster(api, threads, [namespace], fence=lambda: None)
        self.leases: Leases = KubernetesLeases(api, threads)
        self._post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    def create_pool(self, spec: Mapping[str, Any], name: str) -> Object:
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}
        return self._post(f"{POOLS}/namespaces/{self.namespace}/{PLURAL}", body)

    def scale_as_somebody(self, name: str, replicas: int) -> None:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{name}"
        body = {"spec": {"replicas": replicas}}
        query = [("fieldManager", "somebody")]
        self.api.call("PATCH", path, query=query, body=body, kind="application/merge-patch+json", timeout=10.0)

    def create_pod(self, name: str) -> Object:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "agent", "image": "app:1"}]},
        }
        return self._post(f"/api/v1/namespaces/{self.namespace}/pods", body)

    def _post(self, path: str, body: Mapping[str, Any]) -> Object:
        return self.api.call("POST", path, body=body, timeout=10.0)
