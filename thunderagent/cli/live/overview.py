"""What ``thunderagent top`` shows at one moment: a task table and its pools, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thunderagent.cli.live.snapshot import TaskCounts
from thunderagent.task import Status

if TYPE_CHECKING:
    from thunderagent.store.backlog import Backlog


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent as the table knows it: by the leases that it holds. ``longest``: seconds of its oldest run's lease.

    ``expired``: leases of it that are over, so that it is probably gone.
    """

    owner: str
    running: int
    expired: int = 0
    longest: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {"owner": self.owner, "running": self.running, "expired": self.expired, "longest": self.longest}


@dataclass(frozen=True, slots=True)
class RunRow:
    """A running task. ``age``: seconds since it was enqueued; ``lease``: seconds that its lease still has, below 0 if over."""

    task_id: str
    task_type: str
    owner: str
    age: float
    lease: float
    retry: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "taskId": self.task_id,
            "taskType": self.task_type,
            "owner": self.owner,
            "age": self.age,
            "lease": self.lease,
            "retry": self.retry,
        }


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A task that FAILED. ``ago``: seconds since then."""

    task_id: str
    task_type: str
    ago: float
    error: str

    def as_json(self) -> dict[str, Any]:
        return {"taskId": self.task_id, "taskType": self.task_type, "ago": self.ago, "error": self.error}


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A ThunderAgentPool as its status tells of it. ``slots``: tasks that one of its agents runs at once, async ones aside.

    ``ready``: the status of the condition Ready, and ``reason`` its reason. ``why``: what the last decision was made for.
    """

    namespace: str
    name: str
    backlog: int = 0
    running: int = 0
    desired: int = 0
    available: int = 0
    least: int = 0
    most: int = 0
    slots: int = 1
    oldest: float = 0.0
    ready: str = "Unknown"
    reason: str = ""
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "backlog": self.backlog,
            "running": self.running,
            "desired": self.desired,
            "available": self.available,
            "min": self.least,
            "max": self.most,
            "slots": self.slots,
            "oldestReadyAge": self.oldest,
            "ready": self.ready,
            "reason": self.reason,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Overview:
    """One look. ``pools`` is None where no cluster was asked; ``notes`` say what could not be seen, and why.

    ``units``: read units that the look cost.
    """

    table: str
    backlog: Backlog
    tasks: TaskCounts
    agents: tuple[AgentRow, ...] = ()
    running: tuple[RunRow, ...] = ()
    failures: tuple[FailureRow, ...] = ()
    pools: tuple[PoolRow, ...] | None = None
    notes: tuple[str, ...] = ()
    units: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For programs. ``cut`` names the statuses, and ``backlogCut`` says, where a count is a lower bound."""
        return {
            "table": self.table,
            "at": self.backlog.at,
            "counts": {str(status): self.tasks.of(status) for status in Status},
            "cut": sorted(map(str, self.tasks.cut)),
            "ready": self.backlog.ready,
            "waiting": self.backlog.waiting,
            "scheduled": self.backlog.scheduled,
            "expired": self.backlog.expired,
            "oldestReadyAge": self.backlog.oldest_ready_age,
            "backlogCut": self.backlog.cut,
            "agents": [each.as_json() for each in self.agents],
            "running": [each.as_json() for each in self.running],
            "failures": [each.as_json() for each in self.failures],
            "pools": None if self.pools is None else [each.as_json() for each in self.pools],
            "notes": list(self.notes),
            "readUnits": self.units,
        }
