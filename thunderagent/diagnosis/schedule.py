"""Rules about PENDING tasks that wait for a time."""

from __future__ import annotations

from collections.abc import Iterator

from thunderagent.diagnosis.finding import Finding, Severity, counted
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.task import Status, Task
from thunderagent.times import EPOCH_LIMIT, ago, moment


def scheduled(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """How many tasks wait for a time, and until when: not a problem, but an answer to "why does it not run?"."""
    waiting = [task for task in _later(observation) if _start(task) <= observation.now + patience.far]
    if waiting:
        first, last = min(waiting, key=_start), max(waiting, key=_start)
        retried = sum(task.retry_count > 0 for task in waiting)
        again = f" {retried} of them to be retried." if retried else ""
        yield Finding(
            Severity.INFO,
            "scheduled",
            counted(waiting),
            f"Waiting for a time: {first.task_id} is the next, {ago(_start(first), observation.now)}; the last starts "
            f"at {moment(_start(last))}.{again}",
            "None is needed. To run one now, enqueue its payload again under another id, and cancel it.",
        )


def far_away(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """No task waits for a time that is hardly meant."""
    for task in _later(observation):
        if observation.now + patience.far < _start(task) < EPOCH_LIMIT:
            yield Finding(
                Severity.WARNING,
                "scheduled-far-away",
                task.task_id,
                f"It is not to run before {moment(_start(task))}, {ago(_start(task), observation.now)}.",
                "If that is not meant, cancel it and enqueue its payload again under another id.",
            )


def _later(observation: Observation) -> Iterator[Task]:
    for task in observation.tasks(Status.PENDING):
        if not task.is_waiting and not task.is_due(observation.now):
            yield task


def _start(task: Task) -> float:
    return task.lock_time or 0.0
