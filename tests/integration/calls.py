"""The calls that an agent makes, told apart by what stands in them: for rules of the fault proxy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Body = Mapping[str, Any]
Picks = Callable[[Body], bool]


def task_id(body: Body) -> str | None:
    """The task that a call of one item is about."""
    key: str | None = body.get("Key", {}).get("taskId", {}).get("S")
    return key


def written(body: Body) -> set[str]:
    """The attributes that an UpdateItem sets."""
    sets = body["UpdateExpression"].partition(" REMOVE ")[0].removeprefix("SET ")
    return {part.partition(" = ")[0].strip().removeprefix("#") for part in sets.split(",")}


def is_query_of(status: str) -> Picks:
    return lambda body: body["ExpressionAttributeValues"][":status"]["S"] == status


def is_read_of(wanted: str) -> Picks:
    return lambda body: task_id(body) == wanted


def is_batch_with(wanted: str) -> Picks:
    return lambda body: any(key["taskId"]["S"] == wanted for keys in body["RequestItems"].values() for key in keys["Keys"])


def is_claim_of(wanted: str) -> Picks:
    """A claim, or a take-over, which charges the lost run."""
    return lambda body: task_id(body) == wanted and "lockToken" in written(body)


def is_renewal_of(wanted: str) -> Picks:
    return lambda body: task_id(body) == wanted and "lockTime" in written(body) and "status" not in written(body)


def is_outcome_of(wanted: str) -> Picks:
    """The write that ends a run, however it ended."""
    return lambda body: task_id(body) == wanted and {"lastToken", "history"} <= written(body)


def is_wait_of(wanted: str) -> Picks:
    """The write of a look at a waiting task: it waits on, or it need not any more."""
    return lambda body: task_id(body) == wanted and "waitingFor" in written(body) and "lockToken" not in written(body)


def is_end_of(wanted: str) -> Picks:
    """The write that ends a task which nobody runs."""
    return lambda body: task_id(body) == wanted and {"status", "expiresAt"} <= written(body)
