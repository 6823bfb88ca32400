"""An agent as a process: its parts put together, its signals, its health, and its way out."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from thunderagent import __version__
from thunderagent.agent.agent import Agent
from thunderagent.agent.children import Children, ChildSpec
from thunderagent.agent.events import Events
from thunderagent.agent.health import HealthServer
from thunderagent.agent.lifeline import ORPHANED, end_with_parent
from thunderagent.agent.notify import Notifier
from thunderagent.agent.table import Contact, Table
from thunderagent.agent.tally import EVERY, as_state, tally_of
from thunderagent.agent.threads import CallThreads
from thunderagent.log import say
from thunderagent.metrics import AgentMetrics
from thunderagent.settings import AgentSettings, TableSettings
from thunderagent.store.dynamo import DynamoStore

T = TypeVar("T")

log = logging.getLogger("thunderagent.agent")

MAX_THREADS = 64
"""Threads for calls to the table. More slots than this share them; a call takes milliseconds, a task seconds."""

SUPERVISOR = "THUNDERAGENT_SUPERVISOR"
"""Environment variable with the pid of a supervisor whose agents drain when it dies; with ``:SIGKILL`` behind it, they die."""

RENEWAL_THREADS = 8
GAUGES_EVERY = 15.0


@dataclass(frozen=True, slots=True)
class AgentProcess:
    """What ``thunderagent agent run`` runs."""

    handler: str
    table: TableSettings
    settings: AgentSettings
    environ: Mapping[str, str]

    def run(self) -> None:
        """Run until a signal has drained the agent. Raises InvalidHandler, InvalidSettings."""
        supervisor, _, name = self.environ.get(SUPERVISOR, "").partition(":")
        if supervisor.isdecimal():
            end_with_parent(int(supervisor), signal.Signals[name] if name else ORPHANED)
        asyncio.run(self._main())

    async def _main(self) -> None:
        metrics = AgentMetrics(CollectorRegistry(), self.settings.pool)
        metrics.build.info({"version": __version__})
        events = Events(metrics, owner_name(self.settings.pool, self.environ))
        rng = random.Random()
        threads = min(MAX_THREADS, self._slots() + 4)
        store = DynamoStore(replace(self.table, connections=threads), observer=events.called, refresh_time=False)
        loop = asyncio.get_running_loop()
        with (
            CallThreads(threads, "thunderagent-call") as calls,
            CallThreads(RENEWAL_THREADS, "thunderagent-renewal") as renewals,
        ):
            table = Table(store, store.for_renewals(), calls, renewals, Contact(loop.time, self.settings.renew))
            agent: Agent
            children = Children(
                ChildSpec(self.handler, self.table, self.settings),
                rng,
                on_enqueued=lambda task_id: agent.hint(task_id),
                on_replaced=events.child_replaced,
            )
            agent = Agent(self.settings, table, children, events=events, rng=rng)
            await self._supervised(agent, store, metrics)

    def _slots(self) -> int:
        return self.settings.processes * max(self.settings.threads, self.settings.async_tasks)

    async def _supervised(self, agent: Agent, store: DynamoStore, metrics: AgentMetrics) -> None:
        """Run the agent with its signals, its health server and its supervisor's socket."""
        loop = asyncio.get_running_loop()
        notifier = Notifier(self.environ)
        problem = partial(_problem, agent, loop, self.settings.stall)
        health = None
        if self.settings.port >= 0:
            health = HealthServer(self.settings.host, self.settings.port, metrics.registry, problem)
            say(log, logging.INFO, "listening", host=self.settings.host, port=health.port)
        stopper = _Stopper(agent, notifier)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopper.stop)
        loop.add_signal_handler(ORPHANED, stopper.orphaned)
        beside = [
            asyncio.create_task(_say_ready(agent, notifier)),
            asyncio.create_task(_beat(notifier, problem)),
            asyncio.create_task(_set_gauges(store, metrics)),
            asyncio.create_task(_tell_tally(metrics, notifier, is_wanted=SUPERVISOR in self.environ)),
        ]
        try:
            await agent.run()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            if health is not None:
                health.close()
            notifier.close()


def owner_name(pool: str, environ: Mapping[str, str]) -> str:
    """A lockOwner: ``<pool or ->/<host or pod name>/<pod uid or pid>-<random per process start>``."""
    host = environ.get("THUNDERAGENT_POD_NAME") or socket.gethostname()
    process = environ.get("THUNDERAGENT_POD_UID") or str(os.getpid())
    return f"{pool or '-'}/{host}/{process}-{secrets.token_hex(3)}"


def _problem(agent: Agent, loop: asyncio.AbstractEventLoop, stall: float) -> str | None:
    silent = loop.time() - agent.last_turn
    return f"The agent's loop has not turned for {silent:.0f} s." if silent > stall else None


class _Stopper:
    """What signals ask of the agent. That of a dead supervisor comes several times and hurries nothing."""

    def __init__(self, agent: Agent, notifier: Notifier) -> None:
        self._agent = agent
        self._notifier = notifier
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True
        self._notifier.send("STOPPING=1")
        self._agent.stop()

    def orphaned(self) -> None:
        if not self._stopping:
            self.stop()


async def _say_ready(agent: Agent, notifier: Notifier) -> None:
    await agent.ready.wait()
    notifier.send("READY=1")


async def _beat(notifier: Notifier, problem: Any) -> None:
    if notifier.watchdog is None:
        return
    while True:
        if problem() is None:
            notifier.send("WATCHDOG=1")
        await asyncio.sleep(notifier.watchdog)


async def _tell_tally(metrics: AgentMetrics, notifier: Notifier, *, is_wanted: bool) -> None:
    """Tell a local pool what was done, whenever there is more of it, and at the end."""
    if not is_wanted:
        return
    told = tally_of(metrics)
    try:
        while True:
            await asyncio.sleep(EVERY)
            if (tally := tally_of(metrics)) != told:
                notifier.send(as_state(tally))
                told = tally
    finally:
        notifier.send(as_state(tally_of(metrics)))


async def _set_gauges(store: DynamoStore, metrics: AgentMetrics) -> None:
    while True:
        if store.clock.known:
            middle = (store.clock.earliest() + store.clock.latest()) / 2
            metrics.clock_offset.set(time.time() - middle)
        await asyncio.sleep(GAUGES_EVERY)
