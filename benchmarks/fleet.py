"""Throughput of several agents on one table, beside as many bare loops, and what was full meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
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
BATCH = 30
SHAPE = Shape(processes=1, threads=4)
HANDLER = "benchmarks.handlers:nothing"


@dataclass(frozen=True, slots=True)
class Run:
    """Tasks a second, and the share of the machine's processors that was busy."""

    rate: float
    busy: float


def by_agents(server: Server, agents: int) -> Run:
    """So many agents, all idle before their first poll, on one backlog."""
    backlog = make_backlog(server, TASKS)
    with ExitStack() as stack:
        fleet = [
            stack.enter_context(
                agent(backlog.table, HANDLER, SHAPE, batch=BATCH, start_delay_min=START_DELAY, start_delay_max=START_DELAY)
            )
            for _ in range(agents)
        ]
        for each in fleet:
            each.wait_for("task claimed")
        _, busy = machine_busy(lambda: wait_until(lambda: len(_lines(fleet, "task ended")) >= TASKS, PATIENCE))
        first = min(map(line_time, _lines(fleet, "task claimed")))
        last = max(map(line_time, _lines(fleet, "task ended")))
    backlog.check_all_ended()
    return Run(TASKS / (last - first).total_seconds(), busy)


def by_loops(server: Server, loops: int) -> Run:
    """As many bare loops at once, which share the backlog beforehand."""
    backlog = make_backlog(server, TASKS)
    shares = [Backlog(backlog.table, backlog.task_ids[number::loops]) for number in range(loops)]

    def run_all() -> float:
        with ThreadPoolExecutor(loops) as threads:
            return max(span.seconds for span in threads.map(lambda share: run_bare_loop(share, SHAPE.slots), shares))

    seconds, busy = machine_busy(run_all)
    return Run(TASKS / seconds, busy)


def measure(server: Server, pairs: int) -> list[Figure]:
    """Each size of fleet, in turn with as many loops."""
    return [figure for agents in FLEETS for figure in _of_fleet(server, agents, pairs)]


def _of_fleet(server: Server, agents: int, pairs: int) -> list[Figure]:
    measured = interleaved(lambda: by_agents(server, agents), lambda: by_loops(server, agents), pairs)
    ours, theirs = [each for each, _ in measured], [each for _, each in measured]
    how = f"{TASKS} tasks on one table, batch {BATCH}, {SHAPE} each, empty handler; median of {pairs} pairs"
    name = f"{agents} agent{'s' * (agents > 1)} on one table ({server.name})"
    return [
        _figure(f"throughput of {name}", "tasks/s", how, [run.rate for run in ours]),
        _figure(f"the same with as many bare loops ({server.name})", "tasks/s", how, [run.rate for run in theirs]),
        _figure(f"processors busy, {name}", "%", "the server's part included", [100 * run.busy for run in ours]),
    ]


def _figure(name: str, unit: str, how: str, samples: list[float]) -> Figure:
    return Figure(name, middle(samples), unit, "", how, None, tuple(samples))


def _lines(fleet: list[RunningAgent], event: str) -> list[str]:
    return [line for each in fleet for line in each.lines(event)]
