"""The API server, asked through the official client's connection, with plain JSON.

The client's typed classes are left out: importing those of the groups used here takes 70 MB, as much as everything else.
Its calls block, so they run in a bounded pool of threads; each has a time-out.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from urllib3.exceptions import HTTPError

from controller.cluster import WRITE_TIMEOUT, Object
from controller.errors import (
    ClusterError,
    ClusterUnavailable,
    NotPermitted,
    ObjectChanged,
    ObjectMissing,
    Refused,
)
from controller.events import EventMemory, Written, new_event, once_more
from controller.names import FIELD_MANAGER, GROUP, PLURAL, VERSION
from controller.status import Notice

T = TypeVar("T")
Query = Sequence[tuple[str, str]]
Body = Object | Sequence[Object] | None

READ_TIMEOUT = 10.0
"""Seconds."""

PAGE = 500
"""Objects of one page of a list."""

POOLS = f"/apis/{GROUP}/{VERSION}"
_JSON = "application/json"
_MERGE = "application/merge-patch+json"
_PATCH = "application/json-patch+json"
_APPLY = "application/apply-patch+yaml"

_ANOTHER_OBJECT = ("metadata.uid: Invalid value", "the server rejected our request due to an error in our request")
"""Words of a 422 that say: the object of this name is another than the one that was meant. The second is all that the API
server says of a JSON patch whose test has failed."""


def connect(connections: int) -> ApiClient:
    """A client by the pod's service account, or else by the kubeconfig. Raises ClusterError where there is neither."""
    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except ConfigException:
        try:
            load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except ConfigException as error:
            raise ClusterError(f"Neither a service account nor a kubeconfig says where Kubernetes is: {error}") from None
    configuration.connection_pool_maxsize = connections
    configuration.retries = 0  # a cycle is the retry; a hidden one would outlive its time-out
    return ApiClient(configuration)


class Api:
    """One call at a time, blocking: the request sent, the reply as a mapping, what went wrong as a ClusterError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def call(
        self, method: str, path: str, *, query: Query = (), body: Body = None, kind: str = _JSON, timeout: float
    ) -> dict[str, Any]:
        """Send a request; ``kind`` is the content type of the body."""
        headers = {"Accept": _JSON, "Content-Type": kind} if body is not None else {"Accept": _JSON}
        try:
            request = self._client.param_serialize(
                method, path, query_params=list(query), header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            response = self._client.call_api(*request, _request_timeout=timeout)
            content = response.read()  # type: ignore[no-untyped-call]
        except (ApiException, HTTPError, OSError, ConfigException) as error:
            raise ClusterUnavailable(f"The API server did not answer {method} {path}: {_first_line(error)}") from error
        if 200 <= response.status < 300:
            return _decoded(content, method, path)
        raise refusal(response.status, content, f"{method} {path}")

    def all(self, path: str, query: Query = ()) -> list[Object]:
        """Every object of a list, page by page."""
        items: list[Object] = []
        more = ""
        while True:
            pages = [("limit", str(PAGE)), *([("continue", more)] if more else [])]
            reply = self.call("GET", path, query=[*query, *pages], timeout=READ_TIMEOUT)
            items += reply.get("items") or []
            more = reply.get("metadata", {}).get("continue") or ""
            if not more:
                return items


class KubernetesCluster:
    """The cluster behind an API server.

    ``fence`` is called in the thread that writes, right before it does; it raises NotLeading to stop the write. ``wall`` is in
    epoch seconds, for the times of events.
    """

    def __init__(
        self,
        api: Api,
        threads: Executor,
        namespaces: Sequence[str],
        fence: Callable[[], None],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._threads = threads
        self._namespaces = namespaces
        self._fence = fence
        self._wall = wall
        self._events = EventMemory()

    async def pools(self) -> list[Object]:
        paths = [f"{POOLS}/namespaces/{namespace}/{PLURAL}" for namespace in self._namespaces] or [f"{POOLS}/{PLURAL}"]
        return [pool for path in paths for pool in await self._run(self._api.all, path)]

    async def pool(self, namespace: str, name: str) -> Object | None:
        path = f"{POOLS}/namespaces/{namespace}/{PLURAL}/{name}"
        return await self._run(_or_none, partial(self._api.call, "GET", path, timeout=READ_TIMEOUT))

    async def deployment(self, namespace: str, name: str) -> Object | None:
        return await self._run(_or_none, partial(self._api.call, "GET", _deployment(namespace, name), timeout=READ_TIMEOUT))

    async def replica_sets(self, namespace: str, selector: str) -> list[Object]:
        path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
        return await self._run(self._api.all, path, [("labelSelector", selector)])

    async def pods(self, namespace: str, selector: str) -> list[Object]:
        return await self._run(self._api.all, f"/api/v1/namespaces/{namespace}/pods", [("labelSelector", selector)])

    async def apply_deployment(self, body: Object, *, manager: str, force: bool = False) -> Object:
        metadata = body["metadata"]
        query = [("fieldManager", manager), ("force", "true" if force else "false")]
        path = _deployment(metadata["namespace"], metadata["name"])
        return await self._write("PATCH", path, query=query, body=body, kind=_APPLY)

    async def scale_deployment(self, namespace: str, name: str, replicas: int, version: str) -> None:
        scale = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": version},
            "spec": {"replicas": replicas},
        }
        query = [("fieldManager", FIELD_MANAGER)]
        await self._write("PUT", f"{_deployment(namespace, name)}/scale", query=query, body=scale)

    async def annotate_pod(self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]) -> None:
        patch = {"metadata": {"uid": uid, "annotations": dict(annotations)}}
        query = [("fieldManager", FIELD_MANAGER)]
        await self._write("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}", query=query, body=patch, kind=_MERGE)

    async def write_status(self, namespace: str, name: str, uid: str, status: Object) -> None:
        path = f"{POOLS}/namespaces/{namespace}/{PLURAL}/{name}/status"
        # A uid in a merge patch is not looked at here: on /status the API server drops metadata, and with it the condition.
        same_pool: Object = {"op": "test", "path": "/metadata/uid", "value": uid}
        body: Body = [same_pool, {"op": "add", "path": "/status", "value": status}]
        await self._write("PATCH", path, query=[("fieldManager", FIELD_MANAGER)], body=body, kind=_PATCH)

    async def emit(self, pool: Object, notice: Notice) -> None:
        path = f"/api/v1/namespaces/{pool['metadata']['namespace']}/events"
        written = self._events.of(pool, notice)
        if written is not None and await self._happened_again(path, written):
            written = Written(written.name, written.count + 1)
        else:
            made = await self._write("POST", path, body=new_event(pool, notice, self._wall()))
            written = Written(str(made.get("metadata", {}).get("name", "")), 1)
        self._events.note(pool, notice, written)

    async def _happened_again(self, path: str, written: Written) -> bool:
        """Count an event up. False where its object is gone, or a role of somebody's own does not allow it."""
        try:
            patch = once_more(written, self._wall())
            await self._write("PATCH", f"{path}/{written.name}", body=patch, kind=_MERGE)
        except (ObjectMissing, NotPermitted):
            return False
        return True

    async def _write(
        self, method: str, path: str, *, query: Query = (), body: Body = None, kind: str = _JSON
    ) -> dict[str, Any]:
        call = partial(self._api.call, method, path, query=query, body=body, kind=kind, timeout=WRITE_TIMEOUT)
        return await self._run(self._fenced, call)

    def _fenced(self, call: Callable[[], T]) -> T:
        self._fence()
        return call()

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


