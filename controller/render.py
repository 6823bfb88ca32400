"""From a pool to its Deployment: the template as it was given, and in it what the agent needs and the template does not say.

Rendering is pure. The result goes to the API server by server-side apply and never mentions replicas: those belong to the
scaling step. Whether what lies inside the template makes sense is for the API server to say.

A Deployment is rendered anew only when what it was rendered from has changed (:func:`is_current`). So neither an operator
that injects more than the last one did, nor a new default in the CRD, restarts a pod.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from controller.names import (
    API_VERSION,
    BIRTH_MANAGER,
    FIELD_MANAGER,
    KIND,
    MANAGED_BY_LABEL,
    POOL_LABEL,
    RENDERED_BY,
    RENDERED_FROM,
    pool_identity,
)
from thunderagent.errors import InvalidPool
from thunderagent.pool import Pool, parse_pool
from thunderagent.poolcycle import settings_environment
from thunderagent.settings import AgentSettings

Manifest = dict[str, Any]

GRACE_MARGIN = 30
"""Seconds between the end of the drain and SIGKILL: to stop handlers, write releases, and flush logs."""

PORT_VARIABLE = "THUNDERAGENT_PORT"
DEFAULT_PORT = AgentSettings().port

IDENTITY = ("THUNDERAGENT_POOL", "THUNDERAGENT_POD_NAME", "THUNDERAGENT_POD_UID")
"""Variables that make up lockOwner. A template cannot set them: by lockOwner the operator knows which pods are busy."""

LIVENESS = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}
READINESS = {"periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 3}


def render(resource: Mapping[str, Any], pool: Pool, version: str) -> Manifest:
    """The Deployment of a pool with a template, for server-side apply.

    ``resource`` is the pool as the API server gave it, ``version`` this operator's. Raises InvalidPool where the template
    cannot hold an agent: no container of that name, or less time to end than the drain takes.
    """
    name, metadata = pool.name, resource["metadata"]
    template = _template(pool, metadata["namespace"])
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {**pool.metadata.labels, MANAGED_BY_LABEL: FIELD_MANAGER, POOL_LABEL: name},
            "annotations": {RENDERED_FROM: rendered_from(resource), RENDERED_BY: version},
            "ownerReferences": [_owner_reference(metadata)],
        },
        "spec": {"selector": {"matchLabels": {POOL_LABEL: name}}, "revisionHistoryLimit": 3, "template": template},
    }


def with_replicas(deployment: Mapping[str, Any], replicas: int) -> Manifest:
    """The same with replicas: how it is created."""
    return {**deployment, "spec": {**deployment["spec"], "replicas": replicas}}


def birth_rest(deployment: Mapping[str, Any], replicas: int) -> Manifest:
    """What the manager that created the Deployment keeps: its replicas. Applied, it leaves the rest to who owns it too."""
    metadata = deployment["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {"replicas": replicas},
    }


def birth_is_unfinished(deployment: Mapping[str, Any]) -> bool:
    """Whether the manager that created the Deployment still owns its template."""
    return any(
        entry.get("manager") == BIRTH_MANAGER and "f:template" in entry.get("fieldsV1", {}).get("f:spec", {})
        for entry in deployment["metadata"].get("managedFields") or ()
    )


# --- when to render ------------------------------------------------------------------------------------------------------


def rendered_from(resource: Mapping[str, Any]) -> str:
    """What of the pool goes into its Deployment. Of the template only a hash: it is kept as it was given."""
    spec = resource["spec"]
    text = json.dumps(spec.get("template"), sort_keys=True, separators=(",", ":"))
    kept = {
        "template": hashlib.sha256(text.encode()).hexdigest(),
        "queue": spec.get("queue", {}),
        "agent": spec.get("agent", {}),
        "labels": resource["metadata"].get("labels") or {},
    }
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def is_current(deployment: Mapping[str, Any], resource: Mapping[str, Any]) -> bool:
    """Whether the Deployment was rendered from the pool as it is now.

    The fields are compared as parsed: one that a new version of the CRD has added, with its default, changes nothing.
    """
    kept, now = (deployment["metadata"].get("annotations") or {}).get(RENDERED_FROM), rendered_from(resource)
    if kept == now:
        return True
    try:
        return _parsed(json.loads(kept or "null")) == _parsed(json.loads(now))
    except (InvalidPool, ValueError, TypeError, KeyError):
        return False


def _parsed(kept: Mapping[str, Any]) -> tuple[Any, ...]:
    spec = {"queue": kept["queue"], "agent": kept["agent"]}
    pool = parse_pool({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "kept"}, "spec": spec})
    return kept["template"], kept["labels"], pool.spec.queue, pool.spec.agent


# --- the template --------------------------------------------------------------------------------------------------------


def _template(pool: Pool, namespace: str) -> Manifest:
    template = deepcopy(pool.spec.template or {})
    container = _container(template, pool.spec.agent.container)
    _fill_container(container, pool, namespace)
    spec = template["spec"]
    grace = pool.spec.agent.drain_seconds + GRACE_MARGIN
    given = spec.setdefault("terminationGracePeriodSeconds", grace)
    if isinstance(given, int) and given < pool.spec.agent.drain_seconds:
        raise InvalidPool(
            f"spec.template.spec.terminationGracePeriodSeconds: is {given}; it must be at least drainSeconds "
            f"({pool.spec.agent.drain_seconds}), or running tasks are killed. Leave it out for {grace}."
        )
    if "serviceAccount" not in spec:  # its deprecated twin would bring a name back that the template no longer says
        spec.setdefault("serviceAccountName", "default")
    if not spec.get("hostPID"):  # the API server refuses both
        # As process 1 of its container, an agent that is told to end before it listens for signals would never hear of it: it
        # would work on, and be killed in the middle of a task. Pods that are just starting are a scale-down's first victims.
        spec.setdefault("shareProcessNamespace", True)
    _fill(spec, "securityContext", {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})
    labels = (template.get("metadata") or {}).get("labels") or {}
    template["metadata"] = {**(template.get("metadata") or {}), "labels": {**labels, POOL_LABEL: pool.name}}
    return template


def _container(template: Manifest, name: str) -> Manifest:
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers if isinstance(containers, list) else ():
        if isinstance(container, dict) and container.get("name") == name:
            return container
    raise InvalidPool(f'spec.template.spec.containers: none is named "{name}", as spec.agent.container says.')


def _fill_container(container: Manifest, pool: Pool, namespace: str) -> None:
    handler = pool.spec.agent.handler
    if handler is not None and not container.get("command") and not container.get("args"):
        container["command"] = ["thunderagent", "agent", "run", handler]
    container["env"] = _environment(container.get("env"), pool, namespace)
    _fill_port(container)
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    _fill(container, "securityContext", security)


def _environment(given: Any, pool: Pool, namespace: str) -> Any:
    """The template's entries, after those that it does not have. What is no list is left for the API server to refuse."""
    if given is not None and not isinstance(given, list):
        return given
    own = [entry for entry in given or () if not (isinstance(entry, Mapping) and entry.get("name") in IDENTITY)]
    present = {entry.get("name") for entry in own if isinstance(entry, Mapping)}
    literal = {
        **settings_environment(pool, pool_identity(namespace, pool.name)),
        **{variable.name: variable.value for variable in pool.spec.agent.env if variable.name not in IDENTITY},
    }
    injected = [{"name": name, "value": value} for name, value in literal.items() if name not in present]
    return [*_pod_fields(), *injected, *own]


