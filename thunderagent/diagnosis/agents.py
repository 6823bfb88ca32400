"""Rules about whether anybody takes the work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from thunderagent.diagnosis.finding import Finding, Severity, counted, ids_of, named
from thunderagent.diagnosis.observation import Observation, Patience, ready_since, stuck_ready
from thunderagent.task import ErrorType, Status, Task
from thunderagent.times import ago, span

_NOT_BY_AGENTS = frozenset({ErrorType.CANCELLED})
_NOT_BY_RUNS = _NOT_BY_AGENTS | {ErrorType.DEPENDENCY_FAILED, ErrorType.DEPENDENCY_MISSING, ErrorType.DEPENDENCY_TIMEOUT}


def last_sign(observation: Observation) -> float | None:
    """When an agent last did something that the tasks show: a live lease is a sign of now. Epoch seconds."""
    signs = [sign for task in observation.tasks() if (sign := _sign(task, observation.now)) is not None]
    return max(signs, default=None)


def no_agent(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """Where tasks are ready, some agent is alive."""
    stuck = stuck_ready(observation, patience)
    if not stuck or _anybody(observation, patience):
        return
    sign = last_sign(observation)
    seen = "none has left a trace" if sign is None else f"the last trace of one is from {ago(sign, observation.now)}"
    yield Finding(
        Severity.ERROR,
        "no-agent",
        counted(stuck),
        f"No agent takes the work: the oldest task, {stuck[0].task_id}, has been ready for "
        f"{_age(stuck[0], observation)}; none is running under a lease, and {seen}.",
        "Start agents, or look why they stopped: their logs and /healthz, the pool's conditions, its maxReplicas and "
        "pauses, and whether they use this table, region and index.",
    )


def untaken_type(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """A task type is not passed over while later tasks of other types are taken."""
    if not _anybody(observation, patience):
        return
    by_type: dict[str | None, list[Task]] = defaultdict(list)
    for task in stuck_ready(observation, patience):
        by_type[task.task_type].append(task)
    for task_type, stuck in by_type.items():
        if _is_passed_over(task_type, stuck[0], observation, patience):
            name = "without a type" if task_type is None else f"of the type {task_type}"
            yield Finding(
                Severity.WARNING,
                "type-untaken",
                task_type or "(no type)",
                f"Nobody seems to take tasks {name}. Waiting: {named(ids_of(stuck))}; the oldest for "
                f"{_age(stuck[0], observation)}, while later tasks of other types were taken.",
                "See that some pool's taskTypes and its handler's router name this type, spelled the same; or cancel "
                "the tasks.",
            )


def slow_backlog(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """Tasks do not wait long although agents are alive."""
    stuck = stuck_ready(observation, patience)
    if stuck and _anybody(observation, patience):
        yield Finding(
            Severity.INFO,
            "backlog-old",
            counted(stuck),
            f"Waiting for a free agent; the oldest, {stuck[0].task_id}, for {_age(stuck[0], observation)}.",
            "Agents are at work. For shorter waits raise the pool's maxReplicas, or the slots of each agent.",
        )


def _anybody(observation: Observation, patience: Patience) -> bool:
    sign = last_sign(observation)
    return sign is not None and observation.now - sign <= patience.agent


def _sign(task: Task, now: float) -> float | None:
    """When an agent last touched this task; None where it shows nothing of the kind."""
    if task.status is Status.RUNNING:
        return float(task.updated_at) if task.lock_time is None or task.is_due(now) else now
    if task.status.is_final:
        by_agent = task.error is None or task.error.type not in _NOT_BY_AGENTS
        return float(task.updated_at) if by_agent else None
    if task.history:
        return float(task.history[-1].ended)
    return float(task.updated_at) if task.waiting_since is not None and task.updated_at > task.waiting_since else None


def _is_passed_over(task_type: str | None, oldest: Task, observation: Observation, patience: Patience) -> bool:
    """Whether later tasks of other types were taken meanwhile, and none of this type was."""
    since = ready_since(oldest)
    taken = [task for task in observation.tasks() if _taken_since(task, since, observation.now)]
    others = any(task.task_type != task_type and task.created_at > since for task in taken)
    return others and not any(task.task_type == task_type for task in taken)


def _taken_since(task: Task, since: float, now: float) -> bool:
    ran = task.status is not Status.PENDING and (task.error is None or task.error.type not in _NOT_BY_RUNS)
    sign = _sign(task, now)
    return ran and sign is not None and sign > since


def _age(task: Task, observation: Observation) -> str:
    return span(observation.now - ready_since(task))
