"""One task's story, from its enqueueing to what it waits for now: pure functions from a task to its chapters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from thunderagent.cli.taskview import state
from thunderagent.task import Run, Status, Task
from thunderagent.times import moment, span

STORY_TITLES = ("when", "what", "took", "owner", "error")


@dataclass(frozen=True, slots=True)
class Chapter:
    """One thing that happened to a task, or happens now. ``at`` is in epoch seconds; ``seconds``: how long it took."""

    at: float
    what: str
    seconds: float | None = None
    owner: str = ""
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        told = {"at": self.at, "what": self.what, "seconds": self.seconds, "owner": self.owner, "error": self.error}
        return {name: value for name, value in told.items() if value not in (None, "")}


def story_of(task: Task, now: float) -> list[Chapter]:
    """What happened, the earliest first. The table keeps the last runs of a task; earlier ones are told as a number."""
    return [Chapter(task.created_at, "enqueued"), *_past(task), *_present(task, now)]


def story_row(chapter: Chapter) -> tuple[str, ...]:
    """A chapter as a row under :data:`STORY_TITLES`."""
    took = "" if chapter.seconds is None else span(chapter.seconds)
    return moment(chapter.at), chapter.what, took, chapter.owner, chapter.error


def headline(task: Task, now: float) -> str:
    """The task in one sentence: its id, status, type, and where it stands."""
    kind = f" of type {task.task_type}" if task.task_type else ""
    standing = state(task, now)
    return f"{task.task_id}{kind} is {task.status}{f': {standing}' if standing else ''}"


def counts(task: Task, now: float) -> dict[str, str]:
    """Names and values that sum a story up: how long it waited and ran, and what it may still use."""
    waited, ran = totals(task, now)
    released = f"; released {task.release_count} times, uncharged" if task.release_count else ""
    return {
        "waited": span(waited) if waited else "not at all",
        "ran": span(ran) if ran else "not yet" if not task.history else "less than a second",
        "retries": f"{task.retry_count} of {task.max_retry} used{released}",
    }


def totals(task: Task, now: float) -> tuple[float, float]:
    """Seconds that it spent waiting and running, as far as the runs that are kept tell."""
    ran = float(sum(run.ended - run.began for run in task.history))
    lived = (task.updated_at if task.status.is_final else now) - task.created_at
    return max(0.0, lived - ran), ran


def waits_for(task: Task, dependencies: Mapping[str, str]) -> dict[str, str]:
    """The tasks that this one waits for, each with its status."""
    return {each: dependencies.get(each, "not known") for each in task.unmet} if task.is_waiting else {}


def _past(task: Task) -> Iterator[Chapter]:
    earlier = task.retry_count + task.release_count - len(task.history)
    if earlier > 0 and task.history:
        yield Chapter(task.created_at, f"{earlier} earlier run{'s' * (earlier != 1)} of which nothing is kept")
    before = float(task.created_at)
    for run in task.history:
        yield from _waited(before, run.began)
        yield _run(run)
        before = run.ended


def _waited(since: float, until: float) -> Iterator[Chapter]:
    if until - since >= 1:
        yield Chapter(since, "waited", until - since)


def _run(run: Run) -> Chapter:
    return Chapter(run.began, f"ran: {run.outcome}", run.ended - run.began, run.owner, run.error)


def _present(task: Task, now: float) -> Iterator[Chapter]:
    last = float(task.history[-1].ended if task.history else task.created_at)
    if task.status is Status.PENDING:
        yield Chapter(last, "waits for other tasks" if task.is_waiting else _waiting_alone(task, now), max(0.0, now - last))
    elif task.status is Status.RUNNING:
        yield Chapter(task.updated_at, f"runs: {state(task, now)}", None, task.lock_owner or "")
    else:
        error = "" if task.error is None else str(task.error)
        yield Chapter(task.updated_at, f"ended: {task.status}", None, "", error)


def _waiting_alone(task: Task, now: float) -> str:
    return "waits for an agent" if task.is_due(now) else "waits for its time"
