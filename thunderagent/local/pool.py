"""A pool on one machine: the same file, rules and decisions as on Kubernetes, with processes for pods.

Each cycle reads the backlog, brings it together with the processes that are there, decides, and acts: upwards at once,
downwards by draining processes that hold no task.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from thunderagent.agent.lifeline import ORPHANED
from thunderagent.agent.tally import Tally
from thunderagent.backoff import full_jitter
from thunderagent.errors import InvalidPool, StoreError
from thunderagent.local.replicas import AgentCommand, AgentPorts, AgentReplica, Starter
from thunderagent.log import say
from thunderagent.pool import Pool
from thunderagent.poolcycle import counts_of, settings_environment, tasks_needed, wanted_by
from thunderagent.scaling import (
    Decision,
    FailedRead,
    Observation,
    ReplicaState,
    ScalingState,
    decide,
    initial_state,
    observe,
    replicas_now,
    victims,
)
from thunderagent.store.backlog import Backlog, BacklogReader
from thunderagent.store.base import Store

log = logging.getLogger("thunderagent.pool")

READ_LIMIT = 30.0
"""Seconds that one reading of the backlog may take before it counts as failed."""

RESTART_BASE, RESTART_CAP = 1.0, 60.0
"""Seconds before an agent that ended by itself is replaced, growing while none becomes ready."""


@dataclass(frozen=True, slots=True)
class PoolView:
    """What a pool looks like after a cycle, for whoever shows it.

    ``backlog``: None where it could not be read. ``failures``: agents in a row that ended by themselves before they were ready.
    ``seen``: what the decision was made on. ``asked``: the replicas that were asked for before the cycle, and after it.
    ``seconds``: time that the cycle took. ``tally``: what all agents have done since the pool began.
    """

    name: str
    decision: Decision
    backlog: Backlog | None
    replicas: Mapping[ReplicaState, int]
    failures: int = 0
    seen: Observation | FailedRead | None = None
    asked: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)


class LocalPool:
    """Runs the agents of a pool as processes of this machine. ``on_cycle`` is told how each cycle ended.

    ``agent_output`` takes what the agents write, in place of this process's stdout and stderr. ``orphaned`` is the signal
    that they get when this process dies: by default they drain; SIGKILL is for a table that dies with this process, since
    nothing could be written to it any more. ``ports``: where the agents serve /metrics; by default they do not.
    """

    def __init__(
        self,
        pool: Pool,
        store: Store,
        environ: Mapping[str, str],
        *,
        on_cycle: Callable[[PoolView], None] = lambda view: None,
        agent_output: BinaryIO | None = None,
        orphaned: signal.Signals = ORPHANED,
        ports: AgentPorts | None = None,
        rng: random.Random | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._pool = pool
        self._rules = pool.scaling_rules()
        self._store = store
        self._on_cycle = on_cycle
        self._rng = rng or random.Random()
        self._wall = wall
        command = AgentCommand(_handler(pool), agent_environment(pool, environ), agent_output, orphaned)
        self._starter = Starter(pool.name, command, wall, ports or AgentPorts("", None))
        self._reader = BacklogReader(store, self._rng, wanted_by(pool), pool.spec.queue.name)
        self._replicas: list[AgentReplica] = []
        self._ended = Tally()
        self._watching: set[asyncio.Task[None]] = set()
        self._desired = 0
        self._failures = 0
        self._restart_at = 0.0
        self._stop = asyncio.Event()
        self._stops = 0
        self._said: tuple[Any, ...] = ()

    def stop(self) -> None:
        """Drain all agents and end. A second call hurries the drain, a third one kills."""
        self._stops += 1
        self._stop.set()
        for replica in self._replicas if self._stops > 1 else self._staying():  # a second SIGTERM would hurry those that drain
            replica.drain() if self._stops < 3 else replica.kill()

    def states(self) -> dict[ReplicaState, int]:
        """How many agents are in each state at this moment."""
        return {state: sum(each.state is state for each in self._replicas) for state in ReplicaState}

    async def run(self) -> None:
        """Scale until stopped; returns once every agent has ended."""
        state = initial_state(0, self._now())
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="thunderagent-backlog") as threads:
                while not self._stop.is_set():
                    state = await self._cycle(state, threads)
                    await self._pause(self._pool.spec.scaling.poll_seconds)
        finally:
            await self._end_all()
            self._starter.close()

    # --- one cycle ------------------------------------------------------------------------------------------------------

    async def _cycle(self, state: ScalingState, threads: ThreadPoolExecutor) -> ScalingState:
        began, before = self._now(), self._desired
        backlog, seen = await self._observe(threads)
        decision = decide(self._rules, state, seen, self._now())
        if not self._stop.is_set():
            await self._act(decision, seen)
        self._say_change(decision, backlog is None)
        view = PoolView(
            self._pool.name,
            decision,
            backlog,
            self.states(),
            self._failures,
            seen,
            asked=(before, self._desired),
            seconds=self._now() - began,
            tally=sum((each.tally for each in self._replicas), start=self._ended),
        )
        self._on_cycle(view)
        return decision.state

    async def _observe(self, threads: ThreadPoolExecutor) -> tuple[Backlog | None, Observation | FailedRead]:
        reading = asyncio.get_running_loop().run_in_executor(threads, self._reader.read, tasks_needed(self._rules))
        try:
            backlog = await asyncio.wait_for(asyncio.shield(reading), READ_LIMIT)
        except TimeoutError:
            return None, FailedRead(self._desired, "ReadTimedOut", f"no answer within {READ_LIMIT:g} s")
        except StoreError as error:
            return None, FailedRead(self._desired, type(error).__name__, str(error))
        replicas = [replica.as_replica() for replica in self._replicas]
        return backlog, observe(pool=self._pool.name, counts=counts_of(backlog), replicas=replicas, desired=self._desired)

    async def _act(self, decision: Decision, seen: Observation | FailedRead) -> None:
        running = {} if isinstance(seen, FailedRead) else {each.owner: each.running for each in seen.replicas}
        candidates = [each.as_candidate(running.get(each.owner, 0)) for each in self._staying()]
        self._desired = replicas_now(decision, candidates)
        for victim in victims(candidates, self._desired, self._wall()) if isinstance(seen, Observation) else ():
            self._named(victim.name).drain()
        await self._fill_up()

    async def _fill_up(self) -> None:
        """Start what is missing, be it new or in place of an agent that ended by itself."""
        while len(self._staying()) < self._desired and self._now() >= self._restart_at and not self._stop.is_set():
            replica = await self._starter.start()
            self._replicas.append(replica)
            watching = asyncio.create_task(self._watch(replica))
            self._watching.add(watching)
            watching.add_done_callback(self._watching.discard)

    async def _watch(self, replica: AgentReplica) -> None:
        code = await replica.wait()
        self._starter.ended(replica)
        self._replicas.remove(replica)
        self._ended += replica.tally
        if replica.terminating:
            return
        self._failures = 0 if replica.ready_since is not None else self._failures + 1
        wait = full_jitter(self._rng, self._failures, base=RESTART_BASE, cap=RESTART_CAP)
        self._restart_at = self._now() + wait
        who = {"pool": self._pool.name, "pid": replica.pid, "exit_code": code}
        say(log, logging.ERROR, "an agent ended by itself", **who, was_ready=replica.ready_since is not None, again_in_s=wait)

    def _say_change(self, decision: Decision, is_unread: bool) -> None:
        """A line where something changed that a person would care about."""
        said = (self._desired, is_unread, decision.paused, decision.fallback)
        if said != self._said:
            self._said = said
            level = logging.WARNING if is_unread else logging.INFO
            say(log, level, "pool", pool=self._pool.name, replicas=self._desired, why=decision.sentence)

    # --- the end --------------------------------------------------------------------------------------------------------

    async def _end_all(self) -> None:
        if self._replicas:
            say(log, logging.INFO, "draining", pool=self._pool.name, agents=len(self._replicas))
        for replica in self._staying():
            replica.drain()
        while self._watching:
            await asyncio.wait(self._watching)

    async def _pause(self, seconds: float) -> None:
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({stopping}, timeout=seconds)
        stopping.cancel()

    def _staying(self) -> list[AgentReplica]:
        return [replica for replica in self._replicas if not replica.terminating and replica.exit_code is None]

    def _named(self, owner: str) -> AgentReplica:
        return next(replica for replica in self._replicas if replica.owner == owner)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def agent_environment(pool: Pool, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the pool's agents: this one's, over it what the pool's file says."""
    return {**environ, **settings_environment(pool, pool.name, port=-1), **pool.literal_env()}


def _handler(pool: Pool) -> str:
    if pool.spec.agent.handler is None:
        raise InvalidPool("spec.agent.handler: a local pool needs it; write module:name, such as myapp.tasks:handle.")
    return pool.spec.agent.handler
