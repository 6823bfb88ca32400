"""The vocabulary: a task, its status, the runs it had and the outcomes a run can have.

Everything here is a frozen value. Attribute names of the table are written once, in :class:`Attr`; the rest of the code
uses these names. A record is a task as the table holds it: attribute name to plain Python value. Tables are shared with
programs that are not ours, so :meth:`Task.from_record` accepts any record and normalises what is absent or oddly typed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from thunderagent.errors import NotATask

Record = Mapping[str, Any]

DEFAULT_MAX_RETRY = 3
"""Retries allowed where a record does not say: at most four charged runs."""

NUMBER_LIMIT = 10.0**15
"""No time in seconds and no count of an item comes near it; the numbers of others may."""

OWNER_BYTES = 512
"""UTF-8 bytes kept of the owner of each run in ``history``: longer than any of ours, and others may write what they like."""

HISTORY_RUNS = 5
"""Runs kept in ``history``; older ones are dropped so that an item cannot grow without end."""

ERROR_BYTES = 4096
"""UTF-8 bytes kept of the last error's message."""

HISTORY_ERROR_CHARS = 300
"""Characters kept of the error of each run in ``history``."""


class Attr(StrEnum):
    """Attribute names of the task item. The first eight are a published format that other programs share."""

    TASK_ID = "taskId"
    STATUS = "status"
    PAYLOAD = "payload"
    RETRY_COUNT = "retryCount"
    MAX_RETRY = "maxRetry"
    LOCK_TIME = "lockTime"
    CREATED_AT = "createdAt"
    UPDATED_AT = "updatedAt"
    LOCK_OWNER = "lockOwner"
    LOCK_TOKEN = "lockToken"
    LAST_TOKEN = "lastToken"
    ENQUEUE_TOKEN = "enqueueToken"
    WAITING_FOR = "waitingFor"
    WAITING_SINCE = "waitingSince"
    RELEASE_COUNT = "releaseCount"
    RESULT = "result"
    ERROR = "error"
    PROGRESS = "progress"
    HISTORY = "history"
    EXPIRES_AT = "expiresAt"
    TASK_TYPE = "taskType"
    QUEUE = "queue"
    DISPATCH = "dispatch"
    DUE_AT = "dueAt"


DEFAULT_QUEUE = "default"
"""The queue of a task whose record names none."""

TASK_ID_BYTES = 2048
"""DynamoDB's limit for a partition key."""

DEPENDS_ON = "dependsOn"
"""The key inside ``payload`` that holds a taskId, or a list of them, to wait for."""


class Status(StrEnum):
    """The five states of a task. SUCCESS, DONE and FAILED are final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    DONE = "DONE"
    FAILED = "FAILED"

    @property
    def is_final(self) -> bool:
        return self in FINAL

    @property
    def is_met(self) -> bool:
        """Whether a task that depends on one in this state may run."""
        return self in MET


MET = frozenset({Status.SUCCESS, Status.DONE})
FINAL = MET | {Status.FAILED}


class ErrorType(StrEnum):
    """Types that ThunderAgent itself writes to ``error.type``; every other type is the name of a handler's exception."""

    LEASE_EXPIRED = "LeaseExpired"
    CANCELLED = "Cancelled"
    TIMED_OUT = "TimedOut"
    CHILD_DIED = "ChildDied"
    RESULT_INVALID = "ResultInvalid"
    OUTCOME_REFUSED = "OutcomeRefused"
    DEPENDENCY_FAILED = "DependencyFailed"
    DEPENDENCY_MISSING = "DependencyMissing"
    DEPENDENCY_TIMEOUT = "DependencyTimeout"


@dataclass(frozen=True, slots=True)
class TaskError:
    """Why a run failed. ``at`` is in epoch seconds of the table's time; the message is cut to :data:`ERROR_BYTES`."""

    type: str
    message: str
    at: int = 0

    def to_record(self) -> dict[str, Any]:
        return {"type": cut_bytes(self.type, 256), "message": cut_bytes(self.message, ERROR_BYTES), "at": self.at}

    @classmethod
    def from_record(cls, value: object) -> TaskError | None:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            return cls("Error", str(value))
        return cls(str(value.get("type", "Error")), str(value.get("message", "")), as_int(value.get("at"), 0))

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


