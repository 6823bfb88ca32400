"""What an agent decides, as pure functions: what to do about a candidate, about a waiting task, and about an outcome."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from thunderagent import transitions
from thunderagent.agent.handler import RouteInfo
from thunderagent.agent.runner import RunEnd
from thunderagent.backoff import full_jitter
from thunderagent.settings import AgentSettings
from thunderagent.store.base import BatchRead
from thunderagent.task import ErrorType, Outcome, OutcomeKind, Status, Task, TaskError, as_int
from thunderagent.transitions import Lease, Progress, Transition

DAY: Final = 86400

WAIT_FIRST: Final = 1.0
WAIT_GROWTH: Final = 0.5
"""A waiting task is looked at after 1 s, and then each time after half of the time that it has waited so far."""


# --- dependencies -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Met:
    """All dependencies are met: the task may be claimed."""


@dataclass(frozen=True, slots=True)
class WaitOn:
    """Some are not: look again after ``wait`` seconds, for those in ``unmet``."""

    wait: float
    unmet: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GiveUp:
    """They cannot be met any more."""

    error: TaskError


def judge_dependencies(task: Task, read: BatchRead, now: int, settings: AgentSettings) -> Met | WaitOn | GiveUp:
    """What a look at a waiting task's dependencies says (``read`` holds at least those in ``task.unmet``)."""
    unmet = tuple(each for each in task.unmet if each not in read.found or not read.found[each].status.is_met)
    if not unmet:
        return Met()
    failed = [each for each in unmet if each in read.found and read.found[each].status is Status.FAILED]
    if failed:
        return GiveUp(TaskError(ErrorType.DEPENDENCY_FAILED, _because(failed[0], read.found[failed[0]]), now))
    waited = now - (task.created_at if task.waiting_since is None else task.waiting_since)
    missing = [each for each in unmet if each not in read.found and each not in read.unknown]
    if missing and waited >= settings.dependency_missing:
        return GiveUp(TaskError(ErrorType.DEPENDENCY_MISSING, f"The dependency {missing[0]} is not in the table.", now))
    if waited >= settings.dependency_timeout:
        text = f"Waited {waited} s for {', '.join(unmet[:5])}, the longest allowed. A cycle of dependencies ends so too."
        return GiveUp(TaskError(ErrorType.DEPENDENCY_TIMEOUT, text, now))
    return WaitOn(min(settings.dependency_wait_max, max(WAIT_FIRST, waited * WAIT_GROWTH)), unmet)


def _because(task_id: str, failed: Task) -> str:
    return f"The dependency {task_id} failed: {failed.error or 'no error was written'}"


class StopReason(StrEnum):
    """Why a run is stopped before its handler ended."""

    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    TAKEN = "taken over"
    DRAINED = "drained"


GONE: Final = frozenset({StopReason.CANCELLED, StopReason.TAKEN})
"""The table has said that the task is not this agent's any more: nothing more is written."""

# --- outcomes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RetryDelays:
    """Of one task type, in seconds."""

    base: float
    cap: float


def retry_delays(info: RouteInfo | None, settings: AgentSettings) -> RetryDelays:
    """The retry policy of a task type; a type's own cap or base wins, and the other one gives way."""
    base = info.settings.retry_base if info else None
    cap = info.settings.retry_cap if info else None
    if base is None:
        base = min(settings.retry_base, cap) if cap is not None else settings.retry_base
    if cap is None:
        cap = max(settings.retry_cap, base)
    return RetryDelays(base, cap)


def time_limit(info: RouteInfo | None, settings: AgentSettings) -> float | None:
    """Seconds that one run may take; None for no limit."""
    own = info.settings.timeout if info else None
    limit = settings.timeout if own is None else own
    return limit or None


def settle(
    lease: Lease,
    outcome: Outcome,
    *,
    now: int,
    delays: RetryDelays,
    keep_days: float,
    progress: Progress,
    rng: random.Random,
) -> Transition:
    """The write that ends a run."""
    outcome = _dated(outcome, now)
    expires_at = now + int(keep_days * DAY)
    match outcome.kind:
        case OutcomeKind.SUCCESS | OutcomeKind.DONE:
            return transitions.complete(lease, outcome, now=now, expires_at=expires_at)
        case OutcomeKind.SNOOZED | OutcomeKind.RELEASED:
            return transitions.release(lease, outcome, now=now, delay=outcome.delay or 0.0, progress=progress)
        case OutcomeKind.RETRY if lease.task.retries_left > 0:
            delay = outcome.delay
            if delay is None:
                delay = full_jitter(rng, lease.task.retry_count, base=delays.base, cap=delays.cap)
            return transitions.retry(lease, outcome, now=now, delay=delay, progress=progress)
        case _:
            outcome = replace(outcome, kind=OutcomeKind.FAILED)
            bare = outcome.error is not None and outcome.error.type == ErrorType.OUTCOME_REFUSED
            return transitions.fail(lease, outcome, now=now, expires_at=expires_at, progress=progress, bare=bare)


def outcome_of_end(end: RunEnd, reason: StopReason | None, limit: float | None) -> Outcome:
    """What a run that may have been stopped came to. One that ended well all the same counts as it ended."""
    ended_well = not end.stopped and end.outcome.kind not in {OutcomeKind.RETRY, OutcomeKind.RELEASED}
    if reason is None or ended_well:
        return end.outcome
    if reason is StopReason.TIMED_OUT:
        return Outcome(OutcomeKind.RETRY, error=TaskError(ErrorType.TIMED_OUT, f"The run took longer than {limit or 0:g} s."))
    return Outcome(OutcomeKind.RELEASED)


def refused_outcome(outcome: Outcome) -> Outcome:
    """What a run comes to when the table refuses its outcome as invalid: a failure in few bytes, so that the task ends."""
    return Outcome(OutcomeKind.FAILED, error=TaskError(ErrorType.OUTCOME_REFUSED, f"The item could not take: {outcome.kind}."))


def wait_before_start(task: Task, now: int) -> float:
    """Seconds from when a task was ready to now."""
    since = as_int(task.lock_time, task.created_at) if task.status is Status.PENDING else now
    return max(0.0, float(now - max(since, task.created_at)))


def _dated(outcome: Outcome, now: int) -> Outcome:
    if outcome.error is None:
        return outcome
    error = TaskError(outcome.error.type, outcome.error.message, now)
    return Outcome(outcome.kind, outcome.result, error, outcome.delay)
