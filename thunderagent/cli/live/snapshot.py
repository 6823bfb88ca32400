"""What a live view shows at one moment, as frozen values that know nothing of terminals, tables or processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thunderagent.task import Status


@dataclass(frozen=True, slots=True)
class Replicas:
    """The agents of a pool by how far they are."""

    ready: int = 0
    starting: int = 0
    draining: int = 0

    @property
    def total(self) -> int:
        return self.ready + self.starting + self.draining


@dataclass(frozen=True, slots=True)
class Sample:
    """A pool at one moment of its past. ``at``: seconds since the view began; ``work``: ready and running tasks."""

    at: float
    replicas: int
    work: int


@dataclass(frozen=True, slots=True)
class PoolState:
    """One pool. ``most``: maxReplicas; ``wanted``: what the backlog asks for, None where it could not be read.

    ``target`` and ``sentence``: the last decision and why; ``is_trouble``: it was made without a reading.
    """

    name: str
    replicas: Replicas
    most: int
    target: int = 0
    wanted: int | None = None
    sentence: str = ""
    is_trouble: bool = False
    history: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Tasks by status. ``waiting``: those of the PENDING ones that wait for other tasks. ``cut``: counts that are "at least".

    ``is_whole``: all the tasks there will be are among them, so that a share of them means something.
    """

    by_status: Mapping[Status, int] = field(default_factory=dict)
    waiting: int = 0
    cut: frozenset[Status] = frozenset()
    is_whole: bool = False

    def of(self, status: Status) -> int:
        return self.by_status.get(status, 0)

    @property
    def total(self) -> int:
        return sum(self.by_status.values())

    @property
    def ended(self) -> int:
        return sum(count for status, count in self.by_status.items() if status.is_final)


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task under a lease. ``agent``: its lockOwner; ``seconds``: since it was claimed."""

    task_id: str
    task_type: str
    agent: str
    seconds: float
    retry: int = 0


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A task that has ended. ``seconds``: its last run took, None where it never ran."""

    task_id: str
    task_type: str
    status: Status
    seconds: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a view shows. ``elapsed``: seconds since it began; ``ended``: the last ones, latest first."""

    title: str
    elapsed: float
    pools: tuple[PoolState, ...] = ()
    tasks: TaskCounts = TaskCounts()
    running: tuple[RunningTask, ...] = ()
    ended: tuple[EndedTask, ...] = ()
    note: str = ""
