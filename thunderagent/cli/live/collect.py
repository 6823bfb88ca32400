"""From a pool's cycles and a table's items to what a view shows, at a cost that does not grow with the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from thunderagent.cli.live.snapshot import EndedTask, PoolState, Replicas, RunningTask, Sample, TaskCounts
from thunderagent.scaling import ReplicaState
from thunderagent.task import ErrorType, Status, Task

if TYPE_CHECKING:
    from thunderagent.local.pool import PoolView
    from thunderagent.store.base import Store

SAMPLES = 600
"""Moments of a pool's past that are kept. More than twice as many are thinned out, so a long run is still seen whole."""

WINDOW = 100
"""Items that one look reads at most: one BatchGetItem."""

RUNNING_SEEN = 50
"""Running tasks that one look reads at most."""

ENDED_KEPT = 50


class PoolHistory:
    """Remembers how a pool came to be as it is."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._samples: list[Sample] = []
        self.peak = 0

    def add(self, view: PoolView, at: float) -> PoolState:
        """The pool after a cycle that ended ``at`` seconds after the beginning."""
        replicas = replicas_in(view.replicas)
        self.peak = max(self.peak, replicas.total)
        last_work = self._samples[-1].work if self._samples else 0
        self._samples.append(Sample(at, replicas.total, last_work if view.backlog is None else work_of(view)))
        if len(self._samples) > 2 * SAMPLES:
            self._samples = _thinned(self._samples)
        return PoolState(
            name=view.name,
            replicas=replicas,
            most=self._most,
            target=view.decision.target,
            wanted=view.decision.wanted,
            sentence=view.decision.sentence,
            is_trouble=view.backlog is None,
            history=tuple(self._samples),
        )


def replicas_in(found: Mapping[ReplicaState, int]) -> Replicas:
    """The agents that are there, also those that are on their way out."""
    return Replicas(
        ready=found.get(ReplicaState.READY, 0),
        starting=found.get(ReplicaState.STARTING, 0),
        draining=found.get(ReplicaState.TERMINATING, 0),
    )


def work_of(view: PoolView) -> int:
    """Tasks that the pool was seen to have to do: ready, running or lost by their agent."""
    backlog = view.backlog
    return 0 if backlog is None else backlog.ready + backlog.expired + sum(backlog.running.values())


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the followed tasks gave. ``ended``: the last ones, latest first."""

    counts: TaskCounts
    running: tuple[RunningTask, ...]
    ended: tuple[EndedTask, ...]


class TaskFollower:
    """Follows tasks whose ids are known until all have ended.

    A look costs one query for what is running and one batch read of :data:`WINDOW` tasks that had not ended, going round. An
    ended task is read once, so the counts lag behind by as many looks as there are windows of open tasks, and are exact at
    the end.
    """

    def __init__(self, store: Store, task_ids: Iterable[str]) -> None:
        self._store = store
        self._open: dict[str, Task | None] = dict.fromkeys(task_ids)
        self.ended: dict[str, Task] = {}
        self._latest: list[EndedTask] = []

    @property
    def all_ended(self) -> bool:
        return not self._open

    def look(self) -> Look:
        """Read, and tell. Raises a StoreError; what was known stays known."""
        page = self._store.page(Status.RUNNING, limit=RUNNING_SEEN)
        running = [task for task in page.tasks if task.task_id in self._open]
        self._read_window()
        now = self._store.now()
        running = [task for task in running if task.task_id in self._open]
        return Look(self._counts(len(running)), tuple(_running(task, now) for task in running), tuple(self._latest))

    def _read_window(self) -> None:
        ids = list(islice(self._open, WINDOW))
        if not ids:
            return
        read = self._store.get_many(ids)
        for task_id in ids:
            del self._open[task_id]
            task = read.found.get(task_id)
            if task is not None and task.status.is_final:
                self._note_ended(task)
            else:
                self._open[task_id] = task  # behind all others: the next look reads those first

    def _note_ended(self, task: Task) -> None:
        self.ended[task.task_id] = task
        self._latest.insert(0, _ended(task))
        del self._latest[ENDED_KEPT:]

    def _counts(self, running: int) -> TaskCounts:
        by_status = dict.fromkeys(Status, 0)
        for task in self.ended.values():
            by_status[task.status] += 1
        by_status[Status.RUNNING] = running
        by_status[Status.PENDING] = len(self._open) - running
        waiting = sum(task is not None and task.is_waiting for task in self._open.values())
        return TaskCounts(by_status, min(waiting, by_status[Status.PENDING]), is_whole=True)


def _running(task: Task, now: int) -> RunningTask:
    return RunningTask(
        task.task_id, task.task_type or "", task.lock_owner or "", max(0, now - task.updated_at), task.retry_count
    )


def _ended(task: Task) -> EndedTask:
    last = task.history[-1] if task.history else None
    error = readable_error(task) if task.status is Status.FAILED else ""
    return EndedTask(task.task_id, task.task_type or "", task.status, None if last is None else last.ended - last.began, error)


def readable_error(task: Task) -> str:
    """Why a task FAILED, in one line, without the name of the exception that a handler fails with on purpose."""
    if task.error is None:
        return "no reason was written"
    name = "" if task.error.type in {"Fail", *ErrorType} else f"{task.error.type}: "
    return " ".join(f"{name}{task.error.message or task.error.type}".split())


def _thinned(samples: list[Sample]) -> list[Sample]:
    """Half as many: of each two the one with more replicas, so that no peak is lost."""
    pairs = zip(samples[::2], [*samples[1::2], samples[-1]], strict=False)
    return [max(pair, key=lambda sample: (sample.replicas, sample.work)) for pair in pairs]