class OutcomeKind(StrEnum):
    """How a run ended, as it stands in ``history`` and in the metrics."""

    SUCCESS = "success"
    DONE = "done"
    RETRY = "retry"
    FAILED = "failed"
    SNOOZED = "snoozed"
    RELEASED = "released"
    LOST = "lost"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. ``delay`` (seconds) is for retry, snooze and release; None lets the retry policy choose."""

    kind: OutcomeKind
    result: Mapping[str, Any] | None = None
    error: TaskError | None = None
    delay: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run in a task's history. Times in epoch seconds of the table's time."""

    owner: str
    began: int
    ended: int
    outcome: str
    error: str = ""

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"owner": cut_bytes(self.owner, OWNER_BYTES), "began": self.began, "ended": self.ended}
        record["outcome"] = cut_bytes(self.outcome, OWNER_BYTES)
        if self.error:
            record["error"] = writable(self.error)[:HISTORY_ERROR_CHARS]
        return record

    @classmethod
    def from_record(cls, value: object) -> Run | None:
        if not isinstance(value, Mapping):
            return None
        return cls(
            str(value.get("owner", "")),
            as_int(value.get("began"), 0),
            as_int(value.get("ended"), 0),
            str(value.get("outcome", "")),
            str(value.get("error", "")),
        )


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it was read. ``record`` keeps the attributes as they stand in the table, for conditions "as seen"."""

    task_id: str
    status: Status
    payload: Any = None
    task_type: str | None = None
    retry_count: int = 0
    max_retry: int = DEFAULT_MAX_RETRY
    lock_time: float | None = None
    created_at: int = 0
    updated_at: int = 0
    lock_owner: str | None = None
    lock_token: str | None = None
    last_token: str | None = None
    waiting_for: tuple[str, ...] | None = None
    waiting_since: int | None = None
    release_count: int = 0
    result: Any = None
    error: TaskError | None = None
    progress: Any = None
    history: tuple[Run, ...] = ()
    expires_at: int | None = None
    queue: str = DEFAULT_QUEUE
    record: Record = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_record(cls, record: Record) -> Task:
        """Read a record made by anyone. Raises NotATask where its status is not one of the five, and nothing else."""
        return cls(
            task_id=record[Attr.TASK_ID],
            status=_status(record),
            payload=record.get(Attr.PAYLOAD),
            task_type=as_str(record.get(Attr.TASK_TYPE)),
            retry_count=max(0, as_int(record.get(Attr.RETRY_COUNT), 0)),
            max_retry=max(0, as_int(record.get(Attr.MAX_RETRY), DEFAULT_MAX_RETRY)),
            lock_time=as_number(record.get(Attr.LOCK_TIME)),
            created_at=as_int(record.get(Attr.CREATED_AT), 0),
            updated_at=as_int(record.get(Attr.UPDATED_AT), 0),
            lock_owner=as_str(record.get(Attr.LOCK_OWNER)),
            lock_token=as_str(record.get(Attr.LOCK_TOKEN)),
            last_token=as_str(record.get(Attr.LAST_TOKEN)),
            waiting_for=_as_ids(record.get(Attr.WAITING_FOR)),
            waiting_since=_as_optional_int(record.get(Attr.WAITING_SINCE)),
            release_count=max(0, as_int(record.get(Attr.RELEASE_COUNT), 0)),
            result=record.get(Attr.RESULT),
            error=TaskError.from_record(record.get(Attr.ERROR)),
            progress=record.get(Attr.PROGRESS),
            history=_as_runs(record.get(Attr.HISTORY)),
            expires_at=_as_optional_int(record.get(Attr.EXPIRES_AT)),
            queue=as_str(record.get(Attr.QUEUE)) or DEFAULT_QUEUE,
            record=record,
        )

    @property
    def dependencies(self) -> tuple[str, ...]:
        """The taskIds of ``payload.dependsOn``, in order and each once."""
        if not isinstance(self.payload, Mapping):
            return ()
        return dependency_ids(self.payload.get(DEPENDS_ON))

    @property
    def unmet(self) -> tuple[str, ...]:
        """Dependencies not yet known to be met: ``waitingFor``, or all of them where nobody has looked yet."""
        return self.dependencies if self.waiting_for is None else self.waiting_for

    @property
    def is_waiting(self) -> bool:
        return self.status is Status.PENDING and bool(self.unmet)

    @property
    def retries_left(self) -> int:
        return max(0, self.max_retry - self.retry_count)

    def is_due(self, now: float) -> bool:
        """Whether ``lockTime`` has come: for PENDING, it may be looked at; for RUNNING, the lease is over."""
        return self.lock_time is None or self.lock_time <= now


def dependency_ids(value: object) -> tuple[str, ...]:
    """A taskId, or a list, tuple or set of them, as a tuple without repeats. Anything that is not a string is left out."""
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, list | tuple):
        return tuple(dict.fromkeys(item for item in value if isinstance(item, str) and item))
    if isinstance(value, set | frozenset):
        return tuple(sorted(item for item in value if isinstance(item, str) and item))
    return ()


def as_number(value: object) -> float | None:
    """A finite number, or a string that spells one, as int or float; everything else (also bool) as None.

    One beyond :data:`NUMBER_LIMIT` counts as the limit: an item must not gain numbers that DynamoDB has no room for.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    number = max(-NUMBER_LIMIT, min(NUMBER_LIMIT, number))
    return int(number) if number.is_integer() else number


def is_plain_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def as_int(value: object, default: int) -> int:
    """As :func:`as_number`, towards zero, or ``default``."""
    number = as_number(value)
    return default if number is None else int(number)


def as_str(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def writable(text: str) -> str:
    """The text with lone surrogates (as in a file name with odd bytes) written out: the table would refuse all of it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def cut_bytes(text: str, limit: int) -> str:
    """The text within ``limit`` UTF-8 bytes, ending in an ellipsis where something was cut; always encodable."""
    raw = writable(text).encode("utf-8")
    if len(raw) <= limit:
        return raw.decode("utf-8")
    return raw[: limit - 3].decode("utf-8", "ignore") + "…"


def _status(record: Record) -> Status:
    value: Any = record.get(Attr.STATUS)
    try:
        return Status(value)
    except ValueError:
        raise NotATask(f"The item {record[Attr.TASK_ID]} has the status {value!r}, which no task has.") from None


def _as_optional_int(value: object) -> int | None:
    number = as_number(value)
    return None if number is None else int(number)


def _as_ids(value: object) -> tuple[str, ...] | None:
    return None if value is None else dependency_ids(value)


def _as_runs(value: object) -> tuple[Run, ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(run for item in value if (run := Run.from_record(item)) is not None)
