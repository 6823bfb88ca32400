"""Values that many tests start from: a clock that a test moves, records as other programs write them, tasks in each state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thunderagent import transitions
from thunderagent.store import Store
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Record, Status, Task
from thunderagent.transitions import Lease

NOW = 1_800_000_000
"""The table's time, in epoch seconds, at which tests begin."""

LEASE = 300
DAY = 86_400


class Time:
    """The table's time and a process's monotonic time in one: it passes when a test says so, or when somebody sleeps."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


def foreign_record(task_id: str = "theirs", **changes: Any) -> dict[str, Any]:
    """A task as another program writes it: the published attributes without lockTime. A change to None leaves one out."""
    record = {
        "taskId": task_id,
        "status": "PENDING",
        "payload": {"n": 1},
        "retryCount": 0,
        "maxRetry": 3,
        "createdAt": NOW - 100,
        "updatedAt": NOW - 100,
    } | changes
    return {name: value for name, value in record.items() if value is not None}


def put_pending(store: MemoryStore, *task_ids: str, created_at: int = NOW - 100, **changes: Any) -> None:
    """Put ready tasks into the table, a second apart in age; ``changes`` as of :func:`foreign_record`."""
    for number, task_id in enumerate(task_ids):
        store.put_record(foreign_record(task_id, createdAt=created_at + number, **changes))


def enqueue(store: Store, task_id: str = "t", payload: Mapping[str, Any] | None = None, **options: Any) -> Task:
    """Put a task into the table as TaskQueue does, and return it as it stands."""
    arguments: dict[str, Any] = {"now": NOW, "token": f"enqueue-{task_id}"} | options
    assert store.apply(transitions.enqueue(task_id, payload or {"n": 1}, **arguments)).ok
    return read(store, task_id)


def claim(
    store: Store, task_id: str = "t", *, now: int = NOW, lease: int = LEASE, owner: str = "a", token: str = "T1"
) -> Lease:
    """Claim a task that is there, and return the lease on it."""
    write = transitions.claim(read(store, task_id), now=now, lease_end=now + lease, owner=owner, token=token)
    applied = store.apply(write, want_task=True)
    assert applied.ok
    assert applied.task is not None
    return Lease(applied.task, token, owner, now, (now + lease,))


def read(store: Store, task_id: str = "t") -> Task:
    """The task as it stands; it must be there."""
    task = store.get(task_id)
    assert task is not None
    return task


def record(store: Store, task_id: str = "t") -> Record:
    """The attributes of a task as they stand."""
    return read(store, task_id).record


def statuses(store: MemoryStore) -> dict[str, Status]:
    """The status of every task in the table."""
    return {task_id: Status(each["status"]) for task_id, each in store.records().items()}
