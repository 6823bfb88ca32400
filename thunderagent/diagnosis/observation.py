"""What a check looks at, as values: everything that the rules know about a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thunderagent.store.layout import CLASSIC, Layout
from thunderagent.task import Status, Task

if TYPE_CHECKING:
    from thunderagent.store.admin import IndexShape, Scanned, TableShape


@dataclass(frozen=True, slots=True)
class Sample:
    """Tasks of one status as the index showed them. ``cut`` says that there are more."""

    tasks: tuple[Task, ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at a table.

    shape: None where there is no such table. now: the table's time, epoch s. dependencies: what waiting tasks wait for, those
    that are in the table; ``unread`` could not be read or were too many. offset: bounds on this machine's clock minus the
    table's, in seconds, None where the table told no time. throttled: calls that DynamoDB throttled meanwhile, by operation.
    layout: what the table says of itself.
    """

    table: str
    index: str
    now: float
    shape: TableShape | None = None
    samples: Mapping[Status, Sample] = field(default_factory=dict)
    dependencies: Mapping[str, Task] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    offset: tuple[float, float] | None = None
    throttled: Mapping[str, int] = field(default_factory=dict)
    scanned: Scanned | None = None
    layout: Layout = CLASSIC

    def tasks(self, *statuses: Status) -> Iterator[Task]:
        """The tasks seen in these statuses, or in all."""
        for status in statuses or Status:
            yield from self.samples.get(status, Sample()).tasks

    @property
    def the_index(self) -> IndexShape | None:
        """The published index, None where the table does not have it."""
        return self.index_named(self.index)

    def index_named(self, name: str) -> IndexShape | None:
        """An index of the table, None where it has none of this name."""
        if self.shape is None:
            return None
        return next((each for each in self.shape.indexes if each.name == name), None)

    def state_of(self, task_id: str) -> str:
        """A dependency's status in words."""
        if task_id in self.dependencies:
            return str(self.dependencies[task_id].status)
        return "not known" if task_id in self.unread else "not in the table"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long, in seconds, something is normal before it is a finding; the defaults follow those of AgentSettings.

    ready: until a ready task is claimed (a poll every 10 s, and the start of a pool from zero).
    recovery: until a lease that ended is taken over (two looks of 30 s on average, jittered by half).
    look: until a waiting task is looked at again (30 s at most, and a poll).
    missing: until a dependency that is not in the table is worrying.
    agent: until agents that showed no sign of life count as gone.
    far, lease: until the start of a task, or the end of a lease, is hardly meant.
    offset: of this machine's clock.
    repeats, losses, releases: runs, of one task, that failed alike, lost their agent, or were not charged.
    """

    ready: float = 120.0
    recovery: float = 90.0
    look: float = 120.0
    missing: float = 300.0
    agent: float = 300.0
    far: float = 366 * 86400.0
    lease: float = 86400.0
    offset: float = 5.0
    repeats: int = 3
    losses: int = 2
    releases: int = 10


def ready_since(task: Task) -> float:
    """From when on the task could have been claimed, in epoch seconds."""
    return max(task.created_at, task.lock_time or 0)


def stuck_ready(observation: Observation, patience: Patience) -> list[Task]:
    """Tasks that have been ready for longer than agents need to come round, the oldest first."""
    since = observation.now - patience.ready
    ready = (task for task in observation.tasks(Status.PENDING) if not task.is_waiting)
    return sorted((task for task in ready if ready_since(task) <= since), key=ready_since)