class KubernetesLeases:
    """Leases behind an API server. ``threads`` of its own, so that no other call can keep a renewal waiting."""

    def __init__(self, api: Api, threads: Executor) -> None:
        self._api = api
        self._threads = threads

    async def lease(self, namespace: str, name: str) -> Object | None:
        return await self._run(_or_none, partial(self._api.call, "GET", f"{_leases(namespace)}/{name}", timeout=WRITE_TIMEOUT))

    async def create_lease(self, body: Object) -> Object:
        path = _leases(body["metadata"]["namespace"])
        return await self._run(partial(self._api.call, "POST", path, body=body, timeout=WRITE_TIMEOUT))

    async def replace_lease(self, body: Object) -> Object:
        metadata = body["metadata"]
        path = f"{_leases(metadata['namespace'])}/{metadata['name']}"
        return await self._run(partial(self._api.call, "PUT", path, body=body, timeout=WRITE_TIMEOUT))

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


def refusal(status: int, content: bytes | None, request: str) -> ClusterError:
    """The error for a reply that is none of success."""
    words = _words(content)
    told = f"{request}: {words or f'HTTP {status}'}"
    if status == 404:
        return ObjectMissing(told, status)
    if status == 409 or (status == 422 and any(sign in words for sign in _ANOTHER_OBJECT)):
        return ObjectChanged(told, status)
    if status == 403 and 'User "' in words and " cannot " in words:
        return NotPermitted(told, status)
    # A template that is no template, such as one with an env name twice, fails to be typed: that is a 500.
    if status in {400, 403, 413, 422} or (status == 500 and "typed patch" in words):
        return Refused(words or told, status)
    return ClusterUnavailable(told, status)


def _or_none(call: Callable[[], T]) -> T | None:
    try:
        return call()
    except ObjectMissing:
        return None


def _deployment(namespace: str, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def _leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def _decoded(content: bytes | None, method: str, path: str) -> dict[str, Any]:
    try:
        reply = json.loads(content or b"")
    except ValueError as error:
        raise ClusterUnavailable(f"The reply to {method} {path} is no JSON: {error}") from error
    if not isinstance(reply, dict):
        raise ClusterUnavailable(f"The reply to {method} {path} is no object.")
    return reply


def _words(content: bytes | None) -> str:
    try:
        reply = json.loads(content or b"")
    except ValueError:
        return (content or b"").decode(errors="replace")[:200]
    return str(reply.get("message", "")) if isinstance(reply, dict) else ""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
