"""The CustomResourceDefinition of ``ThunderAgentPool``, made from the pool's own fields. The chart carries it as YAML."""

from __future__ import annotations

from typing import Any

from controller.names import GROUP, KIND, PLURAL, VERSION
from thunderagent.pool import crd_schema

Manifest = dict[str, Any]


def custom_resource_definition() -> Manifest:
    """The manifest, made anew at each call."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["tap"],
                "categories": ["all", "thunderagent"],
            },
            "versions": [_version()],
        },
    }


def _version() -> Manifest:
    # No scale subresource: `kubectl scale` would have to write a field that the pool's decision does not listen to. A person
    # pins a pool by the annotation thunderagent.dev/paused-at-replicas.
    schema = crd_schema()
    schema["properties"]["status"] = _status()
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": _columns(),
        "schema": {"openAPIV3Schema": schema},
    }


def _columns() -> list[Manifest]:
    return [
        _column("Backlog", "integer", ".status.backlog", "Tasks that wait for an agent"),
        _column("Running", "integer", ".status.running", "Tasks that the pool's agents run"),
        _column("Desired", "integer", ".status.desiredReplicas", "Replicas asked for"),
        _column("Available", "integer", ".status.availableReplicas", "Replicas that are ready"),
        _column("Min", "integer", ".spec.scaling.minReplicas", "Fewest replicas"),
        _column("Max", "integer", ".spec.scaling.maxReplicas", "Most replicas"),
        _column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', "Whether the pool can be scaled"),
        _column("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason', "Why it is ready or not", priority=1),
        _column("Table", "string", ".spec.queue.table", "The task table", priority=1),
        _column("Age", "date", ".metadata.creationTimestamp", "Time since the pool was created"),
    ]


def _column(name: str, kind: str, path: str, description: str, priority: int = 0) -> Manifest:
    column: Manifest = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return {**column, "priority": priority} if priority else column


def _status() -> Manifest:
    return {
        "type": "object",
        "description": "What the operator last saw and did. Written when something changes that a person would care about.",
        "properties": {
            "observedGeneration": _integer("Generation of the pool that this status is about.", "int64"),
            "desiredReplicas": _integer("Replicas that the Deployment is asked for."),
            "replicas": _integer("Pods that are there, ready or not."),
            "availableReplicas": _integer("Pods that are ready."),
            "backlog": _integer("Tasks that wait for an agent: ready ones, and running ones whose lease has ended."),
            "waiting": _integer("Tasks that wait for other tasks."),
            "running": _integer("Tasks that the pool's agents hold a lease on."),
            "expired": _integer("Running tasks whose lease has ended: their agent is gone. Part of backlog."),
            "oldestReadySeconds": _integer("Age of the oldest ready task, when this status was written."),
            "cut": {"type": "boolean", "description": "The numbers are lower bounds: the reading stopped at its limit."},
            "lastReadTime": _time("When the backlog was last read, as of when this status was written."),
            "conditions": _conditions(),
        },
    }


def _conditions() -> Manifest:
    words = {
        "type": ("Ready, Active, Paused or Fallback.", 316),
        "reason": ("Why, as one word that programs may rely on.", 1024),
        "message": ("Why, for a person.", 32768),
    }
    properties: Manifest = {
        name: {"type": "string", "description": text, "maxLength": limit} for name, (text, limit) in words.items()
    }
    properties["status"] = {
        "type": "string",
        "enum": ["True", "False", "Unknown"],
        "description": "Whether the condition holds.",
    }
    properties["observedGeneration"] = _integer("Generation of the pool that this condition is about.", "int64")
    properties["lastTransitionTime"] = _time("When status last changed.")
    return {
        "type": "array",
        "description": "Ready: the pool can be scaled. Active: there is work or there are replicas. Paused: a person holds "
        "it. Fallback: the backlog cannot be read and fallback replicas are kept.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": properties,
        },
    }


def _integer(description: str, form: str = "int32") -> Manifest:
    return {"type": "integer", "format": form, "description": description}


def _time(description: str) -> Manifest:
    return {"type": "string", "format": "date-time", "description": description}
