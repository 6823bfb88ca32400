"""A table, a cluster and the operator's cycles, all on one clock that a test moves."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from controller.allowed import DEFAULT, Allowance
from controller.cycle import PoolCycle, Report, Surroundings
from controller.deployments import Deployments
from controller.names import pool_identity
from controller.reading import Readings
from tests.builders import NOW, foreign_record
from tests.controller.fakecluster import FakeCluster, Manifest
from tests.unreliable import UnreliableStore
from thunderagent.settings import TableSettings
from thunderagent.store import Cursor, Page, Store
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status
from thunderagent.testing.harness import Clock

T = TypeVar("T")

LEASE = 300


class Table(UnreliableStore):
    """A task table that a test can take away: ``error`` is raised by every read while it is set."""

    error: Exception | None = None

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        return super().page(status, limit=limit, cursor=cursor, newest_first=newest_first)


def spec(**scaling: Any) -> Manifest:
    """A pool's spec with a template; ``scaling`` in the names of the resource."""
    return {
        "queue": {"table": "TaskTable"},
        "scaling": {"tasksPerReplica": 1, "maxReplicas": 10, "cooldownSeconds": 0, "scaleDown": _AT_ONCE, **scaling},
        "agent": {"handler": "myapp.tasks:handle"},
        "template": {"spec": {"containers": [{"name": "agent", "image": "myapp:1"}]}},
    }


_AT_ONCE = {"stabilizationWindowSeconds": 0}


class World:
    """One table, ``store``, for all pools but those whose endpoint says otherwise, and one cluster."""

    def __init__(self, allowed: Sequence[Allowance] = DEFAULT) -> None:
        self.clock = Clock(NOW)
        self.memory = MemoryStore(self.clock.now)
        self.table = Table(self.memory)
        self.opened: list[TableSettings] = []
        self.cluster = FakeCluster(self.clock.now)
        self.readings = Readings(self._open, _inline, self.clock.since_start, random.Random(0))
        self.around = Surroundings(
            cluster=self.cluster,
            readings=self.readings,
            deployments=Deployments(self.cluster, "1.0"),
            allowed=allowed,
            now=self.clock.since_start,
            wall=self.clock.now,
        )
        self._numbers = itertools.count()
        self._cycles: dict[str, PoolCycle] = {}

    def _open(self, settings: TableSettings) -> Store:
        self.opened.append(settings)
        return self.table

    # --- tasks ----------------------------------------------------------------------------------------------------------

    def enqueue(self, count: int = 1, **attributes: Any) -> None:
        """Ready tasks."""
        for _ in range(count):
            self._put(createdAt=int(self.clock.now()) - 1, **attributes)

    def start(self, pod: Manifest, count: int = 1, identity: str | None = None, **attributes: Any) -> list[str]:
        """Tasks that the pod's agent runs; their ids."""
        metadata = pod["metadata"]
        identity = identity or pool_identity(metadata["namespace"], metadata["name"].split("-")[0])
        return self.start_as(f"{identity}/{metadata['name']}/{metadata['uid']}-k3f9", count, **attributes)

    def start_as(self, owner: str, count: int = 1, **attributes: Any) -> list[str]:
        """Tasks that somebody runs."""
        lease = int(self.clock.now()) + LEASE
        return [self._put(status="RUNNING", lockOwner=owner, lockTime=lease, **attributes) for _ in range(count)]

    def end(self, *task_ids: str) -> None:
        """The tasks have ended."""
        for task_id in task_ids:
            self._put(task_id, status="SUCCESS")

    def end_all(self) -> None:
        for task_id in self.memory.records():
            self.end(task_id)

    def _put(self, task_id: str = "", **attributes: Any) -> str:
        task_id = task_id or f"task-{next(self._numbers)}"
        self.memory.put_record(foreign_record(task_id, **attributes))
        return task_id

    # --- cycles ---------------------------------------------------------------------------------------------------------

    def cycle(self, name: str = "reports", namespace: str = "team") -> Report:
        """One cycle of a pool; then the cluster's controllers do their part and a poll passes."""
        resource = self.cluster.pool_object(name, namespace)
        report = run(self.cycle_of(resource["metadata"]["uid"]).run(resource))
        self.cluster.settle()
        self.clock.advance(report.pause)
        return report

    def cycles(self, count: int, name: str = "reports", namespace: str = "team") -> Report:
        return [self.cycle(name, namespace) for _ in range(count)][-1]

    def cycle_of(self, uid: str) -> PoolCycle:
        if uid not in self._cycles:
            self._cycles[uid] = PoolCycle(uid, self.around)
        return self._cycles[uid]

    def restart(self) -> None:
        """The operator's process is replaced: nothing that it remembered is left."""
        self._cycles.clear()

    def grown(self, replicas: int, **scaling: Any) -> list[Manifest]:
        """A pool with so many ready pods, and no task left; the pods."""
        self.cluster.create_pool(spec(**scaling))
        self.enqueue(replicas)
        self.cycles(2)
        self.end_all()
        pods = self.cluster.pod_objects()
        assert len(pods) == replicas
        return pods

    # --- what a person sees ---------------------------------------------------------------------------------------------

    def status(self, name: str = "reports", namespace: str = "team") -> Mapping[str, Any]:
        status: Mapping[str, Any] = self.cluster.pool_object(name, namespace).get("status", {})
        return status

    def condition(self, kind: str, name: str = "reports", namespace: str = "team") -> Mapping[str, Any]:
        conditions = self.status(name, namespace)["conditions"]
        found: Mapping[str, Any] = next(each for each in conditions if each["type"] == kind)
        return found

    def ready(self, name: str = "reports", namespace: str = "team") -> tuple[str, str]:
        """Status and reason of the condition Ready."""
        condition = self.condition("Ready", name, namespace)
        return condition["status"], condition["reason"]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return asyncio.run(work)


async def _inline(function: Callable[[], Any]) -> Any:
    return function()
