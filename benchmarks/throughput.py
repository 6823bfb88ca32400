"""How fast an agent is with an empty handler, and what it costs, beside a bare loop of the same two writes a task."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.agents import Shape, Span, run_backlog
from benchmarks.backlog import make_backlog
from benchmarks.loops import run_bare_loop
from benchmarks.pairs import Pair, interleaved, middle, ratios
from benchmarks.report import Figure, Goal
from benchmarks.servers import Server

TASKS = 200
BATCH = 30
SHAPE = Shape(processes=1, threads=8)
HANDLER = "benchmarks.handlers:nothing"


def measure(server: Server, pairs: int) -> list[Figure]:
    """Throughput and processor time over the bare loop's, and what the loop says of the server."""

    def by_agent() -> Span:
        return run_backlog(make_backlog(server, TASKS), HANDLER, SHAPE, BATCH)

    def by_loop() -> Span:
        return run_bare_loop(make_backlog(server, TASKS), SHAPE.slots)

    measured = interleaved(by_agent, by_loop, pairs)
    return [_throughput(server, measured), *_processor_time(server, measured), _server_rate(server, measured)]


def _throughput(server: Server, measured: Sequence[tuple[Span, Span]]) -> Figure:
    samples = ratios([Pair(TASKS / ours.seconds, TASKS / theirs.seconds) for ours, theirs in measured])
    return Figure(
        f"throughput, empty handler ({server.name})",
        middle(samples),
        "times",
        f"bare boto3 loop, {SHAPE.slots} threads, the same two writes a task",
        f"{TASKS} tasks, batch {BATCH}, {SHAPE}; first claim to last completion; median of {len(samples)} pairs",
        Goal(0.9, at_least=True),
        samples,
    )


def _processor_time(server: Server, measured: Sequence[tuple[Span, Span]]) -> list[Figure]:
    samples = ratios([Pair(ours.cpu_seconds, theirs.cpu_seconds) for ours, theirs in measured])
    own = tuple(1000 * ours.cpu_seconds / TASKS for ours, _ in measured)
    how = "user + system time of the agent and its children, from idle before the first poll to the last completion"
    return [
        Figure(
            f"processor time a task ({server.name})",
            middle(samples),
            "times",
            f"bare boto3 loop, {SHAPE.slots} threads, the same two writes a task",
            how,
            Goal(1.6),
            samples,
        ),
        Figure(f"processor time a task ({server.name})", middle(own), "ms", "", how, None, own),
    ]


def _server_rate(server: Server, measured: Sequence[tuple[Span, Span]]) -> Figure:
    samples = tuple(2 * TASKS / theirs.seconds for _, theirs in measured)
    return Figure(
        f"what the server can do ({server.name})",
        middle(samples),
        "operations/s",
        "",
        f"conditional UpdateItems of the bare loop, {SHAPE.slots} threads",
        None,
        samples,
    )
