"""A task as people read it, and as JSON: pure functions from a task and the table's time to text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thunderagent.cli.jsonvalues import write_json
from thunderagent.task import Attr, Run, Status, Task
from thunderagent.times import ago, brief, moment, span

LIST_TITLES = ("task", "status", "type", "age", "retries", "state", "owner")
RUN_TITLES = ("began", "took", "outcome", "owner", "error")

ERROR_CHARS = 80
"""Characters of an error that a list shows of each task."""


def task_as_json(task: Task) -> dict[str, Any]:
    """Every attribute of the item under its own name, those of other programs too, and as it stands in the table."""
    return {str(name): value for name, value in sorted(task.record.items(), key=_published_order)}


def list_row(task: Task, now: float) -> tuple[str, ...]:
    """A task as a row under :data:`LIST_TITLES`."""
    return (
        task.task_id,
        str(task.status),
        task.task_type or "",
        brief(now - task.created_at) if task.created_at else "",
        f"{task.retry_count}/{task.max_retry}",
        state(task, now),
        task.lock_owner or "",
    )


def state(task: Task, now: float) -> str:
    """In a few words, what the task is waiting for, how long its lease lasts, or how it ended."""
    match task.status:
        case Status.PENDING:
            return _pending(task, now)
        case Status.RUNNING:
            return _running(task, now)
        case Status.FAILED:
            return "" if task.error is None else _cut(str(task.error))
        case _:
            return f"ended {brief(now - task.updated_at)} ago"


def task_fields(task: Task, now: float, dependencies: Mapping[str, str]) -> dict[str, str]:
    """Names and values for the view of one task. ``dependencies`` gives the status of each that is still waited for."""
    fields = {
        "task": task.task_id,
        "status": str(task.status),
        "type": task.task_type,
        "created": _when(task.created_at, now),
        "updated": _when(task.updated_at, now),
        "starts": _start(task, now),
        "waits for": "\n".join(f"{each} ({dependencies.get(each, 'not known')})" for each in task.unmet * task.is_waiting),
        "owner": task.lock_owner,
        "lease": _lease(task, now),
        "retries": _retries(task),
        "expires": _when(task.expires_at or 0, now),
        "error": None if task.error is None else str(task.error),
    }
    values = {"payload": task.payload, "progress": task.progress, "result": task.result}
    shown = {name: write_json(value, indent=2) for name, value in values.items() if value is not None}
    return {name: text for name, text in fields.items() if text} | shown


def run_row(run: Run) -> tuple[str, ...]:
    """A run as a row under :data:`RUN_TITLES`."""
    return moment(run.began), span(run.ended - run.began), run.outcome, run.owner, run.error


def _pending(task: Task, now: float) -> str:
    if task.is_waiting:
        return f"waits for {len(task.unmet)} task{'s' * (len(task.unmet) != 1)}"
    if task.lock_time is not None and not task.is_due(now):
        return f"starts in {brief(task.lock_time - now)}"
    return f"ready for {brief(now - _ready_since(task))}"


def _running(task: Task, now: float) -> str:
    if task.lock_time is None:
        return "no lease"
    left = task.lock_time - now
    return f"lease has {brief(left)}" if left > 0 else f"lease over for {brief(left)}"


def _start(task: Task, now: float) -> str:
    """From when on a PENDING task may run, or is looked at again."""
    if task.status is not Status.PENDING:
        return ""
    if task.lock_time is not None and not task.is_due(now):
        look = "when its dependencies are met; looked at again at" if task.is_waiting else "not before"
        return f"{look} {_when(task.lock_time, now)}"
    if task.is_waiting:
        return "when its dependencies are met; due for a look"
    return f"when an agent takes it; ready for {span(now - _ready_since(task))}"


def _ready_since(task: Task) -> float:
    return max(task.created_at, task.lock_time or 0)


def _lease(task: Task, now: float) -> str:
    if task.status is not Status.RUNNING:
        return ""
    if task.lock_time is None:
        return "none; any agent may take it over"
    if task.is_due(now):
        return f"ended {ago(task.lock_time, now)}; any agent may take it over"
    return f"ends {ago(task.lock_time, now)}"


def _retries(task: Task) -> str:
    released = f", released {task.release_count} times without a charge" if task.release_count else ""
    return f"{task.retry_count} of {task.max_retry} used{released}"


def _when(epoch: float, now: float) -> str:
    return f"{moment(epoch)} ({ago(epoch, now)})" if epoch else ""


def _cut(text: str) -> str:
    first = text.split("\n", 1)[0]
    return first if len(first) <= ERROR_CHARS else first[: ERROR_CHARS - 1] + "…"


_ORDER = {str(attr): position for position, attr in enumerate(Attr)}


def _published_order(item: tuple[str, Any]) -> tuple[int, str]:
    name = str(item[0])
    return _ORDER.get(name, len(_ORDER)), name
