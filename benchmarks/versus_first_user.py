"""An agent beside the loop that the system's first user ran before, on tasks of 100 ms."""

from __future__ import annotations

from benchmarks.agents import Shape, Span, run_backlog
from benchmarks.backlog import make_backlog
from benchmarks.loops import run_first_user_loop
from benchmarks.pairs import Pair, interleaved, middle, ratios
from benchmarks.report import Figure, Goal
from benchmarks.servers import Server

BATCH = 30
SHAPE = Shape(processes=1, threads=8)
HANDLER = "benchmarks.handlers:tenth"


def measure(server: Server, tasks: int, pairs: int) -> list[Figure]:
    """Throughput over that of the loop, each on a backlog of its own of the same size."""

    def by_agent() -> Span:
        return run_backlog(make_backlog(server, tasks), HANDLER, SHAPE, BATCH)

    def by_loop() -> Span:
        return run_first_user_loop(make_backlog(server, tasks))

    measured = interleaved(by_agent, by_loop, pairs)
    samples = ratios([Pair(tasks / ours.seconds, tasks / theirs.seconds) for ours, theirs in measured])
    return [
        Figure(
            f"throughput, handler of 100 ms ({server.name})",
            middle(samples),
            "times",
            "the first user's loop: query 10, run them one at a time, then sleep 1 s (5 s when nothing was found)",
            f"{tasks} tasks, batch {BATCH}, {SHAPE}; first claim to last completion; median of {len(samples)} pairs",
            Goal(14, at_least=True),
            samples,
        )
    ]
