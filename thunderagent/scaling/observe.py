"""What was seen in one cycle: the backlog in the table, and the replicas that are there.

The table knows tasks and lockOwners; the cluster, or the machine, knows replicas. :func:`observe` brings the two together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class ReplicaState(StrEnum):
    """How far a replica is. A starting one is capacity on its way, a terminating one is none."""

    STARTING = "starting"
    READY = "ready"
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of a pool: a pod, or a process on this machine.

    ``owner`` is what the lockOwner of its agent begins with, all but the random end: ``<pool>/<pod>/<pod uid>``, or
    ``<pool>/<host>/<pid>``. ``running``: live leases that it holds.
    """

    owner: str
    state: ReplicaState = ReplicaState.READY
    running: int = 0

    @property
    def is_staying(self) -> bool:
        return self.state is not ReplicaState.TERMINATING

    @property
    def is_busy(self) -> bool:
        return self.running > 0


@dataclass(frozen=True, slots=True)
class Counts:
    """What one reading of the table gave: tasks of the types that the pool's agents can claim.

    ``ready``: PENDING, due, not waiting. ``waiting``: PENDING with unmet dependencies; ``waiting_due`` of them are due for
    a look. ``expired``: RUNNING with a lease that is over. ``leases``: live leases by lockOwner, of any pool.
    ``oldest_ready_age``: seconds. ``cut``: the reading stopped at its bound, so that every number is "at least".
    """

    ready: int = 0
    waiting: int = 0
    waiting_due: int = 0
    expired: int = 0
    leases: Mapping[str, int] = field(default_factory=dict)
    oldest_ready_age: float | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """Backlog and replicas of one pool at one moment.

    ``desired``: the replicas asked for at present (the Deployment's ``spec.replicas``), ready or not. ``running_gone``:
    live leases of this pool's replicas that are no longer there. The rest as in :class:`Counts`.
    """

    desired: int
    replicas: tuple[Replica, ...] = ()
    ready: int = 0
    waiting: int = 0
    waiting_due: int = 0
    expired: int = 0
    running_gone: int = 0
    oldest_ready_age: float | None = None
    cut: bool = False

    @property
    def claimable(self) -> int:
        """Ready tasks, and one more where waiting ones are due for a look: one agent is enough to look at them all."""
        return self.ready + min(1, self.waiting_due)

    @property
    def running(self) -> int:
        """Tasks that the pool's capacity is for: what terminating replicas run they finish themselves."""
        return self.running_gone + sum(replica.running for replica in self.replicas if replica.is_staying)

    @property
    def work(self) -> int:
        return self.claimable + self.expired + self.running

    @property
    def floor(self) -> int:
        """Replicas that hold a running task. The pool is never scaled below this."""
        return sum(replica.is_staying and replica.is_busy for replica in self.replicas)


@dataclass(frozen=True, slots=True)
class FailedRead:
    """The backlog could not be read. ``reason`` is a stable CamelCase code, ``message`` what a person needs to know."""

    desired: int
    reason: str
    message: str = ""


def observe(*, pool: str, counts: Counts, replicas: Iterable[Replica], desired: int) -> Observation:
    """Give each replica of ``pool`` the leases that it holds; leases of its replicas that are gone are kept apart.

    Leases of other pools, and of agents that belong to none, are not this pool's to run: they are left out until they
    expire, when anybody may take them over. ``running`` of the given replicas is not looked at.
    """
    held = _leases_of(pool, counts.leases)
    present = tuple(replace(replica, running=held.pop(replica.owner, 0)) for replica in replicas)
    return Observation(
        desired=desired,
        replicas=present,
        ready=counts.ready,
        waiting=counts.waiting,
        waiting_due=counts.waiting_due,
        expired=counts.expired,
        running_gone=held.total(),
        oldest_ready_age=counts.oldest_ready_age,
        cut=counts.cut,
    )


def owner_of(lock_owner: str) -> str:
    """The replica's part of a lockOwner: without the random end that is new for every process start.

    A container that was restarted in its pod so keeps what its predecessor held, until that expires: the pod counts as
    busy a little too long, which costs time, rather than too short, which would cost a run.
    """
    return lock_owner.rpartition("-")[0] or lock_owner


def _leases_of(pool: str, leases: Mapping[str, int]) -> Counter[str]:
    held: Counter[str] = Counter()
    for lock_owner, count in leases.items():
        if lock_owner.partition("/")[0] == pool:
            held[owner_of(lock_owner)] += count
    return held
