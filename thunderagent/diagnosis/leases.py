"""Rules about RUNNING tasks and their leases."""

from __future__ import annotations

from collections.abc import Iterator

from thunderagent.diagnosis.finding import Finding, Severity
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.task import Status, Task
from thunderagent.times import EPOCH_LIMIT, ago, moment, span


def expired(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """A lease that has ended is taken over soon."""
    for task in _over(observation):
        if task.lock_token is None:
            continue
        late = observation.now - _ended(task)
        next_step = "taken over by another agent" if task.retries_left else "buried as FAILED, no retry being left"
        what = f"It is RUNNING, but its lease ended {span(late)} ago; {task.lock_owner or 'its agent'} stopped renewing it."
        if late > patience.recovery:
            remedy = (
                f"It should have been {next_step} within {span(patience.recovery)}: no agent of ThunderAgent seems to look. "
                "Start agents on this table."
            )
            yield Finding(Severity.WARNING, "lease-expired", task.task_id, what, remedy)
        else:
            remedy = f"None is needed: it is {next_step} within {span(patience.recovery)}, where agents run."
            yield Finding(Severity.INFO, "lease-just-ended", task.task_id, what, remedy)


def status_not_written(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """A task that was run by a program of others does not stay RUNNING."""
    for task in _over(observation):
        late = observation.now - _ended(task)
        if task.lock_token is not None or late <= patience.recovery:
            continue
        lease = "has no lockTime" if task.lock_time is None else f"its lease ended {span(late)} ago"
        yield Finding(
            Severity.WARNING,
            "status-not-written",
            task.task_id,
            f"It is RUNNING, {lease}, and it carries no lockToken: a program of others took it and then stopped, or "
            "ran it and never wrote how it ended.",
            "See that the program writes SUCCESS or FAILED, also when its handler raises. An agent of ThunderAgent "
            "on this table takes such tasks over by itself.",
        )


def endless(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """No lease is so long that nobody would ever take the task over."""
    for task in observation.tasks(Status.RUNNING):
        if task.lock_time is not None and observation.now + patience.lease < task.lock_time < EPOCH_LIMIT:
            yield Finding(
                Severity.WARNING,
                "lease-endless",
                task.task_id,
                f"Its lease ends only at {moment(task.lock_time)}, {ago(task.lock_time, observation.now)}: if its "
                f"agent ({task.lock_owner or 'unknown'}) is lost, nobody takes the task over before.",
                "Look at the lease setting and the clock of that agent. If it is gone, cancel the task and enqueue "
                "it again by another taskId; a redrive would wait for the lease.",
            )


def _over(observation: Observation) -> Iterator[Task]:
    return (task for task in observation.tasks(Status.RUNNING) if task.is_due(observation.now))


def _ended(task: Task) -> float:
    return task.updated_at if task.lock_time is None else task.lock_time
