"""``python -m tests.simulation.stress``: many tasks, no faults but kills. Which run twice, and how evenly do agents share?

The agents are the real ones, on the simulated clock, over the in-memory store behind an index that lags; a call takes about
10 ms. Tasks that have ended are removed soon, as DynamoDB's TTL does later, so that a million of them fit into memory. All
counts are made from the writes that the table accepted or refused.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.simulation.agents import Host, Setting
from tests.simulation.checker import STARTS
from tests.simulation.history import silence
from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.plan import Plan, plan
from tests.simulation.table import Refused, SimulatedTable, Write
from tests.simulation.trace import START, Trace
from tests.simulation.wire import Weather
from thunderagent import transitions
from thunderagent.settings import AgentSettings
from thunderagent.task import Status

SLOTS = 10
"""Tasks that one agent runs at once; each takes up to 3 s."""

BACKLOG = 20_000
"""Tasks that wait at a time, at most."""

LAG = 0.1
"""Seconds by which the index lags at most. DynamoDB mostly takes a fraction of one."""

KEPT = 30.0
"""Seconds for which a task that has ended is kept."""

KILL_EVERY, DOWN = 20.0, 5.0
"""Seconds between two kills of an agent, and until it is started again."""


@dataclass(frozen=True, slots=True)
class Result:
    """``twice``: tasks that were started more than once. ``claims``: accepted, by agent. ``lost``: claims refused."""

    agents: int
    kills: int
    tasks: int
    twice: int
    claims: tuple[int, ...]
    lost: int
    seconds: float

    @property
    def spread(self) -> float:
        """By how much an agent differs from the mean at most, as a share of it."""
        mean = sum(self.claims) / len(self.claims)
        return max(abs(each - mean) for each in self.claims) / mean

    @property
    def lost_share(self) -> float:
        """Claims that met another agent's, of all."""
        return self.lost / (self.lost + sum(self.claims))


class _Lean(Trace):
    """A trace that nobody will read."""

    def note(self, at: float, who: str, what: str, task_id: str = "") -> None:
        """A million tasks would be millions of lines."""


class _Stress:
    def __init__(self, agents: int, tasks: int, kills: bool, seed: int) -> None:
        self.loop = SimulatedLoop()  # type: ignore[abstract]  # as in history.py
        settings = AgentSettings(processes=SLOTS)
        base: Plan = replace(plan(seed), faults=frozenset(), pool=False, settings=settings, latency=0.005)
        self.table = SimulatedTable(self.loop, base.rng("index"), LAG, lambda transition: transition, keeps_history=False)
        self.setting = Setting(base, self.loop, self.table, Weather(calm=True), _Lean())
        self.hosts = [Host(self.setting, f"host-{number}", f"-/host-{number}/1") for number in range(agents)]
        self.table.on_write, self.table.on_refused = self._wrote, self._refused
        self._tasks = tasks
        self._kills = kills
        self._rng = base.rng("stress")
        self._starts: Counter[str] = Counter()
        self._claims: Counter[str] = Counter()
        self._lost = self._twice = self._ended = self._killed = self._open = 0
        self._all_ended = asyncio.Event()
        self._gone: deque[tuple[float, str]] = deque()

    def run(self) -> Result:
        with silence():
            self.loop.run(self._run())
        claims = tuple(self._claims[host.name] for host in self.hosts)
        return Result(len(self.hosts), self._killed, self._tasks, self._twice, claims, self._lost, self.loop.time())

    async def _run(self) -> None:
        for host in self.hosts:
            host.start()
        killing = self.loop.create_task(self._kill()) if self._kills else None
        await self._enqueue()
        await self._all_ended.wait()
        if killing is not None:
            killing.cancel()
        for host in self.hosts:
            host.stop()
        for host in self.hosts:
            await host.ended()

    async def _enqueue(self) -> None:
        """Keep the backlog full, and the table small."""
        application = Process("application")
        for number in range(self._tasks):
            while self._open >= BACKLOG:
                await asyncio.sleep(1.0)
                self._forget()
            now = int(START + self.loop.time())
            self._open += 1
            self.table.apply(application, transitions.enqueue(f"t{number}", {"n": 1}, now=now, token=f"e{number}"))

    def _forget(self) -> None:
        while self._gone and self._gone[0][0] < self.loop.time() - KEPT:
            _, task_id = self._gone.popleft()
            self.table.forget(task_id)
            self._starts.pop(task_id, None)

    async def _kill(self) -> None:
        while True:
            await asyncio.sleep(KILL_EVERY)
            host = self._rng.choice(self.hosts)
            if host.is_up:
                self._killed += 1
                host.kill()
                self.loop.call_later(DOWN, host.start)

    def _wrote(self, write: Write) -> None:
        task_id, name = write.after.task_id, write.transition.name
        if name in STARTS:
            self._starts[task_id] += 1
            self._twice += self._starts[task_id] == 2
            self._claims[write.who.name.split("/")[1]] += 1
            self._open -= name == "claim"
        if write.after.status is Status.PENDING and write.before is not None:
            self._open += 1
        if write.after.status.is_final:
            self._ended += 1
            self._gone.append((write.at, task_id))
            if self._ended == self._tasks:
                self._all_ended.set()

    def _refused(self, refused: Refused) -> None:
        self._lost += refused.transition.name in STARTS and not refused.repeated


def stress(agents: int, tasks: int, *, kills: bool = False, seed: int = 1) -> Result:
    """Run so many tasks on so many agents."""
    return _Stress(agents, tasks, kills, seed).run()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.stress", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000, help="tasks of the first two rows")
    parser.add_argument("--shared", type=int, default=30_000, help="tasks of the rows by number of agents")
    options = parser.parse_args(arguments)
    print("| agents | tasks | kills | run twice | lost claims | spread of claims | simulated s | took s |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kills in (False, True):
        _row(5, options.tasks, kills)
    for agents in (2, 4, 8, 16, 32, 64):
        _row(agents, options.shared, False)
    return 0


def _row(agents: int, tasks: int, kills: bool) -> None:
    began = time.perf_counter()
    result = stress(agents, tasks, kills=kills)
    print(
        f"| {agents} | {tasks:,} | {result.kills} | {result.twice} ({result.twice / tasks:.4%}) | {result.lost_share:.1%} "
        f"| {result.spread:.1%} | {result.seconds:.0f} | {time.perf_counter() - began:.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
