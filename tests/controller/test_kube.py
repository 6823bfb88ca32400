"""The requests that go to an API server, and what its replies are taken for. The server is a small one on this machine."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from kubernetes.client import ApiClient, Configuration

from controller.errors import (
    ClusterError,
    ClusterUnavailable,
    NotLeading,
    NotPermitted,
    ObjectChanged,
    ObjectMissing,
    Refused,
)
from controller.events import EventMemory, Written
from controller.kube import Api, KubernetesCluster, KubernetesLeases, refusal
from controller.names import BIRTH_MANAGER
from controller.status import Notice

Reply = tuple[int, Any]


@dataclass
class Asked:
    """One request as the server got it."""

    method: str
    path: str
    query: dict[str, str]
    kind: str | None
    body: Any
    token: str | None


@dataclass
class Server:
    """Answers with what ``answer`` says, and remembers what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answer: Callable[[Asked], Reply] = lambda asked: (200, {})


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            split = urlsplit(self.path)
            asked = Asked(
                self.command,
                split.path,
                dict(parse_qsl(split.query)),
                self.headers.get("Content-Type"),
                json.loads(raw) if raw else None,
                self.headers.get("Authorization"),
            )
            served.asked.append(asked)
            status, body = served.answer(asked)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = handle_any

        def log_message(self, format: str, *args: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{httpd.server_port}"
    yield served
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def api(server: Server) -> Api:
    configuration = Configuration()
    configuration.host = server.url
    configuration.api_key["BearerToken"] = "bearer secret"
    configuration.retries = 0
    return Api(ApiClient(configuration))


def no_fence() -> None:
    """Nothing stops a write."""


@pytest.fixture
def cluster(server: Server) -> Iterator[KubernetesCluster]:
    with ThreadPoolExecutor(2) as threads:
        yield KubernetesCluster(api(server), threads, (), no_fence)


METADATA = {"name": "reports", "namespace": "team", "uid": "u1"}
DEPLOYMENT = "/apis/apps/v1/namespaces/team/deployments/reports"


def only(server: Server) -> Asked:
    (asked,) = server.asked
    assert asked.token == "bearer secret"
    return asked


def test_apply_is_server_side_and_of_one_manager(server: Server, cluster: KubernetesCluster) -> None:
    asyncio.run(cluster.apply_deployment({"metadata": METADATA}, manager=BIRTH_MANAGER))
    asked = only(server)
    assert (asked.method, asked.path, asked.kind) == ("PATCH", DEPLOYMENT, "application/apply-patch+yaml")
    assert asked.query == {"fieldManager": "thunderagent-operator-birth", "force": "false"}
    assert asked.body == {"metadata": METADATA}


def test_scaling_is_by_the_subresource_and_says_which_version(server: Server, cluster: KubernetesCluster) -> None:
    asyncio.run(cluster.scale_deployment("team", "reports", 0, "77"))
    asked = only(server)
    assert (asked.method, asked.path, asked.query) == ("PUT", f"{DEPLOYMENT}/scale", {"fieldManager": "thunderagent-operator"})
    assert asked.body["metadata"]["resourceVersion"] == "77"
    assert asked.body["spec"] == {"replicas": 0}


def test_annotations_are_of_the_pod_with_the_uid(server: Server, cluster: KubernetesCluster) -> None:
    asyncio.run(cluster.annotate_pod("team", "reports-1", "u2", {"a": "1", "b": None}))
    asked = only(server)
    assert (asked.path, asked.kind) == ("/api/v1/namespaces/team/pods/reports-1", "application/merge-patch+json")
    assert asked.body == {"metadata": {"uid": "u2", "annotations": {"a": "1", "b": None}}}


def test_status_goes_to_the_subresource(server: Server, cluster: KubernetesCluster) -> None:
    asyncio.run(cluster.write_status("team", "reports", "u1", {"backlog": 3}))
    asked = only(server)
    assert asked.path == "/apis/thunderagent.dev/v1alpha1/namespaces/team/thunderagentpools/reports/status"
    assert asked.kind == "application/json-patch+json"
    assert asked.body == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "add", "path": "/status", "value": {"backlog": 3}},
    ]


def test_an_event_is_about_the_pool(server: Server, cluster: KubernetesCluster) -> None:
    asyncio.run(cluster.emit({"metadata": METADATA}, Notice("Warning", "TableMissing", "No table.")))
    asked = only(server)
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/team/events")
    assert asked.body["involvedObject"]["uid"] == "u1"
    assert (asked.body["type"], asked.body["reason"], asked.body["message"]) == ("Warning", "TableMissing", "No table.")


NOTICE = Notice("Warning", "TableMissing", "No table.")


