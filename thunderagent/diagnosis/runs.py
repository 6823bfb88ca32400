"""Rules about the runs that tasks had, from their history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from thunderagent.diagnosis.finding import NAMED, Finding, Severity, counted, ids_of, named
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.task import OutcomeKind, Run, Status, Task
from thunderagent.times import moment, span

OVERLAP = 1.0
"""Seconds by which runs may seem to overlap since their times are whole seconds."""


def overlapping(observation: Observation, _: Patience) -> Iterator[Finding]:
    """No two runs of a task went on at the same time."""
    for task in observation.tasks():
        for first, second in combinations(_runs(task), 2):
            shared = min(first.ended, second.ended) - max(first.began, second.began)
            if shared > OVERLAP:
                yield Finding(
                    Severity.WARNING,
                    "runs-overlap",
                    task.task_id,
                    f"It was run by {first.owner or 'an unknown agent'} and {second.owner or 'an unknown agent'} at "
                    f"the same time, from {moment(max(first.began, second.began))}{_length(shared)}.",
                    "Agents of ThunderAgent do not do this while they renew their lease: look for one that lost the "
                    "table or was paused for longer than its lease, and for programs of others that take tasks "
                    "without a condition.",
                )
                break


def several_owners(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Which tasks were run by more than one agent, one after the other: not a problem, but a question that is asked."""
    shared = {task.task_id: owners for task in observation.tasks() if len(owners := _owners(task)) > 1}
    if shared:
        first = "; ".join(f"{task_id} by {', '.join(owners)}" for task_id, owners in list(shared.items())[:NAMED])
        rest = f"; and {len(shared) - NAMED} more" if len(shared) > NAMED else ""
        yield Finding(
            Severity.INFO,
            "several-owners",
            counted(shared),
            f"Run by more than one agent, one after the other: {first}{rest}.",
            "None is needed: that is how retries, drains and take-overs look. `thunderagent task get ID` shows the runs.",
        )


def same_error(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """An open task does not fail with the same error each time."""
    for task in _open(observation):
        last = task.history[-patience.repeats :]
        errors = {run.error for run in last}
        charged = all(run.outcome in {OutcomeKind.RETRY, OutcomeKind.LOST} for run in last)
        if len(last) == patience.repeats and charged and len(errors) == 1 and last[-1].error:
            yield Finding(
                Severity.WARNING,
                "same-error",
                task.task_id,
                f"Its last {len(last)} runs failed with the same error: {last[-1].error}. It has {task.retries_left} "
                "retries left.",
                "It will hardly end otherwise: mend the handler or the payload. A handler raises Fail for what no "
                "retry can help.",
            )


def lost_again(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """An open task does not lose its agent again and again."""
    for task in _open(observation):
        lost = [run for run in task.history if run.outcome == OutcomeKind.LOST]
        if len(lost) >= patience.losses:
            yield Finding(
                Severity.WARNING,
                "agent-lost-again",
                task.task_id,
                f"{len(lost)} of its last {len(task.history)} runs ended because the agent stopped renewing: "
                f"{named(list(dict.fromkeys(run.owner for run in lost)))}.",
                "It may be what ends them: look for out-of-memory kills and node evictions at these times, and limit "
                "a child's memory (THUNDERAGENT_MEMORY_MB), so that it costs the task and not the agent.",
            )


def released_again(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """An open task is not put back again and again without a charge."""
    for task in _open(observation):
        if task.release_count >= patience.releases:
            yield Finding(
                Severity.WARNING,
                "released-again",
                task.task_id,
                f"It was put back {task.release_count} times without using a retry, so nothing ever ends it.",
                "Either its handler snoozes each time, or agents drain before it is done: raise the drain time above "
                "its run time, save progress with task.save, or let the handler give up after some tries.",
            )


def failures(observation: Observation, _: Patience) -> Iterator[Finding]:
    """What FAILED tasks failed of: not a fault of the table, but the first thing to look at."""
    by_type: dict[str, list[Task]] = defaultdict(list)
    for task in observation.tasks(Status.FAILED):
        by_type["(no error)" if task.error is None else task.error.type].append(task)
    for name, tasks in sorted(by_type.items(), key=lambda item: -len(item[1])):
        error = tasks[0].error
        first_line = "" if error is None or not error.message else error.message.splitlines()[0][:200].rstrip(".")
        message = f" The newest says: {first_line}." if first_line else ""
        yield Finding(
            Severity.INFO,
            "failed",
            counted(tasks),
            f"FAILED with {name}: {named(ids_of(tasks))}.{message}",
            "Once the cause is mended, `thunderagent task redrive ID`, or --all-failed, gives them their retries again.",
        )


def _open(observation: Observation) -> Iterator[Task]:
    return observation.tasks(Status.PENDING, Status.RUNNING)


def _owners(task: Task) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run.owner for run in _runs(task) if run.owner))


def _runs(task: Task) -> list[Run]:
    """The history, and the run under way: its claim was the last write of updatedAt, since renewals leave that alone."""
    if task.status is not Status.RUNNING:
        return list(task.history)
    return [*task.history, Run(task.lock_owner or "", task.updated_at, _FOREVER, "running")]


def _length(seconds: float) -> str:
    return " until now" if seconds > _FOREVER / 2 else f" for {span(seconds)}"


_FOREVER = 10**15
