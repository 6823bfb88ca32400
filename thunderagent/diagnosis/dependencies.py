"""Rules about tasks that wait for other tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from thunderagent.diagnosis.finding import Finding, Severity, counted, ids_of, named
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.task import Status, Task
from thunderagent.times import ago, span


def cycles(observation: Observation, _: Patience) -> Iterator[Finding]:
    """No tasks wait for each other."""
    for cycle in find_cycles(_edges(observation)):
        yield Finding(
            Severity.ERROR,
            "dependency-cycle",
            " -> ".join((*cycle, cycle[0])),
            "These tasks wait for each other, so none of them can ever run; they fail when their dependency time-out is over."
            if len(cycle) > 1
            else "This task waits for itself, so it can never run; it fails when its dependency time-out is over.",
            "Cancel them, and enqueue them again without one of the dependencies.",
        )


def failed(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """What a task waits for has not FAILED."""
    for task in _waiting(observation):
        culprits = [each for each in task.unmet if _status(observation, each) is Status.FAILED]
        if culprits:
            late = _overdue(task, observation) > patience.look
            look = "No agent has looked at it since: start agents." if late else "It fails when an agent looks at it next."
            yield Finding(
                Severity.WARNING if late else Severity.INFO,
                "dependency-failed",
                task.task_id,
                f"It waits for {named(culprits)}, which FAILED, so it will not run{_look(task, observation)}.",
                f"{look} To run both, mend the cause and `thunderagent task redrive {culprits[0]} --dependents`.",
            )


def missing(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """What a task waits for is in the table."""
    for task in _waiting(observation):
        lost = [each for each in task.unmet if each not in observation.dependencies and each not in observation.unread]
        if lost:
            waited = observation.now - _waiting_since(task)
            yield Finding(
                Severity.WARNING if waited > patience.missing else Severity.INFO,
                "dependency-missing",
                task.task_id,
                f"It has waited for {span(waited)} for {named(lost)}, not in the table{_look(task, observation)}.",
                "Enqueue what is missing under that taskId, or cancel this task. One that ended long ago was removed "
                "by TTL: then enqueue this task again without it.",
            )


def not_looked_at(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """A waiting task is looked at again when it is due."""
    late = [task for task in _waiting(observation) if _overdue(task, observation) > patience.look]
    for task in late:
        states = ", ".join(f"{each} ({observation.state_of(each)})" for each in task.unmet[:5])
        yield Finding(
            Severity.WARNING,
            "waiting-not-looked-at",
            task.task_id,
            f"It waits for {states}, and was due for a look {span(_overdue(task, observation))} ago.",
            "Agents that take its type look at waiting tasks when they poll: start some, or see why they stopped.",
        )


def waiting(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Which tasks others wait for: not a problem, but an answer to "why does it not run?"."""
    stuck = {task_id for cycle in find_cycles(_edges(observation)) for task_id in cycle}
    behind: dict[str, list[Task]] = defaultdict(list)
    for task in _waiting(observation):
        for each in task.unmet:
            if each not in stuck and _status(observation, each) not in (None, Status.FAILED):
                behind[each].append(task)
    for task_id, tasks in behind.items():
        yield Finding(
            Severity.INFO,
            "waiting",
            task_id,
            f"It is {observation.state_of(task_id)}, and waited for by {counted(tasks)}: {named(ids_of(tasks))}.",
            "None is needed: they run once it is SUCCESS or DONE.",
        )


def find_cycles(edges: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Cycles of "waits for", each once and starting at its smallest id; of cycles that share a task, one."""
    graph = {node: set(targets) for node, targets in edges.items()}
    found = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = _from_smallest(error.args[1][:0:-1])
            found.append(cycle)
            graph = {node: targets - set(cycle) for node, targets in graph.items() if node not in cycle}
        else:
            return sorted(found)


def _from_smallest(cycle: list[str]) -> tuple[str, ...]:
    start = cycle.index(min(cycle))
    return tuple(cycle[start:] + cycle[:start])


def _edges(observation: Observation) -> dict[str, tuple[str, ...]]:
    seen = [*observation.dependencies.values(), *_waiting(observation)]
    return {task.task_id: task.unmet for task in seen if task.is_waiting}


def _waiting(observation: Observation) -> Iterator[Task]:
    return (task for task in observation.tasks(Status.PENDING) if task.is_waiting)


def _status(observation: Observation, task_id: str) -> Status | None:
    task = observation.dependencies.get(task_id)
    return None if task is None else task.status


def _waiting_since(task: Task) -> float:
    return task.created_at if task.waiting_since is None else task.waiting_since


def _overdue(task: Task, observation: Observation) -> float:
    """Seconds since the task was due for a look; negative before that."""
    due = task.created_at if task.lock_time is None else task.lock_time
    return observation.now - due


def _look(task: Task, observation: Observation) -> str:
    if task.lock_time is None or task.is_due(observation.now):
        return ""
    return f"; the next look is {ago(task.lock_time, observation.now)}"
