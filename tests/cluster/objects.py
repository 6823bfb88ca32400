"""Kubernetes objects for tests, small ones, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RESTRICTED_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_RESTRICTED_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def pod_spec(image: str, **container: Any) -> dict[str, Any]:
    """A pod that the restricted Pod Security level admits; `container` adds to its one container."""
    own = {"name": "app", "image": image, "imagePullPolicy": "IfNotPresent", "securityContext": _RESTRICTED_CONTAINER}
    return {"securityContext": _RESTRICTED_POD, "terminationGracePeriodSeconds": 20, "containers": [own | container]}


def pod(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A pod labelled `app: <name>`."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def deployment(name: str, replicas: int, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A Deployment of pods labelled `app: <name>`."""
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def service(name: str, port: int, target_port: int) -> dict[str, Any]:
    """A service in front of the pods labelled `app: <name>`."""
    spec = {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target_port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def only_friends(name: str) -> dict[str, Any]:
    """A NetworkPolicy that lets only pods labelled `role: friend` reach the pods labelled `app: <name>`."""
    ingress = [{"from": [{"podSelector": {"matchLabels": {"role": "friend"}}}]}]
    spec = {"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Ingress"], "ingress": ingress}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec}


def gauge_definition(group: str) -> dict[str, Any]:
    """A custom resource with a rule over two fields and one over a change."""
    rules = [
        {"rule": "self.min <= self.max", "message": "min must not exceed max"},
        {"rule": "self.min == oldSelf.min", "message": "min is fixed"},
    ]
    numbers = {"min": {"type": "integer"}, "max": {"type": "integer"}}
    spec = {"type": "object", "required": ["min", "max"], "properties": numbers, "x-kubernetes-validations": rules}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gauges.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gauge", "plural": "gauges", "singular": "gauge"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def gauge(group: str, minimum: int, maximum: int) -> dict[str, Any]:
    """A resource of that kind."""
    spec = {"min": minimum, "max": maximum}
    return {"apiVersion": f"{group}/v1", "kind": "Gauge", "metadata": {"name": "gauge"}, "spec": spec}
