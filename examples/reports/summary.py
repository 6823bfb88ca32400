"""What the demo says when it is over: pure functions from the ended tasks to lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from examples.reports.index import Failure
from thunderagent import Status, Task
from thunderagent.times import span

DEPENDENTS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Made:
    """The files that a person may want to look at."""

    index_page: Path
    pool_page: Path
    log: Path


@dataclass(frozen=True, slots=True)
class Result:
    """How a demo went. ``seconds``: from the first look at the backlog to the pool's return to zero."""

    tasks: Mapping[str, Task]
    failures: Sequence[Failure]
    seconds: float
    most_agents: int
    made: Made
    expected: str = ""
    """Why there are failures, where they are meant to be."""


def summary(result: Result) -> list[str]:
    """The lines, in the order in which a person wants to know."""
    return [*_outcome(result), *_failures(result), "", *_where(result)]


def waits(tasks: Mapping[str, Task]) -> list[float]:
    """Seconds from the moment a task was ready to its first run, of all tasks that ran and were never put off.

    A task is ready when it has been enqueued and its last dependency has ended.
    """
    return [
        max(0, task.history[0].began - _ready_at(task, tasks))
        for task in tasks.values()
        if task.history and task.release_count == 0 and task.retry_count == 0
    ]


def _ready_at(task: Task, tasks: Mapping[str, Task]) -> int:
    met = [tasks[each] for each in task.dependencies if each in tasks]
    return max([task.created_at, *(each.history[-1].ended for each in met if each.history)])


def _outcome(result: Result) -> Iterator[str]:
    counts = Counter(task.status for task in result.tasks.values())
    told = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    yield f"All {len(result.tasks)} tasks have ended after {span(result.seconds)}: {told}."
    yield f"The pool went from 0 to {result.most_agents} agents and back to 0."
    if found := waits(result.tasks):
        yield f"From ready to running, half of the tasks waited {span(median(found))} or less, the longest {span(max(found))}."


def _failures(result: Result) -> Iterator[str]:
    if not result.failures:
        return
    yield ""
    yield f"FAILED{f', as they should: {result.expected}' if result.expected else ''}"
    for failure in result.failures:
        yield f"  {failure.task_id}"
        yield f"    {failure.reason}"
        if failure.dependents:
            named = ", ".join(failure.dependents[:DEPENDENTS_NAMED])
            more = len(failure.dependents) - DEPENDENTS_NAMED
            yield f"    and because of it: {named}{f' and {more} more' if more > 0 else ''}"


def _where(result: Result) -> Iterator[str]:
    yield f"Pages:  {result.made.index_page}"
    yield f"        {result.made.index_page.as_uri()}"
    yield f"Pool:   {result.made.pool_page}"
    yield f"Log:    {result.made.log}"
