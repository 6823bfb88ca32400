"""Throughput of several agents on one table, beside as many bare loops, and what was full meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from benchmarks.agents import PATIENCE, START_DELAY, RunningAgent, Shape, agent, line_time
from benchmarks.backlog import Backlog, make_backlog
from benchmarks.loops import run_bare_loop
from benchmarks.pairs import interleaved, middle
from benchmarks.processes import machine_busy, wait_until
from benchmarks.report import Figure
from benchmarks.servers import Server

FLEETS = (1, 2, 4)
TASKS = 400
"""Tasks enqueued for each agent."""

APART = 2.0
"""Seconds allowed for the start of each agent, so that all poll first at the same moment."""

BATCH = 30
SHAPE = Shape(processes=1, threads=4)
HANDLER = "benchmarks.handlers:nothing"


@dataclass(frozen=True, slots=True)
class Run:
    """Tasks a second, the share of the machine's processors that was busy, and the tasks of the agent that had fewest."""

    rate: float
    busy: float
    fewest: int


def by_agents(server: Server, agents: int) -> Run:
    """So many agents, all idle before their first poll, on one backlog."""
    backlog = make_backlog(server, TASKS * agents)
    tasks = len(backlog.task_ids)
    first_poll = time.monotonic() + START_DELAY + APART * (agents - 1)
    with ExitStack() as stack:
        fleet = [stack.enter_context(_agent_that_waits(backlog, first_poll)) for _ in range(agents)]
        wait_until(lambda: bool(_lines(fleet, "task claimed")), PATIENCE)
        _, busy = machine_busy(lambda: wait_until(lambda: len(_lines(fleet, "task ended")) >= tasks, PATIENCE))
        first = min(map(line_time, _lines(fleet, "task claimed")))
        last = max(map(line_time, _lines(fleet, "task ended")))
        fewest = min(len(each.lines("task ended")) for each in fleet)
    backlog.check_all_ended()
    return Run(tasks / (last - first).total_seconds(), busy, fewest)


def _agent_that_waits(backlog: Backlog, until: float) -> AbstractContextManager[RunningAgent]:
    """An agent whose first poll is at a moment of the monotonic clock, give or take the time that it takes to start."""
    delay = max(0.0, until - time.monotonic())
    return agent(backlog.table, HANDLER, SHAPE, batch=BATCH, start_delay_min=delay, start_delay_max=delay)


def by_loops(server: Server, loops: int) -> Run:
    """As many bare loops at once, which share the backlog beforehand."""
    backlog = make_backlog(server, TASKS * loops)
    shares = [Backlog(backlog.table, backlog.task_ids[number::loops]) for number in range(loops)]

    def run_all() -> float:
        with ThreadPoolExecutor(loops) as threads:
            return max(span.seconds for span in threads.map(lambda share: run_bare_loop(share, SHAPE.slots), shares))

    seconds, busy = machine_busy(run_all)
    return Run(TASKS * loops / seconds, busy, TASKS)


def measure(server: Server, pairs: int) -> list[Figure]:
    """Each size of fleet, in turn with as many loops."""
    return [figure for agents in FLEETS for figure in _of_fleet(server, agents, pairs)]


def _of_fleet(server: Server, agents: int, pairs: int) -> list[Figure]:
    measured = interleaved(lambda: by_agents(server, agents), lambda: by_loops(server, agents), pairs)
    ours, theirs = [each for each, _ in measured], [each for _, each in measured]
    how = f"{TASKS * agents} tasks on one table, batch {BATCH}, {SHAPE} each, empty handler; median of {pairs} pairs"
    name = f"{agents} agent{'s' * (agents > 1)} on one table ({server.name})"
    return [
        _figure(f"throughput of {name}", "tasks/s", how, [run.rate for run in ours]),
        _figure(f"the same with as many bare loops ({server.name})", "tasks/s", how, [run.rate for run in theirs]),
        _figure(f"processors busy, {name}", "%", "the server's part included", [100 * run.busy for run in ours]),
        _figure(f"tasks of the agent that had fewest, {name}", "tasks", f"of {TASKS} on average", [run.fewest for run in ours]),
    ]


def _figure(name: str, unit: str, how: str, samples: list[float]) -> Figure:
    return Figure(name, middle(samples), unit, "", how, None, tuple(samples))


def _lines(fleet: list[RunningAgent], event: str) -> list[str]:
    return [line for each in fleet for line in each.lines(event)]