def told(server: Server, *notices: Notice, refuses: int = 0, uids: tuple[str, ...] = ("u1",)) -> list[tuple[str, str, int]]:
    """What the requests say after these events of pools: method, the last part of the path, and the count.

    ``refuses``: the status with which every change of an event is answered.
    """
    made = iter(range(1, 10_000))

    def answer(asked: Asked) -> Reply:
        if asked.method == "POST":
            return 201, {"metadata": {"name": f"reports.{next(made)}"}}
        words = 'events "x" is forbidden: User "operator" cannot patch' if refuses == 403 else "not found"
        return (refuses, {"message": words}) if refuses else (200, {})

    server.answer = answer
    now = iter(range(0, 600_000, 60))
    with ThreadPoolExecutor(1) as threads:
        cluster = KubernetesCluster(api(server), threads, (), no_fence, wall=lambda: next(now))
        for number, notice in enumerate(notices):
            pool = {"metadata": {**METADATA, "uid": uids[number % len(uids)]}}
            asyncio.run(cluster.emit(pool, notice))
    return [(asked.method, asked.path.rpartition("/")[2], asked.body["count"]) for asked in server.asked]


def test_an_event_that_happens_again_is_counted_up_in_its_object(server: Server) -> None:
    assert told(server, NOTICE, NOTICE, NOTICE) == [("POST", "events", 1), ("PATCH", "reports.1", 2), ("PATCH", "reports.1", 3)]
    first, _, last = server.asked
    assert (first.body["firstTimestamp"], first.body["lastTimestamp"]) == ("1970-01-01T00:00:00Z",) * 2
    assert last.kind == "application/merge-patch+json"
    assert last.body == {"count": 3, "lastTimestamp": "1970-01-01T00:02:00Z"}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Notice("Normal", "TableMissing", "No table."), id="another type"),
        pytest.param(Notice("Warning", "TableThrottled", "No table."), id="another reason"),
        pytest.param(Notice("Warning", "TableMissing", "No table x."), id="another message"),
    ],
)
def test_another_event_has_an_object_of_its_own(server: Server, other: Notice) -> None:
    counted = told(server, NOTICE, other, NOTICE, other)
    assert counted[2:] == [("PATCH", "reports.1", 2), ("PATCH", "reports.2", 2)]


def test_the_same_event_of_a_pool_that_was_made_again_is_another_one(server: Server) -> None:
    assert [method for method, *_ in told(server, NOTICE, NOTICE, uids=("u1", "u2"))] == ["POST", "POST"]


@pytest.mark.parametrize(
    "refuses", [pytest.param(404, id="its hour is over"), pytest.param(403, id="a role allows no changes")]
)
def test_an_event_whose_object_cannot_be_counted_up_begins_anew(server: Server, refuses: int) -> None:
    assert told(server, NOTICE, NOTICE, NOTICE, refuses=refuses) == [
        ("POST", "events", 1),
        ("PATCH", "reports.1", 2),
        ("POST", "events", 1),
        ("PATCH", "reports.2", 2),
        ("POST", "events", 1),
    ]


def test_events_are_remembered_up_to_a_number_and_the_oldest_are_forgotten() -> None:
    memory = EventMemory(kept=2)
    pool = {"metadata": METADATA}
    notices = [Notice("Normal", "Scaled", f"to {number}") for number in range(3)]
    memory.note(pool, notices[0], Written("a", 1))
    memory.note(pool, notices[1], Written("b", 1))
    memory.note(pool, notices[0], Written("a", 2))
    memory.note(pool, notices[2], Written("c", 1))
    assert [memory.of(pool, notice) for notice in notices] == [Written("a", 2), None, Written("c", 1)]


def test_a_list_is_read_page_by_page(server: Server, cluster: KubernetesCluster) -> None:
    pages = {None: (["a", "b"], "more"), "more": (["c"], "")}

    def answer(asked: Asked) -> Reply:
        items, more = pages[asked.query.get("continue")]
        return 200, {"items": [{"name": name} for name in items], "metadata": {"continue": more}}

    server.answer = answer
    names = [pod["name"] for pod in asyncio.run(cluster.pods("team", "app in (x,y),!z"))]
    assert names == ["a", "b", "c"]
    assert [asked.query["labelSelector"] for asked in server.asked] == ["app in (x,y),!z"] * 2


def test_pools_are_listed_in_the_whole_cluster_or_in_each_namespace(server: Server, cluster: KubernetesCluster) -> None:
    asyncio.run(cluster.pools())
    with ThreadPoolExecutor(1) as threads:
        asyncio.run(KubernetesCluster(api(server), threads, ("a", "b"), no_fence).pools())
    group = "/apis/thunderagent.dev/v1alpha1"
    places = ["", "/namespaces/a", "/namespaces/b"]
    assert [asked.path for asked in server.asked] == [f"{group}{place}/thunderagentpools" for place in places]


def test_what_is_not_there_is_none(server: Server, cluster: KubernetesCluster) -> None:
    server.answer = lambda asked: (404, {"message": "not found"})
    assert asyncio.run(cluster.deployment("team", "reports")) is None


def test_no_write_leaves_a_replica_that_does_not_lead(server: Server) -> None:
    def fence() -> None:
        raise NotLeading("another one leads")

    with ThreadPoolExecutor(1) as threads:
        cluster = KubernetesCluster(api(server), threads, (), fence)
        for write in (
            cluster.scale_deployment("team", "reports", 1, "1"),
            cluster.apply_deployment({"metadata": METADATA}, manager="m"),
            cluster.annotate_pod("team", "p", "u", {}),
            cluster.write_status("team", "reports", "u1", {}),
            cluster.emit({"metadata": METADATA}, Notice("Normal", "R", "m")),
        ):
            with pytest.raises(NotLeading):
                asyncio.run(write)
        asyncio.run(cluster.pools())
    assert [asked.method for asked in server.asked] == ["GET"]


def test_leases(server: Server) -> None:
    body = {"metadata": {"namespace": "ops", "name": "operator", "resourceVersion": "3"}, "spec": {}}
    with ThreadPoolExecutor(1) as threads:
        leases = KubernetesLeases(api(server), threads)
        asyncio.run(leases.lease("ops", "operator"))
        asyncio.run(leases.create_lease(body))
        asyncio.run(leases.replace_lease(body))
    path = "/apis/coordination.k8s.io/v1/namespaces/ops/leases"
    assert [(asked.method, asked.path) for asked in server.asked] == [
        ("GET", f"{path}/operator"),
        ("POST", path),
        ("PUT", f"{path}/operator"),
    ]


BROKEN = [
    pytest.param(lambda asked: (200, b"<html>a proxy's page</html>"), id="a page instead of JSON"),
    pytest.param(lambda asked: (200, b"[1]"), id="JSON that is no object"),
    pytest.param(lambda asked: (503, b"overloaded"), id="a server error that is no JSON"),
    pytest.param(lambda asked: (401, {"message": "Unauthorized"}), id="a token that has just expired"),
    pytest.param(lambda asked: (410, {"message": "continue token expired"}), id="a list that has expired"),
    pytest.param(lambda asked: (429, {"message": "too many requests"}), id="too many requests"),
]


@pytest.mark.parametrize("answer", BROKEN)
def test_a_broken_answer_is_asked_for_again_later(answer: Any, server: Server, cluster: KubernetesCluster) -> None:
    server.answer = answer
    with pytest.raises(ClusterUnavailable):
        asyncio.run(cluster.deployment("team", "reports"))


def test_a_server_that_is_not_there(server: Server) -> None:
    configuration = Configuration()
    configuration.host = "http://127.0.0.1:1"
    configuration.retries = 0
    with ThreadPoolExecutor(1) as threads, pytest.raises(ClusterUnavailable, match="did not answer GET"):
        asyncio.run(KubernetesCluster(Api(ApiClient(configuration)), threads, (), no_fence).pools())


RBAC = 'deployments.apps is forbidden: User "system:serviceaccount:ops:operator" cannot patch resource "deployments"'
REFUSALS = [
    pytest.param(404, "not found", ObjectMissing, id="gone"),
    pytest.param(409, "the object has been modified", ObjectChanged, id="changed since"),
    pytest.param(403, RBAC, NotPermitted, id="RBAC"),
    pytest.param(403, 'pods "x" is forbidden: exceeded quota: team', Refused, id="quota"),
    pytest.param(403, 'admission webhook "w" denied the request: no', Refused, id="a webhook"),
    pytest.param(422, "spec.template: Invalid value", Refused, id="invalid"),
    pytest.param(400, "unknown field", Refused, id="malformed"),
    pytest.param(500, "failed to create typed patch object: duplicate entries", Refused, id="an env name twice"),
    pytest.param(500, 'failed calling webhook "w": connection refused', ClusterUnavailable, id="a webhook that is away"),
    pytest.param(503, "", ClusterUnavailable, id="no words"),
]


@pytest.mark.parametrize(("status", "words", "kind"), REFUSALS)
def test_refusals(status: int, words: str, kind: type[ClusterError]) -> None:
    error = refusal(status, json.dumps({"message": words}).encode(), "PATCH /x")
    assert type(error) is kind
    assert words in str(error)
