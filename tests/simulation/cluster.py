"""The Kubernetes side of a history: the tests' small cluster, a way to its API server that fails, and nodes that run agents."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from controller.cluster import Object
from controller.election import Election
from controller.errors import ClusterUnavailable
from controller.names import pool_identity
from controller.status import Notice
from tests.controller.fakecluster import FakeCluster, Manifest
from tests.simulation.agents import Host, Setting
from tests.simulation.loop import Process
from tests.simulation.plan import Fault

T = TypeVar("T")

NAMESPACE, POOL = "team", "reports"

STEP = 2.0
"""Seconds between two turns of the cluster's own controllers and kubelets."""

SLOWEST_START = 90.0
"""Seconds that a pod takes at most to be scheduled and to start."""

API_TRIES_FAIL = 0.02
"""The share of calls to the API server whose reply is lost while faults last."""


class ApiServer:
    """One operator's way to the API server: a Cluster and the Leases of its election. Writes are fenced, as in production."""

    def __init__(self, setting: Setting, fake: FakeCluster, process: Process, api: Api) -> None:
        self.election: Election | None = None
        self._setting = setting
        self._fake = fake
        self._process = process
        self._api = api
        self._rng = setting.plan.rng(f"api {process.name}")
        self._outside = contextvars.Context()

    async def pools(self) -> list[Object]:
        return await self._call(self._fake.pools)

    async def pool(self, namespace: str, name: str) -> Object | None:
        return await self._call(lambda: self._fake.pool(namespace, name))

    async def deployment(self, namespace: str, name: str) -> Object | None:
        return await self._call(lambda: self._fake.deployment(namespace, name))

    async def replica_sets(self, namespace: str, selector: str) -> list[Object]:
        return await self._call(lambda: self._fake.replica_sets(namespace, selector))

    async def pods(self, namespace: str, selector: str) -> list[Object]:
        return await self._call(lambda: self._fake.pods(namespace, selector))

    async def apply_deployment(self, body: Object, *, manager: str, force: bool = False) -> Object:
        return await self._write(lambda: self._fake.apply_deployment(body, manager=manager, force=force))

    async def scale_deployment(self, namespace: str, name: str, replicas: int, version: str) -> None:
        async def scale() -> None:
            before = self._fake.replicas()
            await self._fake.scale_deployment(namespace, name, replicas, version)
            self._api.on_scale(self._process, before, replicas)

        await self._write(scale)

    async def annotate_pod(self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]) -> None:
        await self._write(lambda: self._fake.annotate_pod(namespace, name, uid, annotations))

    async def write_status(self, namespace: str, name: str, uid: str, status: Object) -> None:
        await self._write(lambda: self._fake.write_status(namespace, name, uid, status))

    async def emit(self, pool: Object, notice: Notice) -> None:
        await self._write(lambda: self._fake.emit(pool, notice))

    async def lease(self, namespace: str, name: str) -> Object | None:
        return await self._call(lambda: self._fake.lease(namespace, name))

    async def create_lease(self, body: Object) -> Object:
        return await self._call(lambda: self._fake.create_lease(body))

    async def replace_lease(self, body: Object) -> Object:
        return await self._call(lambda: self._fake.replace_lease(body))

    async def _write(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        assert self.election is not None
        self.election.check()

        async def fenced() -> T:
            self._api.on_write(self._process)
            return await act()

        return await self._call(fenced)

    async def _call(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Act on the cluster's side a moment later, and hear of it after another, unless the reply is lost."""
        loop = self._setting.loop
        reply: asyncio.Future[tuple[Any, Exception | None]] = loop.create_future()
        if self._api.is_away:
            loop.call_later(self._rng.choice([0.01, 3.0]), _settle, reply, None, _unavailable(), context=self._outside)
        elif not self._process.is_over:
            loop.call_later(self._rng.uniform(0.002, 0.3), self._act, act, reply, context=self._outside)
        value, error = await reply
        if error is not None:
            raise error
        return cast("T", value)

    def _act(self, act: Callable[[], Any], reply: asyncio.Future[tuple[Any, Exception | None]]) -> None:
        try:
            value, error = _finished(act()), None
        except Exception as raised:
            value, error = None, raised
        is_lost = Fault.API_OUTAGE in self._setting.plan.faults and not self._setting.weather.calm
        if is_lost and self._rng.random() < API_TRIES_FAIL:
            value, error = None, _unavailable()
        self._setting.loop.call_later(self._rng.uniform(0.002, 0.3), _settle, reply, value, error, context=self._outside)


class Api:
    """The API server as all see it. ``is_away``: it answers nobody. The hooks hear of each accepted write of an operator."""

    def __init__(self) -> None:
        self.is_away = False
        self.on_write: Callable[[Process], None] = lambda process: None
        self.on_scale: Callable[[Process, int, int], None] = lambda process, before, after: None


class Nodes:
    """Runs an agent in every pod that is ready, asks those of terminating pods to drain, and removes pods that have ended."""

    def __init__(self, setting: Setting, fake: FakeCluster, on_victims: Callable[[list[str]], None]) -> None:
        self.hosts: dict[str, Host] = {}
        self._setting = setting
        self._fake = fake
        self._on_victims = on_victims
        self._rng = setting.plan.rng("nodes")
        self._read = 0
        self._state: object = None
        self._held: dict[str, float] = {}
        self._asked: dict[str, float] = {}

    @property
    def up(self) -> list[Host]:
        """The agents that run."""
        return [host for host in self.hosts.values() if host.is_up]

    async def run(self) -> None:
        """For ever."""
        while True:
            if self._has_changed():
                self._settle()
            for pod in self._fake.all_pods():
                self._tend(pod)
            await asyncio.sleep(STEP)

    def evict(self, gone: bool) -> None:
        """Have a pod leave: asked to, as when its node is drained, or at once, as when its node is lost."""
        pods = [pod for pod in self._fake.all_pods() if "deletionTimestamp" not in pod["metadata"]]
        if not pods:
            return
        pod = self._rng.choice(pods)
        name = pod["metadata"]["name"]
        self._setting.note(name, "is lost with its node" if gone else "is evicted")
        if gone:
            if name in self.hosts:
                self.hosts[name].kill()
            self._end(pod)
        else:
            pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
            self._asked.setdefault(name, self._setting.loop.time())
            if name in self.hosts:
                self.hosts[name].stop()

    def _has_changed(self) -> bool:
        """Whether the cluster's controllers may have something to do: a write to it, or news of a pod. They cost much."""
        state = [(pod["metadata"]["name"], pod["status"]["phase"], len(pod["metadata"])) for pod in self._fake.all_pods()]
        writes = sum(method in _MOVES for method, _ in self._fake.writes[self._read :])
        self._read = len(self._fake.writes)
        if not writes and state == self._state:
            return False
        self._state = state
        return True

    def _settle(self) -> None:
        before = {pod["metadata"]["name"] for pod in self._fake.all_pods() if "deletionTimestamp" in pod["metadata"]}
        self._fake.settle()
        leaving = [pod for pod in self._fake.all_pods() if "deletionTimestamp" in pod["metadata"]]
        self._on_victims([pod["metadata"]["uid"] for pod in leaving if pod["metadata"]["name"] not in before])

    def _tend(self, pod: Manifest) -> None:
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            self._let_go(pod, name)
        elif name not in self._held:
            self._place(pod, name)
        elif self._setting.loop.time() >= self._held[name]:
            self._start(pod, name)

    def _place(self, pod: Manifest, name: str) -> None:
        """A new pod: some take long to get a node. It has none until then, so nothing makes it ready."""
        is_slow = Fault.SLOW_PODS in self._setting.plan.faults and not self._setting.weather.calm
        self._held[name] = self._setting.loop.time() + (self._rng.uniform(0.0, SLOWEST_START) if is_slow else 0.0)
        pod["spec"].pop("nodeName", None)
        pod["status"] = {"phase": "Pending"}

    def _start(self, pod: Manifest, name: str) -> None:
        if "nodeName" not in pod["spec"]:
            pod["spec"]["nodeName"] = "node-1"
            self._state = None
        if name not in self.hosts:
            identity = f"{pool_identity(NAMESPACE, POOL)}/{name}/{pod['metadata']['uid']}"
            self.hosts[name] = Host(self._setting, name, identity)
        if not self.hosts[name].is_up:
            self.hosts[name].start()

    def _let_go(self, pod: Manifest, name: str) -> None:
        host = self.hosts.get(name)
        if host is None or not host.is_up:
            self._end(pod)
        elif name not in self._asked:
            self._asked[name] = self._setting.loop.time()
            host.stop()
        elif self._setting.loop.time() > self._asked[name] + self._setting.plan.settings.drain + 30.0:
            host.kill()

    def _end(self, pod: Manifest) -> None:
        name = pod["metadata"]["name"]
        self.hosts.pop(name, None)
        self._fake.end_pod(pod)
        self._state = None


_MOVES = frozenset({"apply_deployment", "scale_deployment", "annotate_pod"})
"""Writes that give the cluster's controllers something to do."""


def _finished(coroutine: Any) -> Any:
    """What a coroutine that waits for nothing returns."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the cluster in memory answers at once")


def _settle(reply: asyncio.Future[tuple[Any, Exception | None]], value: Any, error: Exception | None) -> None:
    if not reply.done():
        reply.set_result((value, error))


def _unavailable() -> Exception:
    return ClusterUnavailable("The API server did not answer.")


def spec(rng: random.Random, tasks_per_replica: int, drain: float) -> Manifest:
    """A pool that follows its backlog closely."""
    return {
        "queue": {"table": "TaskTable"},
        "scaling": {
            "tasksPerReplica": tasks_per_replica,
            "maxReplicas": rng.choice([2, 3, 4]),
            "pollSeconds": rng.choice([3, 5]),
            "cooldownSeconds": rng.choice([0, 0, 20]),
            "scaleDown": {"stabilizationWindowSeconds": rng.choice([0, 0, 15])},
        },
        "agent": {"handler": "myapp.tasks:handle", "drainSeconds": int(drain)},
        "template": {"spec": {"containers": [{"name": "agent", "image": "myapp:1"}]}},
    }
