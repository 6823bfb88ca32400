"""Every conditional write to a task, as data: its name, its condition, its update, and the proof that it went through.

Nothing else in ThunderAgent builds a write. A store carries a :class:`Transition` out: it evaluates the condition and
applies the update in one atomic step, and where the condition fails it holds the item against ``proof``: an item that
already shows this very write means that an earlier try went through and only its reply was lost (rule 2 of the guarantees).

A lease in time, all in the table's own seconds::

    claim                 renew                 renew                        lockTime
      |---------------------|---------------------|------- ... ----------------|
      lockTime = t + lease  lockTime moves on                                  from here others may take over

"As seen" conditions compare with the attribute as the table holds it, not with the normalised value, since a table is shared
with programs that may leave an attribute out or write it with another type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from thunderagent.task import (
    DEFAULT_MAX_RETRY,
    DEFAULT_QUEUE,
    DEPENDS_ON,
    HISTORY_RUNS,
    Attr,
    ErrorType,
    Outcome,
    OutcomeKind,
    Run,
    Status,
    Task,
    TaskError,
    dependency_ids,
    is_plain_number,
)

# --- conditions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Absent:
    """The attribute is not there."""

    attr: str


@dataclass(frozen=True, slots=True)
class Equals:
    """The attribute is there and equals the value, in type and content."""

    attr: str
    value: Any


@dataclass(frozen=True, slots=True)
class OneOf:
    """The attribute equals one of the values."""

    attr: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AtMost:
    """The attribute is a number and not above the bound. A value of another type never is."""

    attr: str
    bound: int


@dataclass(frozen=True, slots=True)
class FieldEquals:
    """A key of a map attribute equals the value."""

    attr: str
    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


Progress = Mapping[str, Any] | None
"""What a handler saved to go on from, or None where there is nothing new."""

Condition = Absent | Equals | OneOf | AtMost | FieldEquals | AllOf | AnyOf

# --- the named fragments that conditions are joined from ----------------------------------------------------------------

NOT_ENQUEUED: Final = Absent(Attr.TASK_ID)
PENDING: Final = Equals(Attr.STATUS, str(Status.PENDING))
RUNNING: Final = Equals(Attr.STATUS, str(Status.RUNNING))
FAILED: Final = Equals(Attr.STATUS, str(Status.FAILED))


def as_seen(task: Task, attr: Attr) -> Condition:
    """The attribute stands as it stood when the task was read."""
    return Equals(attr, task.record[attr]) if attr in task.record else Absent(attr)


def due(task: Task, now: int) -> Condition:
    """lockTime is absent or has come; one that is not a number counts once it has been read and stands as it was seen."""
    parts: tuple[Condition, ...] = (Absent(Attr.LOCK_TIME), AtMost(Attr.LOCK_TIME, now))
    if not is_plain_number(task.record.get(Attr.LOCK_TIME, 0)) and task.is_due(now):
        parts += (as_seen(task, Attr.LOCK_TIME),)
    return AnyOf(parts)


@dataclass(frozen=True, slots=True)
class Lease:
    """What one agent holds: a task, the token of its claim and every lockTime that may stand in the table for it.

    ``written`` are the lease ends (epoch s) that were acknowledged last or tried since; a program that takes tasks over
    without knowing tokens changes lockTime, and so loses us the lease rather than our overwriting it.
    """

    task: Task
    token: str
    owner: str
    began: int
    written: tuple[int, ...]

    @property
    def task_id(self) -> str:
        return self.task.task_id

    @property
    def ends(self) -> int:
        """The last acknowledged lease end, in epoch seconds."""
        return self.written[0]

    def trying(self, lease_end: int) -> Lease:
        """The lease while a renewal to ``lease_end`` is under way: either end may be the one in the table."""
        written = self.written if lease_end in self.written else (*self.written, lease_end)
        return Lease(self.task, self.token, self.owner, self.began, written)

    def without_oldest_try(self) -> Lease:
        """The lease without the oldest of the ends that were tried and never answered; the acknowledged one stays."""
        return Lease(self.task, self.token, self.owner, self.began, (self.written[0], *self.written[2:]))

    def renewed(self, lease_end: int) -> Lease:
        """The lease once the table has acknowledged ``lease_end``."""
        return Lease(self.task, self.token, self.owner, self.began, (lease_end,))


def held(lease: Lease) -> Condition:
    """RUNNING, with the token of this claim and a lockTime that this agent wrote."""
    return AllOf((RUNNING, Equals(Attr.LOCK_TOKEN, lease.token), OneOf(Attr.LOCK_TIME, lease.written)))


# --- the writes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transition:
    """One conditional write: where ``condition`` holds, ``puts`` are set and ``drops`` are removed, atomically.

    ``proof`` holds for an item on which this write, and no other, has gone through. ``creates`` says that the item is made.
    ``queue``, ``leaves`` (the status after the write) and ``look_at`` (when an agent must next look at the task, in epoch s;
    None: as before) are for the layout of the table, which may add attributes that its index is made of.
    """

    name: str
    task_id: str
    condition: Condition
    puts: Mapping[str, Any]
    proof: Condition
    queue: str
    leaves: Status
    look_at: int | None = None
    drops: frozenset[str] = field(default_factory=frozenset)
    creates: bool = False

    @property
    def waits(self) -> bool:
        """Whether the task waits for others after the write."""
        return self.leaves is Status.PENDING and bool(self.puts.get(Attr.WAITING_FOR))


_LEASE_ATTRS: Final = frozenset({Attr.LOCK_OWNER, Attr.LOCK_TOKEN})
_OUTCOME_ATTRS: Final = frozenset({Attr.RESULT, Attr.ERROR, Attr.EXPIRES_AT})

# Programs that know only the published attributes leave these behind: one that sets a final task back to PENDING by hand, or
# runs a waiting one. A lease ends that, or DynamoDB's TTL would remove a task that is being run.
_NOT_WHILE_RUNNING: Final = frozenset({Attr.WAITING_SINCE, Attr.EXPIRES_AT})


def enqueue(
    task_id: str,
    payload: Mapping[str, Any],
    *,
    now: int,
    token: str,
    not_before: int | None = None,
    task_type: str | None = None,
    max_retry: int = DEFAULT_MAX_RETRY,
    queue: str = DEFAULT_QUEUE,
) -> Transition:
    """Create the task as PENDING. Writes the published attributes whole, so that agents of others can run it too."""
    waiting_for = dependency_ids(payload.get(DEPENDS_ON))
    look_at = now if not_before is None else max(now, not_before)
    puts: dict[str, Any] = {
        Attr.TASK_ID: task_id,
        Attr.STATUS: str(Status.PENDING),
        Attr.PAYLOAD: payload,
        Attr.RETRY_COUNT: 0,
        Attr.MAX_RETRY: max_retry,
        Attr.LOCK_TIME: look_at,
        Attr.CREATED_AT: now,
        Attr.UPDATED_AT: now,
        Attr.ENQUEUE_TOKEN: token,
        Attr.WAITING_FOR: list(waiting_for),
    }
    if waiting_for:
        puts[Attr.WAITING_SINCE] = now
    if task_type is not None:
        puts[Attr.TASK_TYPE] = task_type
    if queue != DEFAULT_QUEUE:
        puts[Attr.QUEUE] = queue
    return Transition(
        name="enqueue",
        task_id=task_id,
        condition=NOT_ENQUEUED,
        puts=puts,
        proof=Equals(Attr.ENQUEUE_TOKEN, token),
        queue=queue,
        leaves=Status.PENDING,
        look_at=look_at,
        creates=True,
    )


def claim(task: Task, *, now: int, lease_end: int, owner: str, token: str) -> Transition:
    """Take a ready task under a lease that ends at ``lease_end``. Its dependencies must be known to be met."""
    return Transition(
        name="claim",
        task_id=task.task_id,
        condition=AllOf((PENDING, due(task, now))),
        puts=_leased(now, lease_end, owner, token),
        drops=_NOT_WHILE_RUNNING,
        proof=_leased_by(token),
        queue=task.queue,
        leaves=Status.RUNNING,
        look_at=lease_end,
    )


def take_over(task: Task, *, now: int, lease_end: int, owner: str, token: str) -> Transition:
    """Take a task whose lease has ended. The lost run used one retry; the caller has checked that one is left."""
    return Transition(
        name="take over",
        task_id=task.task_id,
        condition=_expired(task, now),
        puts={
            **_leased(now, lease_end, owner, token),
            Attr.RETRY_COUNT: task.retry_count + 1,
            Attr.HISTORY: _history(task, _lost_run(task, now)),
        },
        drops=_NOT_WHILE_RUNNING,
        proof=_leased_by(token),
        queue=task.queue,
        leaves=Status.RUNNING,
        look_at=lease_end,
    )


def bury(task: Task, *, now: int, expires_at: int) -> Transition:
    """End a task whose lease has ended and which has no retry left."""
    error = TaskError(
        ErrorType.LEASE_EXPIRED,
        f"The agent {task.lock_owner or '(unknown)'} stopped renewing its lease and no retry is left "
        f"({task.retry_count} of {task.max_retry} used).",
        now,
    )
    return Transition(
        name="bury",
        task_id=task.task_id,
        condition=_expired(task, now),
        puts=_ended(Status.FAILED, now, expires_at)
        | {Attr.ERROR: error.to_record(), Attr.HISTORY: _history(task, _lost_run(task, now))}
        | _last_token(task.lock_token),
        drops=_LEASE_ATTRS | {Attr.LOCK_TIME, Attr.RESULT},
        proof=_failed_with(error),
        queue=task.queue,
        leaves=Status.FAILED,
    )


def renew(lease: Lease, *, lease_end: int, progress: Progress = None, look_at: int | None = None) -> Transition:
    """Move the lease's end on. ``lease`` must already be :meth:`Lease.trying` that end. Saves progress if there is some.

    ``look_at``: where others are to look for an ended lease from now on; never after ``lease_end``.
    """
    puts = {Attr.LOCK_TIME: lease_end} | _saved(progress)
    return Transition(
        name="renew",
        task_id=lease.task_id,
        condition=held(lease),
        puts=puts,
        proof=AllOf((RUNNING, Equals(Attr.LOCK_TOKEN, lease.token), Equals(Attr.LOCK_TIME, lease_end))),
        queue=lease.task.queue,
        leaves=Status.RUNNING,
        look_at=look_at,
    )


def complete(lease: Lease, outcome: Outcome, *, now: int, expires_at: int) -> Transition:
    """End the task as SUCCESS, or DONE where the handler said so, with its result. Progress is of no more use and goes."""
    status = Status.DONE if outcome.kind is OutcomeKind.DONE else Status.SUCCESS
    puts = _ended(status, now, expires_at) | {Attr.HISTORY: _ran(lease, outcome, now)} | _last_token(lease.token)
    if outcome.result is not None:
        puts[Attr.RESULT] = outcome.result
    return Transition(
        name="complete",
        task_id=lease.task_id,
        condition=held(lease),
        puts=puts,
        drops=_LEASE_ATTRS | {Attr.LOCK_TIME, Attr.ERROR, Attr.PROGRESS},
        proof=_left_as(lease, status),
        queue=lease.task.queue,
        leaves=status,
    )


def fail(
    lease: Lease, outcome: Outcome, *, now: int, expires_at: int, progress: Progress = None, bare: bool = False
) -> Transition:
    """End the task as FAILED. Progress stays, so that a redrive goes on from it.

    ``bare`` sheds progress and history: the way out for an item that is too full to take any other end.
    """
    error = _error_of(outcome)
    told = {} if bare else {Attr.HISTORY: _ran(lease, outcome, now)} | _saved(progress)
    shed = frozenset({Attr.HISTORY, Attr.PROGRESS} if bare else ())
    return Transition(
        name="fail",
        task_id=lease.task_id,
        condition=held(lease),
        puts=_ended(Status.FAILED, now, expires_at) | {Attr.ERROR: error} | _last_token(lease.token) | told,
        drops=_LEASE_ATTRS | {Attr.LOCK_TIME, Attr.RESULT} | shed,
        proof=AllOf((_left_as(lease, Status.FAILED), FieldEquals(Attr.ERROR, "type", error["type"]))),
        queue=lease.task.queue,
        leaves=Status.FAILED,
    )


def retry(lease: Lease, outcome: Outcome, *, now: int, delay: float, progress: Progress = None) -> Transition:
    """Put the task back to run again after ``delay`` seconds, one retry used."""
    used = lease.task.retry_count + 1
    return Transition(
        name="retry",
        task_id=lease.task_id,
        condition=held(lease),
        puts=_back(lease, outcome, now, delay) | _saved(progress) | {Attr.RETRY_COUNT: used, Attr.ERROR: _error_of(outcome)},
        drops=_LEASE_ATTRS,
        proof=AllOf((_left_as(lease, Status.PENDING), Equals(Attr.RETRY_COUNT, used))),
        queue=lease.task.queue,
        leaves=Status.PENDING,
        look_at=math.ceil(now + delay),
    )


def release(lease: Lease, outcome: Outcome, *, now: int, delay: float, progress: Progress = None) -> Transition:
    """Put the task back after ``delay`` seconds without charging a retry: a drain, or a handler that snoozes."""
    released = lease.task.release_count + 1
    return Transition(
        name="release",
        task_id=lease.task_id,
        condition=held(lease),
        puts=_back(lease, outcome, now, delay) | _saved(progress) | {Attr.RELEASE_COUNT: released},
        drops=_LEASE_ATTRS,
        proof=AllOf((_left_as(lease, Status.PENDING), Equals(Attr.RELEASE_COUNT, released))),
        queue=lease.task.queue,
        leaves=Status.PENDING,
        look_at=math.ceil(now + delay),
    )


def defer(task: Task, *, now: int, wait: float, unmet: Sequence[str]) -> Transition:
    """Let a waiting task wait on: look again after ``wait`` seconds, for what is still unmet."""
    look_at = math.ceil(now + wait)
    since = now if task.waiting_since is None else task.waiting_since
    return Transition(
        name="defer",
        task_id=task.task_id,
        condition=_pending_as_seen(task),
        puts={
            Attr.LOCK_TIME: look_at,
            Attr.WAITING_FOR: list(unmet),
            Attr.WAITING_SINCE: since,
            Attr.UPDATED_AT: now,
        },
        proof=AllOf((PENDING, Equals(Attr.LOCK_TIME, look_at), Equals(Attr.WAITING_FOR, list(unmet)))),
        queue=task.queue,
        leaves=Status.PENDING,
        look_at=look_at,
    )


def unblock(task: Task, *, now: int) -> Transition:
    """Say that all dependencies are met: from here the task counts as ready, for any agent."""
    return Transition(
        name="unblock",
        task_id=task.task_id,
        condition=_pending_as_seen(task),
        puts={Attr.LOCK_TIME: now, Attr.WAITING_FOR: [], Attr.UPDATED_AT: now},
        drops=frozenset({Attr.WAITING_SINCE}),
        proof=AllOf((PENDING, Equals(Attr.LOCK_TIME, now), Equals(Attr.WAITING_FOR, []))),
        queue=task.queue,
        leaves=Status.PENDING,
        look_at=now,
    )


def abandon(task: Task, error: TaskError, *, now: int, expires_at: int) -> Transition:
    """End a waiting task whose dependencies cannot be met any more."""
    return Transition(
        name="abandon",
        task_id=task.task_id,
        condition=_pending_as_seen(task),
        puts=_ended(Status.FAILED, now, expires_at) | {Attr.ERROR: error.to_record()},
        drops=frozenset({Attr.LOCK_TIME, Attr.WAITING_SINCE, Attr.RESULT}),
        proof=_failed_with(error),
        queue=task.queue,
        leaves=Status.FAILED,
    )


def cancel(task: Task, *, now: int, expires_at: int, reason: str = "") -> Transition:
    """End a task that has not ended. One that runs keeps its lockTime: its agent stops the handler at the next renewal, and a
    redrive before that moment waits for it. So does one that was redriven and still waits for such a lease: a lockTime that
    has not come stays.
    """
    error = TaskError(ErrorType.CANCELLED, reason or "Cancelled on request.", now)
    running = task.status is Status.RUNNING
    puts = _ended(Status.FAILED, now, expires_at) | {Attr.ERROR: error.to_record()}
    if running:
        run = Run(task.lock_owner or "", task.updated_at, now, str(OutcomeKind.CANCELLED))
        puts |= {Attr.HISTORY: _history(task, run)} | _last_token(task.lock_token)
    keeps_lock_time = running or not task.is_due(now)
    drops = _LEASE_ATTRS | {Attr.WAITING_SINCE, Attr.RESULT}
    return Transition(
        name="cancel",
        task_id=task.task_id,
        condition=AllOf(
            (Equals(Attr.STATUS, str(task.status)), as_seen(task, Attr.UPDATED_AT), as_seen(task, Attr.LOCK_TOKEN))
        ),
        puts=puts,
        drops=drops if keeps_lock_time else drops | {Attr.LOCK_TIME},
        proof=_failed_with(error),
        queue=task.queue,
        leaves=Status.FAILED,
    )


def redrive(task: Task, *, now: int, token: str, not_before: int | None = None) -> Transition:
    """Give a FAILED task all its retries again. It waits for the lease that a cancel may have left, and looks at its
    dependencies anew."""
    left_lease = 0 if task.lock_time is None else math.ceil(task.lock_time)
    look_at = max(now, left_lease, not_before or 0)
    unmet = task.dependencies
    puts: dict[str, Any] = {
        Attr.STATUS: str(Status.PENDING),
        Attr.RETRY_COUNT: 0,
        Attr.LOCK_TIME: look_at,
        Attr.UPDATED_AT: now,
        Attr.ENQUEUE_TOKEN: token,
        Attr.WAITING_FOR: list(unmet),
    }
    if unmet:
        puts[Attr.WAITING_SINCE] = now
    return Transition(
        name="redrive",
        task_id=task.task_id,
        condition=AllOf((FAILED, as_seen(task, Attr.UPDATED_AT), as_seen(task, Attr.LAST_TOKEN))),
        puts=puts,
        drops=(_OUTCOME_ATTRS | _LEASE_ATTRS | {Attr.WAITING_SINCE}).difference(puts),
        proof=Equals(Attr.ENQUEUE_TOKEN, token),
        queue=task.queue,
        leaves=Status.PENDING,
        look_at=look_at,
    )


def refile(task: Task) -> Transition:
    """Say anew where an index shows the task: one that was written before its layout was, or by a program that knows of none.

    A lease still good is looked at when it ends as it stands now; it may be renewed meanwhile, and never ends earlier.
    """
    seen = (Attr.LOCK_TOKEN,) if task.status is Status.RUNNING else (Attr.LOCK_TIME, Attr.WAITING_FOR)
    waits: dict[str, Any] = {Attr.WAITING_FOR: list(task.unmet)} if task.is_waiting else {}
    return Transition(
        name="refile",
        task_id=task.task_id,
        condition=AllOf((Equals(Attr.STATUS, str(task.status)), *(as_seen(task, attr) for attr in seen))),
        puts=waits,
        proof=Absent(Attr.TASK_ID),
        queue=task.queue,
        leaves=task.status,
        look_at=0 if task.lock_time is None else math.floor(task.lock_time),
    )


# --- what the writes share ----------------------------------------------------------------------------------------------


def _leased(now: int, lease_end: int, owner: str, token: str) -> dict[str, Any]:
    return {
        Attr.STATUS: str(Status.RUNNING),
        Attr.LOCK_TIME: lease_end,
        Attr.LOCK_OWNER: owner,
        Attr.LOCK_TOKEN: token,
        Attr.WAITING_FOR: [],
        Attr.UPDATED_AT: now,
    }


def _leased_by(token: str) -> Condition:
    return AllOf((RUNNING, Equals(Attr.LOCK_TOKEN, token)))


def _expired(task: Task, now: int) -> Condition:
    return AllOf((RUNNING, due(task, now), as_seen(task, Attr.LOCK_TOKEN), as_seen(task, Attr.RETRY_COUNT)))


def _pending_as_seen(task: Task) -> Condition:
    """PENDING as it was read. A redrive may leave lockTime at the second it had, so its token is looked at too."""
    return AllOf((PENDING, as_seen(task, Attr.LOCK_TIME), as_seen(task, Attr.ENQUEUE_TOKEN)))


def _left_as(lease: Lease, status: Status) -> Condition:
    return AllOf((Equals(Attr.LAST_TOKEN, lease.token), Equals(Attr.STATUS, str(status))))


def _failed_with(error: TaskError) -> Condition:
    """FAILED for this reason at this second. Two that do so in the same second cannot be told apart, and need not be."""
    return AllOf((FAILED, FieldEquals(Attr.ERROR, "type", str(error.type)), FieldEquals(Attr.ERROR, "at", error.at)))


def _ended(status: Status, now: int, expires_at: int) -> dict[str, Any]:
    return {Attr.STATUS: str(status), Attr.UPDATED_AT: now, Attr.EXPIRES_AT: expires_at}


def _back(lease: Lease, outcome: Outcome, now: int, delay: float) -> dict[str, Any]:
    return {
        Attr.STATUS: str(Status.PENDING),
        Attr.LOCK_TIME: math.ceil(now + delay),
        Attr.UPDATED_AT: now,
        Attr.HISTORY: _ran(lease, outcome, now),
    } | _last_token(lease.token)


def _saved(progress: Progress) -> dict[str, Any]:
    return {} if progress is None else {Attr.PROGRESS: progress}


def _last_token(token: str | None) -> dict[str, Any]:
    return {} if token is None else {Attr.LAST_TOKEN: token}


def _error_of(outcome: Outcome) -> dict[str, Any]:
    return (outcome.error or TaskError("Error", "")).to_record()


def _ran(lease: Lease, outcome: Outcome, now: int) -> list[dict[str, Any]]:
    error = "" if outcome.error is None else str(outcome.error)
    return _history(lease.task, Run(lease.owner, lease.began, now, str(outcome.kind), error))


def _lost_run(task: Task, now: int) -> Run:
    ended = now if task.lock_time is None else int(task.lock_time)
    return Run(task.lock_owner or "", task.updated_at, ended, str(OutcomeKind.LOST), str(ErrorType.LEASE_EXPIRED))


def _history(task: Task, run: Run) -> list[dict[str, Any]]:
    return [each.to_record() for each in (*task.history, run)[-HISTORY_RUNS:]]