def _pod_fields() -> Iterable[Manifest]:
    for name, path in (("THUNDERAGENT_POD_NAME", "metadata.name"), ("THUNDERAGENT_POD_UID", "metadata.uid")):
        yield {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _fill_port(container: Manifest) -> None:
    """The port of /healthz and /metrics, and probes on it. None of them where the agent has no port."""
    port = _port(container["env"])
    if port is None:
        return
    ports = container.setdefault("ports", [])
    if isinstance(ports, list) and not _names_port(ports, port):
        ports.append({"name": "metrics", "containerPort": port, "protocol": "TCP"})
    container.setdefault("livenessProbe", {"httpGet": {"path": "/healthz", "port": port}, **LIVENESS})
    container.setdefault("readinessProbe", {"httpGet": {"path": "/readyz", "port": port}, **READINESS})


def _names_port(ports: Sequence[Any], port: int) -> bool:
    return any(
        isinstance(entry, Mapping) and (entry.get("containerPort") == port or entry.get("name") == "metrics") for entry in ports
    )


def _port(env: Any) -> int | None:
    for entry in env if isinstance(env, list) else ():
        if isinstance(entry, Mapping) and entry.get("name") == PORT_VARIABLE:
            text = str(entry.get("value", ""))
            return int(text) if text.isdecimal() and int(text) > 0 else None
    return DEFAULT_PORT


def _fill(holder: Manifest, key: str, defaults: Mapping[str, Any]) -> None:
    """Set what is absent of ``defaults``. What is there and no mapping is left for the API server to refuse."""
    present = holder.get(key)
    if present is None or isinstance(present, dict):
        holder[key] = {**defaults, **(present or {})}


def _owner_reference(metadata: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }
