"""Real agents under load while replies get lost, or while they are killed. What became of each task is read from the table, and
what was run from the lines that the handlers wrote; nothing that an agent says of itself counts."""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.plan import ANY, DropReply, Rule
from tests.faults.proxy import FaultProxy
from tests.integration.agents import AgentProcess, Entry, Scene, is_alive, scene_at
from tests.standins.aws import REGION
from thunderagent import Task, TaskQueue
from thunderagent.queue import NewTask
from thunderagent.settings import TableSettings
from thunderagent.store.admin import create_table, scan, wait_until_active, write_layout
from thunderagent.store.dynamo import DynamoStore
from thunderagent.store.layout import CLASSIC, RESERVED_IDS, Layout
from thunderagent.task import Attr, ErrorType, Status

PATIENT: Mapping[str, Any] = {
    "lease": 40,
    "renew": 5,
    "expired_look": 5,
    "batch": 100,
    "processes": 3,
    "wait_busy": 1,
    "wait_quiet": 2,
    "wait_idle": 3,
}
"""Leases that a machine at its limit still renews in time: all agents are alive, so none may ever end. And polls that leave
the stand-in, which goes through its whole table for each, time for something else."""

KILLED: Mapping[str, Any] = {"lease": 10, "renew": 2, "expired_look": 2}
"""Leases that end soon, so that many agents may die within minutes."""

MAX_RETRY = 20
FINISH = 240.0
"""Seconds in which every task must have ended once nothing goes wrong any more."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run by what its handler wrote; ``end`` is None for one that did not come to its end. Monotonic seconds."""

    agent: str
    pid: int
    start: float
    end: float | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with the tasks of one load; all empty where the promises were kept."""

    tasks: int = 0
    runs: int = 0
    kills: int = 0
    stranded: tuple[str, ...] = ()
    """Not ended."""
    unrun: tuple[str, ...] = ()
    """SUCCESS without a run that came to its end."""
    twice: tuple[str, ...] = ()
    """Run once more although nobody had killed the run before, or while that still went on."""
    overcharged: tuple[str, ...] = ()
    """Started more often than the retries and releases of the item account for, or failed before they were used up."""
    lost_replies: int = 0
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.stranded or self.unrun or self.twice or self.overcharged)

    def __add__(self, other: Findings) -> Findings:
        return Findings(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Findings)})


@dataclass
class Kills:
    """Who was killed, and when, in monotonic seconds: agents by name, processes of handlers by pid."""

    agents: dict[str, float] = field(default_factory=dict)
    pids: dict[int, float] = field(default_factory=dict)

    def of(self, run: Run) -> float | None:
        """When the run was killed."""
        times = [at for at in (self.agents.get(run.agent), self.pids.get(run.pid)) if at is not None]
        return min(times, default=None)


def judge(tasks: Iterable[Task], history: Iterable[Entry], kills: Kills) -> Findings:
    """Hold the table against what was run."""
    runs, ended = runs_of(history), list(tasks)
    return Findings(
        tasks=len(ended),
        runs=sum(len(each) for each in runs.values()),
        kills=len(kills.agents) + len(kills.pids),
        stranded=_named(ended, lambda task: not task.status.is_final),
        unrun=_named(ended, lambda task: task.status is Status.SUCCESS and not _has_ended(runs[task.task_id])),
        twice=_named(ended, lambda task: not _are_explained(runs[task.task_id], kills)),
        overcharged=_named(ended, lambda task: not _is_accounted_for(task, runs[task.task_id])),
    )


def runs_of(history: Iterable[Entry]) -> Mapping[str, Sequence[Run]]:
    """The runs of each task in the order of their starts. A process runs one task at a time."""
    found: defaultdict[str, list[Run]] = defaultdict(list)
    for entry in history:
        runs = found[entry.task_id]
        if entry.event == "start":
            runs.append(Run(entry.agent, entry.pid, entry.at))
        elif entry.event == "end":
            (at,) = (number for number, run in enumerate(runs) if run.pid == entry.pid and run.end is None)
            runs[at] = replace(runs[at], end=entry.at)
    return found


def _named(tasks: Iterable[Task], is_wrong: Callable[[Task], bool]) -> tuple[str, ...]:
    return tuple(task.task_id for task in tasks if is_wrong(task))


def _has_ended(runs: Sequence[Run]) -> bool:
    return any(run.end is not None for run in runs)


def _are_explained(runs: Sequence[Run], kills: Kills) -> bool:
    """Whether each run but the last was killed before the next one began: in its midst, or before its end was written."""
    for earlier, later in pairwise(runs):
        killed = kills.of(earlier)
        if killed is None or killed > later.start or (earlier.end is not None and earlier.end > later.start):
            return False
    return True


def _is_accounted_for(task: Task, runs: Sequence[Run]) -> bool:
    if task.status is Status.FAILED:
        is_lost = task.error is not None and task.error.type in {ErrorType.LEASE_EXPIRED, ErrorType.CHILD_DIED}
        return is_lost and task.retries_left == 0
    return len(runs) <= task.retry_count + 1 + task.release_count


# --- replies get lost ---------------------------------------------------------------------------------------------------


def lose_replies(
    endpoint: str,
    folder: Path,
    *,
    tasks: int,
    agents: int = 3,
    share: float = 0.05,
    seed: int = 0,
    layout: Layout = CLASSIC,
    patience: float = FINISH,
) -> Findings:
    """Enqueue tasks and have agents run them, while a share of all replies is lost after DynamoDB has committed."""
    began = time.monotonic()
    with ExitStack() as stack:
        proxies = [stack.enter_context(_losing(endpoint, share, seed + number)) for number in range(agents + 1)]
        scene = stack.enter_context(_scene(endpoint, folder, layout))
        for number in range(agents):
            scene.agent(f"A{number}", endpoint=proxies[number].endpoint, wait=False, **PATIENT)
        _enqueue(scene, proxies[-1].endpoint, "plain", [f"t-{number}" for number in range(tasks)])
        _until_run(scene, tasks, patience + tasks / 5)
        found = _until_ended(scene, patience)
        lost = sum(proxy.faulted for proxy in proxies)
        return replace(judge(found, scene.history(), Kills()), lost_replies=lost, seconds=time.monotonic() - began)


@contextmanager
def _losing(endpoint: str, share: float, seed: int) -> Iterator[FaultProxy]:
    with FaultProxy(endpoint, keeps_calls=False) as proxy:
        proxy.script(Rule(ANY, DropReply(), probability=share, random=Random(seed)))
        yield proxy


# --- agents get killed --------------------------------------------------------------------------------------------------


def kill_agents(
    endpoint: str,
    folder: Path,
    *,
    seconds: float,
    agents: int = 4,
    seed: int = 0,
    every: float = 2.0,
    layout: Layout = CLASSIC,
    patience: float = FINISH,
) -> Findings:
    """Have agents run tasks and kill one of them, or one of their handlers' processes, now and then; another follows."""
    began, rng, kills = time.monotonic(), random.Random(seed), Kills()
    with _scene(endpoint, folder, layout) as scene:
        crowd = [_start(scene, number) for number in range(agents)]
        enqueued = 0
        while time.monotonic() < began + seconds:
            _enqueue(scene, endpoint, "short", [f"t-{enqueued + number}" for number in range(40)])
            enqueued += 40
            time.sleep(rng.uniform(0.2, 2 * every))
            _kill_one(scene, crowd, kills, rng)
        found = _until_ended(scene, patience)
        return replace(judge(found, scene.history(), kills), seconds=time.monotonic() - began)


