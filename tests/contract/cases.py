"""Every transition with an item on which its condition holds, and with what breaks each part of the condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.builders import NOW
from thunderagent import transitions
from thunderagent.task import ErrorType, Outcome, OutcomeKind, Task, TaskError
from thunderagent.transitions import Lease, Transition

Item = Mapping[str, Any]
GONE: Mapping[str, Any] = {}
"""Stands for an attribute that is not there."""

EXPIRES = NOW + 14 * 86_400
LATER = NOW + 60
SUCCESS = Outcome(OutcomeKind.SUCCESS, result={"rows": 3})
BROKEN = Outcome(OutcomeKind.FAILED, error=TaskError("ValueError", "no such column", NOW))
RETRIED = Outcome(OutcomeKind.RETRY, error=TaskError("OSError", "connection reset", NOW))
RELEASED = Outcome(OutcomeKind.RELEASED)
MISSING = TaskError(ErrorType.DEPENDENCY_MISSING, "The dependency first is not in the table.", NOW)


def n(number: float) -> dict[str, str]:
    return {"N": str(number)}


def s(text: str) -> dict[str, str]:
    return {"S": text}


PENDING: Item = {
    "status": s("PENDING"),
    "payload": {"M": {"dependsOn": s("first")}},
    "retryCount": n(1),
    "maxRetry": n(3),
    "lockTime": n(NOW),
    "createdAt": n(NOW - 100),
    "updatedAt": n(NOW - 50),
    "lastToken": s("T0"),
    "waitingFor": {"L": [s("first")]},
    "waitingSince": n(NOW - 100),
}
RUNNING: Item = {
    **PENDING,
    "status": s("RUNNING"),
    "lockTime": n(NOW + 200),
    "lockOwner": s("a"),
    "lockToken": s("T1"),
    "waitingFor": {"L": []},
}
EXPIRED: Item = {**RUNNING, "lockTime": n(NOW - 1)}
FAILED: Item = {
    **PENDING,
    "status": s("FAILED"),
    "lockTime": GONE,
    "error": {"M": {"type": s("ValueError"), "message": s("no such column"), "at": n(NOW - 50)}},
    "expiresAt": n(EXPIRES),
}


@dataclass(frozen=True)
class Case:
    """A transition, built from what was read. ``spoilers``: what somebody else may have written since, each enough to refuse.

    ``again`` says what a second try of the same write is: "repeated" where its condition no longer holds, "idempotent" where it
    still does and writes the same once more.
    """

    name: str
    item: Item
    build: Callable[[Task], Transition]
    spoilers: Mapping[str, Item] = field(default_factory=dict)
    again: str = "repeated"


def lease_of(task: Task) -> Lease:
    return Lease(task, "T1", "a", NOW - 50, (NOW + 200,))


def status_spoilers(*others: str) -> dict[str, Item]:
    return {f"the status is {other}": {"status": s(other)} for other in others}


_NOT_PENDING = status_spoilers("RUNNING", "SUCCESS", "DONE", "FAILED")
_NOT_RUNNING = status_spoilers("PENDING", "SUCCESS", "DONE", "FAILED")
_NOT_FAILED = status_spoilers("PENDING", "RUNNING", "SUCCESS", "DONE")

_NOT_HELD: Mapping[str, Item] = {
    **_NOT_RUNNING,
    "another run has the lease": {"lockToken": s("T2")},
    "the token is gone": {"lockToken": GONE},
    "the lease was moved by a program without tokens": {"lockTime": n(NOW + 201)},
    "the lease was removed": {"lockTime": GONE},
}
_NOT_EXPIRED: Mapping[str, Item] = {
    **_NOT_RUNNING,
    "the lease was renewed": {"lockTime": n(NOW + 1)},
    "the lease is text": {"lockTime": s("0")},
    "another run has the lease": {"lockToken": s("T2")},
    "the token is gone": {"lockToken": GONE},
    "a retry was used": {"retryCount": n(2)},
    "the retry count is text": {"retryCount": s("1")},
    "the retry count is gone": {"retryCount": GONE},
}
_NOT_WAITING: Mapping[str, Item] = {
    **_NOT_PENDING,
    "somebody else looked at it": {"lockTime": n(NOW + 30)},
    "the time is gone": {"lockTime": GONE},
}
_CHANGED: Mapping[str, Item] = {
    "it was updated": {"updatedAt": n(NOW - 49)},
    "the time of update is gone": {"updatedAt": GONE},
    "another run has the lease": {"lockToken": s("T2")},
}

CASES = (
    Case(
        "claim",
        PENDING,
        lambda task: transitions.claim(task, now=NOW, lease_end=NOW + 300, owner="b", token="T2"),
        {**_NOT_PENDING, "it is to run later": {"lockTime": n(NOW + 1)}, "its time is text": {"lockTime": s("0")}},
    ),
    Case(
        "take over",
        EXPIRED,
        lambda task: transitions.take_over(task, now=NOW, lease_end=NOW + 300, owner="b", token="T9"),
        _NOT_EXPIRED,
    ),
    Case("bury", EXPIRED, lambda task: transitions.bury(task, now=NOW, expires_at=EXPIRES), _NOT_EXPIRED),
    Case(
        "renew",
        RUNNING,
        lambda task: transitions.renew(lease_of(task).trying(NOW + 400), lease_end=NOW + 400, progress={"row": 7}),
        _NOT_HELD,
        again="idempotent",
    ),
    Case(
        "complete", RUNNING, lambda task: transitions.complete(lease_of(task), SUCCESS, now=NOW, expires_at=EXPIRES), _NOT_HELD
    ),
    Case("retry", RUNNING, lambda task: transitions.retry(lease_of(task), RETRIED, now=NOW, delay=8.5), _NOT_HELD),
    Case("fail", RUNNING, lambda task: transitions.fail(lease_of(task), BROKEN, now=NOW, expires_at=EXPIRES), _NOT_HELD),
    Case("release", RUNNING, lambda task: transitions.release(lease_of(task), RELEASED, now=NOW, delay=0), _NOT_HELD),
    Case("defer", PENDING, lambda task: transitions.defer(task, now=NOW, wait=20, unmet=("first",)), _NOT_WAITING),
    Case("unblock", {**PENDING, "lockTime": n(NOW - 5)}, lambda task: transitions.unblock(task, now=NOW), _NOT_WAITING),
    Case("abandon", PENDING, lambda task: transitions.abandon(task, MISSING, now=NOW, expires_at=EXPIRES), _NOT_WAITING),
    Case(
        "cancel of a pending task",
        PENDING,
        lambda task: transitions.cancel(task, now=NOW, expires_at=EXPIRES),
        {**_NOT_PENDING, **_CHANGED},
    ),
    Case(
        "cancel of a running task",
        RUNNING,
        lambda task: transitions.cancel(task, now=NOW, expires_at=EXPIRES),
        {**_NOT_RUNNING, **_CHANGED, "the token is gone": {"lockToken": GONE}},
    ),
    Case(
        "redrive",
        FAILED,
        lambda task: transitions.redrive(task, now=NOW, token="E2"),
        {
            **_NOT_FAILED,
            "it was updated": {"updatedAt": n(NOW - 49)},
            "the time of update is gone": {"updatedAt": GONE},
            "another run has failed": {"lastToken": s("T5")},
            "the last run is not known": {"lastToken": GONE},
        },
    ),
)


def whole(task_id: str, *parts: Item) -> dict[str, Any]:
    """The item of the parts, the later ones winning, without what is gone."""
    item: dict[str, Any] = {"taskId": s(task_id)}
    for part in parts:
        item |= part
    return {name: value for name, value in item.items() if value}
