"""What a seed stands for: the faults of a history, the agents' settings, the tasks. All of it is drawn before anything happens.

Each history has only some of the faults: one that has all of them seldom gets anywhere, and what only a few bring about would
not be found. Each kind of fault draws from a random source of its own, so that leaving one kind out, to find which of them a
violation needs, changes as little as possible of the rest.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from thunderagent.settings import AgentSettings
from thunderagent.store.layout import CLASSIC, Layout, dispatch_layout

SLOWEST_CALL = 3.0
"""Seconds after which a call gives up: renewals have such limits, and all calls here have those of renewals."""


class Fault(StrEnum):
    """The kinds of fault. Their names are what ``--without`` takes."""

    LAG = "lag"
    LOST_REQUEST = "lost-request"
    LOST_REPLY = "lost-reply"
    RETRIED = "retried"
    LATE = "late"
    THROTTLED = "throttled"
    SLOW = "slow"
    OUTAGE = "outage"
    CUT = "cut"
    KILL = "kill"
    PAUSE = "pause"
    RESTART = "restart"
    CLOCK = "clock"
    HANDLER = "handler"
    CANCEL = "cancel"
    REDRIVE = "redrive"
    OPERATOR_CRASH = "operator-crash"
    LEADER = "leader"
    API_OUTAGE = "api-outage"
    SLOW_PODS = "slow-pods"
    EVICTION = "eviction"


OF_CALLS = (Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.RETRIED, Fault.LATE, Fault.THROTTLED, Fault.SLOW)
"""Faults of single calls to the table."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task that is enqueued ``at`` so many seconds."""

    task_id: str
    at: float
    max_retry: int
    delay: float
    depends_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One history. Times in seconds.

    ``calm_at``: when faults end. ``pool``: the agents are pods of a pool that is scaled. ``crowded``: more tasks than slots for
    most of the time. ``rate``: the share of calls that meet a fault. ``latency``: what one way of a call takes on average.
    """

    seed: int
    faults: frozenset[Fault]
    calm_at: float
    agents: int
    pool: bool
    crowded: bool
    settings: AgentSettings
    tasks: tuple[PlannedTask, ...]
    tasks_per_replica: int
    rate: float
    latency: float
    layout: Layout = CLASSIC

    def rng(self, purpose: str) -> random.Random:
        """The random source for one purpose."""
        return random.Random(f"{self.seed} {purpose}")

    def without(self, faults: Collection[str] = (), tasks: Collection[str] = ()) -> Plan:
        """The same history but for some kinds of faults and some tasks."""
        return replace(
            self,
            faults=self.faults - {Fault(fault) for fault in faults},
            tasks=tuple(task for task in self.tasks if task.task_id not in set(tasks)),
        )

    @property
    def patience(self) -> float:
        """Seconds after faults have ended within which every task must have ended, and the pool be at rest.

        A lease that nobody renews, until it ends and is looked for; the longest time that a task may have been put off; then,
        for tasks that wait for each other in vain, the longest wait for dependencies and one look more.
        """
        lost = self.settings.lease + 3 * self.settings.expired_look + self.settings.renew
        put_off = LONGEST_DELAY + self.settings.retry_cap + self.settings.timeout + self.settings.stop_grace
        waiting = self.settings.dependency_timeout + 2 * self.settings.dependency_wait_max
        polls = 10 * self.settings.wait_idle + len(self.tasks) * LONGEST_CALM_RUN
        return lost + put_off + waiting + polls


LONGEST_RUN = 300.0
"""Seconds that a run takes at most, in histories about long ones."""

LONGEST_DELAY = 60.0
"""Seconds by which a task is put off at most: by enqueue, or by a handler that snoozes."""

LONGEST_CALM_RUN = 3.0
"""Seconds that a run takes at most once faults have ended."""


def plan(seed: int) -> Plan:
    """The plan of a seed."""
    rng = random.Random(f"{seed} plan")
    crowded = seed % 2 == 0
    calm_at = rng.choice([120.0, 240.0, 400.0])
    faults = frozenset(fault for fault in Fault if rng.random() < _share(fault))
    settings = _settings(rng, crowded)
    if (
        seed % 5 == 2
    ):  # what leases are for: long runs, agents that are away, and an index that does not know that they are back
        faults |= {Fault.LAG, Fault.PAUSE, Fault.CUT}
        settings = replace(settings, timeout=LONGEST_RUN, drain=LONGEST_RUN)
    if Fault.OUTAGE in faults:
        calm_at = max(calm_at, rng.choice([240.0, 240.0, 400.0, 1100.0]))
    return Plan(
        seed=seed,
        faults=faults,
        calm_at=calm_at,
        agents=rng.choice([2, 2, 3, 4]),
        pool=seed % 4 == 3,
        crowded=crowded,
        settings=settings,
        tasks=_tasks(rng, calm_at, crowded),
        tasks_per_replica=rng.choice([1, 2, 3]),
        rate=rng.choice([0.01, 0.03, 0.1]),
        latency=rng.choice([0.01, 0.05, 0.3, 1.0]),
        layout=_layout(seed),
    )


def _layout(seed: int) -> Layout:
    """Of each thousand histories the second half is on the dispatch layout."""
    if seed // 500 % 2 == 0:
        return CLASSIC
    return dispatch_layout(random.Random(f"{seed} layout").choice([1, 2, 3]))


def _share(fault: Fault) -> float:
    """In how many histories a fault is present. An outage makes a history long, so it is rarer."""
    return {Fault.OUTAGE: 0.3, Fault.LAG: 0.7, Fault.CLOCK: 0.7, Fault.HANDLER: 0.7}.get(fault, 0.35)


def _settings(rng: random.Random, crowded: bool) -> AgentSettings:
    lease = rng.choice([60.0, 60.0, 100.0])
    return AgentSettings(
        pool="",
        processes=1 if crowded else rng.choice([1, 2, 3]),
        batch=rng.choice([3, 10, 10]),
        lease=lease,
        renew=lease / 4,
        expired_look=rng.choice([8.0, 20.0]),
        checkpoint=rng.choice([0.0, 2.0]),
        timeout=rng.choice([20.0, 90.0, 150.0]),
        drain=160.0,
        stop_grace=rng.choice([0.0, 5.0]),
        retry_base=1.0,
        retry_cap=rng.choice([2.0, 15.0]),
        dependency_wait_max=15.0,
        dependency_missing=40.0,
        dependency_timeout=rng.choice([60.0, 200.0]),
    )


def _tasks(rng: random.Random, calm_at: float, crowded: bool) -> tuple[PlannedTask, ...]:
    count = rng.choice([6, 12] if crowded else [2, 4, 8])
    ids = [f"t{number}" for number in range(count)]
    is_burst, has_dependencies = crowded or rng.random() < 0.3, rng.random() < 0.4
    tasks = []
    for number, task_id in enumerate(ids):
        at = 0.0 if is_burst else rng.uniform(0.0, 0.8 * calm_at)
        delay = rng.choice([0.0, 0.0, 0.0, rng.uniform(1.0, LONGEST_DELAY)])
        depends_on = _dependencies(rng, ids, number) if has_dependencies else ()
        tasks.append(PlannedTask(task_id, at, rng.choice([0, 1, 2, 3]), delay, depends_on))
    return tuple(tasks)


def _dependencies(rng: random.Random, ids: list[str], number: int) -> tuple[str, ...]:
    """On nothing, on earlier tasks, on any (so that cycles come about), or on one that there never is."""
    others = [task_id for task_id in ids if task_id != ids[number]]
    match rng.choice(["none", "none", "earlier", "earlier", "any", "missing"]):
        case "earlier":
            return tuple(rng.sample(ids[:number], min(number, rng.choice([1, 2]))))
        case "any":
            return (rng.choice(others),)
        case "missing":
            return ("t-missing",)
        case _:
            return ()
