"""A long time of faults drawn by a seed, on a built cluster, while agents work; and what must be true after it."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise

from tests.cluster.errors import ClusterError, CommandFailed
from tests.e2e.faults import Faults
from tests.e2e.history import History, Run
from tests.e2e.release import NAMESPACE
from tests.e2e.stage import Stage

POOL = "work"
CLOCKS = 1.0
"""Seconds by which two moments that were taken in different places may be out of order."""


@dataclass
class Log:
    """What was done when, in epoch seconds. ``killed``: by the pod whose containers were killed, or that was made to end."""

    lines: list[str] = field(default_factory=list)
    killed: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    began: float = field(default_factory=time.time)

    def say(self, text: str) -> None:
        self.lines.append(f"{time.time() - self.began:7.1f}  {text}")

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Chaos:
    """Draws faults, one or two at a time, and lets each last for a while. The same seed draws the same ones."""

    def __init__(self, stage: Stage, faults: Faults, seed: int) -> None:
        self._stage = stage
        self._faults = faults
        self._rng = random.Random(seed)
        self._enqueued = 0
        self.tasks: list[str] = []
        self.log = Log()

    def run(self, seconds: float) -> None:
        """Make trouble for so long, and enqueue tasks meanwhile. When this returns, everything is as it should be again."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._enqueue(self._rng.randint(3, 14))
            time.sleep(self._rng.uniform(1, 6))
            with ExitStack() as stack:
                for name in self._rng.sample(sorted(FAULTS), self._rng.choice((1, 1, 2))):
                    lasts = self._rng.uniform(2, 25)
                    self.log.say(f"{name} ({lasts:.0f} s)")
                    stack.enter_context(FAULTS[name](self))
                    time.sleep(lasts)
            self.log.say("quiet")

    def settle(self) -> None:
        """Enqueue what could not be enqueued, until all of it is in the table."""
        self._stage.until("the API server", 120, lambda: self._stage.kubectl("get", "--raw=/readyz"))
        self._stage.until("the last tasks in the table", 120, lambda: self._try_enqueue(self._owed()))

    # --- tasks ----------------------------------------------------------------------------------------------------------

    def _enqueue(self, count: int) -> None:
        """Some more tasks. While the API server is away there is no way to the table; they come with the next ones then."""
        self._enqueued += count
        with suppress(CommandFailed):
            self._try_enqueue(self._owed())

    def _owed(self) -> list[str]:
        return [f"chaos-{number}" for number in range(len(self.tasks), self._enqueued)]

    def _try_enqueue(self, task_ids: list[str]) -> bool:
        """Tasks with ids of their own: to enqueue one a second time adds nothing."""
        lines = [
            {"taskId": task_id, "payload": {"seconds": round(random.Random(task_id).uniform(0.2, 12), 1)}, "maxRetry": 20}
            for task_id in task_ids
        ]
        if lines:
            self._stage.enqueue(lines)
        self.tasks += task_ids
        return True

    # --- faults ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def agent_killed(self) -> Iterator[None]:
        """One pod's containers die at once; the kubelet starts them again."""
        pod = self._pod()
        if pod is not None:
            self._kill(pod, lambda: self._faults.kill_containers(self._stage.kubectl.namespace, pod))
        yield

    @contextmanager
    def pod_deleted(self) -> Iterator[None]:
        """One pod is made to go, at once or with the time that it has to drain."""
        pod = self._pod()
        if pod is not None:
            how = self._rng.choice((("--force", "--grace-period=0"), ("--wait=false",)))
            self._kill(pod, lambda: self._stage.kubectl("delete", "pod", pod, *how))
        yield

    @contextmanager
    def operator_killed(self) -> Iterator[None]:
        """The operator dies; its pod goes too, since a container that ends often is started ever later."""
        with suppress(ClusterError):
            self._faults.kill_containers(NAMESPACE)
            self._stage.operator.kubectl("delete", "pod", "--selector=app.kubernetes.io/component=operator", "--force")
        yield

    @contextmanager
    def component_stopped(self, name: str) -> Iterator[None]:
        with self._faults.without(name):
            yield

    @contextmanager
    def table_frozen(self) -> Iterator[None]:
        """DynamoDB takes connections and does not answer. It is not killed: it keeps its tables in memory."""
        with self._faults.frozen_dynamodb(self._stage.ground):
            yield

    def _pod(self) -> str | None:
        """One of the pool's pods, if any can be seen now."""
        with suppress(CommandFailed):
            names: list[str] = sorted(pod["metadata"]["name"] for pod in self._stage.pods(POOL))
            if names:
                return self._rng.choice(names)
        return None

    def _kill(self, pod: str, act: Callable[[], object]) -> None:
        self.log.killed[pod].append(time.time())
        self.log.say(f"  {pod}")
        with suppress(ClusterError):
            act()


FAULTS: Mapping[str, Callable[[Chaos], AbstractContextManager[None]]] = {
    "an agent is killed": Chaos.agent_killed,
    "a pod is deleted": Chaos.pod_deleted,
    "the operator is killed": Chaos.operator_killed,
    "no kubelet": lambda chaos: chaos.component_stopped("kubelet"),
    "no API server": lambda chaos: chaos.component_stopped("kube-apiserver"),
    "no controller manager": lambda chaos: chaos.component_stopped("kube-controller-manager"),
    "the table is frozen": Chaos.table_frozen,
}


# --- afterwards ---------------------------------------------------------------------------------------------------------


def unexplained(history: History, log: Log) -> list[str]:
    """Pairs of runs of one task of which the second one began although nothing had ended the first, or its agent."""
    runs: defaultdict[str, list[Run]] = defaultdict(list)
    for run in history.runs:
        runs[run.task].append(run)
    return [
        f"{earlier} and {later}"
        for each in runs.values()
        for earlier, later in pairwise(each)
        if not _is_explained(earlier, later, log)
    ]


def _is_explained(earlier: Run, later: Run, log: Log) -> bool:
    if earlier.stopped is not None:
        return earlier.stopped <= later.began + CLOCKS
    ended = earlier.began if earlier.ended is None else earlier.ended
    killed = [at for at in log.killed[earlier.pod] if earlier.began - CLOCKS <= at <= later.began + CLOCKS]
    # A pod that was told to go lives on for a while: what counts is that its run came to an end before the next one began.
    return bool(killed) and ended <= later.began + CLOCKS
