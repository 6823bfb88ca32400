"""What one test has: a namespace, a table, a history, pools to declare; and waiting that, in vain, tells what it saw."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.errors import CommandFailed
from tests.cluster.kubectl import Kubectl
from tests.cluster.objects import deployment, pod_spec
from tests.e2e.ground import AWS, Ground, Table, variables
from tests.e2e.history import History
from tests.e2e.release import Release
from tests.e2e.replicas import Replicas, watched

LOOK = 0.5
"""Seconds between two looks at the cluster while something is waited for."""

POOL = "thunderagentpool"

Merge = Mapping[str, Any]


@dataclass
class Stage:
    """``kubectl`` is the administrator's, in the test's own namespace of the restricted Pod Security level."""

    kubectl: Kubectl
    ground: Ground
    operator: Release
    pools: list[str] = field(default_factory=list)

    @property
    def table(self) -> Table:
        """The test's table."""
        return Table(self.ground, self.kubectl.namespace)

    @property
    def history(self) -> History:
        """What the handlers of the test's agents have written so far."""
        return self.ground.history(self.kubectl.namespace)

    # --- to do ----------------------------------------------------------------------------------------------------------

    def declare(self, name: str = "work", *, scaling: Merge | None = None, agent: Merge | None = None, **spec: Any) -> None:
        """Declare a pool, or change it: quick to poll and to shrink, with a lease of 20 s, unless told otherwise."""
        self.pools += [name] if name not in self.pools else []
        self.kubectl.apply(self.manifest(name, scaling=scaling, agent=agent, **spec))

    def manifest(
        self, name: str = "work", *, scaling: Merge | None = None, agent: Merge | None = None, **spec: Any
    ) -> dict[str, Any]:
        """The pool that `declare` declares. ``spec`` replaces fields; None leaves one out."""
        quick = {
            "pollSeconds": 1,
            "cooldownSeconds": 5,
            "tasksPerReplica": 1,
            "scaleDown": {"stabilizationWindowSeconds": 3},
        }
        short = {"handler": "work:handle", "leaseSeconds": 20, "renewSeconds": 5, "drainSeconds": 120}
        whole = {
            "queue": self.queue(),
            "scaling": {**quick, **(scaling or {})},
            "agent": {**short, **(agent or {})},
            "template": self.template(),
            **spec,
        }
        return {
            "apiVersion": "thunderagent.dev/v1alpha1",
            "kind": "ThunderAgentPool",
            "metadata": {"name": name},
            "spec": {key: value for key, value in whole.items() if value is not None},
        }

    def queue(self, *task_types: str) -> dict[str, Any]:
        """The test's table, and tasks of these types alone, if any are named."""
        where = {"table": self.table.name, "endpoint": self.ground.endpoint, "region": AWS["AWS_REGION"]}
        return {**where, "taskTypes": list(task_types)}

    def template(self, **environment: str) -> dict[str, Any]:
        """Pods with the tests' handler, and so many more variables."""
        history = self.ground.record(self.kubectl.namespace)
        env = variables({**AWS, "HISTORY": history, **environment})
        spec = pod_spec(self.ground.images.app, name="agent", env=env)
        del spec["terminationGracePeriodSeconds"]  # the operator's own
        return {"spec": spec}

    def deployment(self, name: str, replicas: int, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A Deployment that no pool has made."""
        return deployment(name, replicas, spec)

    def annotate(self, name: str, **annotations: str | None) -> None:
        """Put annotations of ours on a pool, by the end of their names; None takes one off."""
        words = [
            f"thunderagent.dev/{key.replace('_', '-')}" + ("-" if value is None else f"={value}")
            for key, value in annotations.items()
        ]
        self.kubectl("annotate", "--overwrite", POOL, name, *words)

    def enqueue(self, tasks: Iterable[Mapping[str, Any]]) -> list[str]:
        """Enqueue tasks by the command line, and return their taskIds."""
        return self.table.enqueue(tasks)

    def watched(self, name: str = "work") -> AbstractContextManager[Replicas]:
        """Watch the replicas of a pool's Deployment."""
        return watched(self.kubectl, name)

    # --- to see ---------------------------------------------------------------------------------------------------------

    def replicas(self, name: str = "work") -> int:
        """The replicas that a pool's Deployment is asked for; -1: there is none yet."""
        found = self.kubectl("get", "deployment", name, "--ignore-not-found", "--output=jsonpath={.spec.replicas}")
        return int(found or -1)

    def pods(self, name: str = "work") -> list[dict[str, Any]]:
        """The pods of a pool, those that are on their way out, too."""
        pods: list[dict[str, Any]] = self.kubectl.get("pods", f"--selector=thunderagent.dev/pool={name}")["items"]
        return pods

    def status(self, name: str = "work") -> dict[str, Any]:
        """A pool's status; empty while it has none."""
        status: dict[str, Any] = self.kubectl.get(POOL, name).get("status", {})
        return status

    def condition(self, kind: str, name: str = "work") -> tuple[str, str, str]:
        """Status, reason and message of a pool's condition; empty while it has none."""
        conditions = self.status(name).get("conditions", ())
        found: Mapping[str, str] = next((each for each in conditions if each["type"] == kind), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    # --- to wait for ----------------------------------------------------------------------------------------------------

    def until(self, what: str, limit: float, holds: Callable[[], object]) -> float:
        """Wait until something holds, and return how many seconds that took. Raises AssertionError, with what the cluster
        looks like, when it does not within ``limit`` seconds."""
        began = time.monotonic()
        while not _attempt(holds):
            if time.monotonic() - began > limit:
                raise AssertionError(f"Waited {limit:g} s in vain for: {what}.\n{self.account()}")
            time.sleep(LOOK)
        return time.monotonic() - began

    def until_replicas(self, replicas: int, limit: float, name: str = "work") -> float:
        """Wait until a pool's Deployment is asked for so many."""
        return self.until(f"{replicas} replicas of {name}", limit, lambda: self.replicas(name) == replicas)

    def until_pods(self, count: int, limit: float, name: str = "work") -> float:
        """Wait until there are so many pods of a pool and all of them are ready."""
        return self.until(
            f"{count} ready pods of {name}", limit, lambda: [_is_ready(pod) for pod in self.pods(name)] == [True] * count
        )

    def until_seen(self, name: str = "work") -> float:
        """Wait until an operator has ended a cycle of the pool that began after this call."""
        tolerance = self.kubectl.get(POOL, name)["spec"]["scaling"]["tolerancePercent"]
        change = {"spec": {"scaling": {"tolerancePercent": 1 - tolerance}}}  # of no consequence at these numbers
        self.kubectl("patch", POOL, name, "--type=merge", f"--patch={json.dumps(change)}")
        generation = self.kubectl.get(POOL, name)["metadata"]["generation"]
        return self.until("the operator to see a change", 90, lambda: self.status(name)["observedGeneration"] == generation)

    def until_readings(self, count: int) -> None:
        """Let the pools read their table so often more. A status does not tell of each, so they are counted by time: one a
        second, as `declare` has it, and one for a reading under way."""
        time.sleep(count + 1)

    def until_done(self, tasks: Iterable[str], limit: float) -> float:
        """Wait until the history has an end for each of these tasks."""
        wanted = set(tasks)
        return self.until(f"the end of {len(wanted)} tasks", limit, lambda: wanted <= self.history.done)

    # --- to tell --------------------------------------------------------------------------------------------------------

    def account(self) -> str:
        """What the cluster looks like, for who reads why a test failed."""
        looks = {
            "pools": lambda: self.kubectl(
                "get", POOL, "--output=jsonpath={range .items[*]}{.metadata.name} {.status}{'\\n'}{end}"
            ),
            "deployments and pods": lambda: self.kubectl("get", "deployments,replicasets,pods", "--output=wide"),
            "events": lambda: _last(self.kubectl("get", "events", "--sort-by=.lastTimestamp"), 25),
            "tasks": lambda: str(self.table.counts()),
            "unfinished runs": lambda: "\n".join(str(run) for run in self.history.unfinished[:20]),
            "operator": lambda: self.operator.kubectl("get", "pods", "--output=wide") + self.operator.log(40),
        }
        return "\n".join(f"--- {name}\n{_look(look)}" for name, look in looks.items())


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _attempt(holds: Callable[[], object]) -> bool:
    """What cannot be asked, since the API server is away, does not hold yet."""
    try:
        return bool(holds())
    except CommandFailed:
        return False


def _look(look: Callable[[], str]) -> str:
    try:
        return look().strip()
    except CommandFailed as failed:
        return f"({failed})"


def _last(text: str, lines: int) -> str:
    return "\n".join(text.splitlines()[-lines:])