def _start(scene: Scene, number: int) -> tuple[str, AgentProcess]:
    name = f"A{number}"
    return name, scene.agent(name, processes=2, batch=20, wait=False, **KILLED)


def _kill_one(scene: Scene, crowd: list[tuple[str, AgentProcess]], kills: Kills, rng: random.Random) -> None:
    """Two of three kills hit an agent, the third the process that began a run last."""
    if rng.random() < 1 / 3 and (pid := _last_child(scene)) is not None:
        kills.pids[pid] = time.monotonic()
        _kill(pid)
        return
    at = rng.randrange(len(crowd))
    name, agent = crowd[at]
    kills.agents[name] = time.monotonic()
    agent.end()
    crowd[at] = _start(scene, len(kills.agents) + len(crowd))


def _last_child(scene: Scene) -> int | None:
    starts = scene.history(event="start")
    return starts[-1].pid if starts and is_alive(starts[-1].pid) else None


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


# --- what both have -----------------------------------------------------------------------------------------------------


@contextmanager
def _scene(endpoint: str, folder: Path, layout: Layout) -> Iterator[Scene]:
    settings = TableSettings(table=f"load-{uuid.uuid4().hex}", endpoint=endpoint, region=REGION)
    with closing(DynamoStore(settings)) as store:
        create_table(store, layout=layout)
        wait_until_active(store, time.sleep)
        if layout != CLASSIC:
            write_layout(store, layout)
    with scene_at(endpoint, settings.table, folder) as scene:
        yield scene


def _enqueue(scene: Scene, endpoint: str, task_type: str, task_ids: Sequence[str]) -> None:
    """Enqueue tasks. No lost reply may make one seem to have been there before."""
    with closing(DynamoStore(replace(scene.settings, endpoint=endpoint))) as store:
        report = TaskQueue(store=store).enqueue_many(
            [NewTask({}, task_type=task_type, task_id=task_id, max_retry=MAX_RETRY) for task_id in task_ids]
        )
    assert report.existing == ()


def _until_run(scene: Scene, tasks: int, patience: float) -> None:
    """Wait until so many runs have ended, as far as they will within the patience."""
    deadline = time.monotonic() + patience
    while scene.lines() < 2 * tasks and time.monotonic() < deadline:
        time.sleep(0.5)


def _until_ended(scene: Scene, patience: float) -> list[Task]:
    """All tasks of the table, once they have ended or the patience has."""
    deadline = time.monotonic() + patience
    while True:
        with closing(DynamoStore(scene.settings)) as store:
            records = scan(store, 10**6).records
        tasks = [Task.from_record(record) for record in records if record[Attr.TASK_ID] not in RESERVED_IDS]
        if all(task.status.is_final for task in tasks) or time.monotonic() > deadline:
            return tasks
        time.sleep(1)
