"""Agents of a history: each is the real agent, in a process that can be stopped, killed and started again on the same host."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import lru_cache, partial

from prometheus_client import CollectorRegistry

from tests.simulation.handlers import SimulatedRunner
from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.plan import Fault, Plan
from tests.simulation.table import SimulatedTable
from tests.simulation.trace import Trace
from tests.simulation.wire import Machine, Weather, Wire
from thunderagent.agent.agent import Agent
from thunderagent.agent.events import Events
from thunderagent.agent.table import Contact, Table
from thunderagent.metrics import AgentMetrics


class Setting:
    """What all processes of a history share."""

    def __init__(self, plan: Plan, loop: SimulatedLoop, table: SimulatedTable, weather: Weather, trace: Trace) -> None:
        self.plan = plan
        self.loop = loop
        self.table = table
        self.weather = weather
        self.trace = trace
        self.wires: dict[str, Wire] = {}

    def note(self, who: str, what: str, task_id: str = "") -> None:
        self.trace.note(self.loop.time(), who, what, task_id)

    def wire(self, process: Process, machine: Machine) -> Wire:
        """A new process's way to the table."""
        wire = Wire(self.loop, self.table, process, machine, self.weather, self.plan, self.trace)
        self.wires[process.name] = wire
        return wire

    def machine(self, name: str) -> Machine:
        return Machine(self.loop, self.plan.rng(f"machine {name}"), Fault.CLOCK in self.plan.faults)


class Host:
    """A machine, or a pod, on which an agent runs. ``identity``: what the agent's lockOwner begins with."""

    def __init__(self, setting: Setting, name: str, identity: str, on_exit: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.machine = setting.machine(name)
        self.agent: Agent | None = None
        self.process: Process | None = None
        self._setting = setting
        self._identity = identity
        self._on_exit = on_exit
        self._starts = 0

    @property
    def is_up(self) -> bool:
        """Whether an agent runs here, stopped or not."""
        return self.process is not None and not self.process.is_over

    @property
    def busy(self) -> int:
        return self.agent.busy if self.agent is not None and self.is_up else 0

    def start(self) -> None:
        """Start an agent, as a container or a service is."""
        assert not self.is_up
        self._starts += 1
        process = self.process = Process(f"{self._identity}-{self._starts}")
        self._setting.note(process.name, "starts")
        process.start(self._setting.loop, self._run(process))

    def stop(self) -> None:
        """SIGTERM."""
        if self.is_up and self.agent is not None:
            self._setting.note(self._name, "is asked to drain")
            self.agent.stop()

    def kill(self) -> None:
        """SIGKILL, or the power goes."""
        if self.is_up and self.process is not None:
            self._setting.note(self._name, "is killed")
            self.process.kill(self._setting.loop)
            self._on_exit()

    def pause(self) -> None:
        if self.is_up and self.process is not None:
            self._setting.note(self._name, "is paused")
            self.process.stop()

    def go_on(self) -> None:
        if self.process is not None and self.process.is_stopped:
            self._setting.wires[self.process.name].trouble("goes on", lasts=0.0)
            self.process.go_on(self._setting.loop)

    def _say(self, process: Process, what: str, task_id: str) -> None:
        """What a run tells; those of a process that was killed are gone, and what they would have done is no news."""
        if not process.is_over:
            self._setting.note(process.name, what, task_id)

    async def ended(self) -> None:
        """Return once no agent runs here."""
        if self.process is not None:
            await self.process.ended()

    @property
    def _name(self) -> str:
        return "" if self.process is None else self.process.name

    async def _run(self, process: Process) -> None:
        plan, wire = self._setting.plan, self._setting.wire(process, self.machine)
        rng = plan.rng(f"agent {process.name}")
        runner = SimulatedRunner(plan, self._setting.weather, random.Random(rng.random()), partial(self._say, process))
        contact = Contact(asyncio.get_running_loop().time, plan.settings.renew)
        self.agent = Agent(
            plan.settings,
            Table(wire, wire, wire.call, wire.call, contact),
            runner,
            events=_Events(self._setting, process.name),
            rng=rng,
        )
        await self.agent.run()
        if not process.is_over:
            self._setting.note(process.name, "has drained and ends")
            process.is_over = True
            self._on_exit()


class _Events(Events):
    """An agent's mouth. What it says of the table is not listened to; that a mistake of its own was met is a violation."""

    def __init__(self, setting: Setting, owner: str) -> None:
        super().__init__(_metrics(), owner)
        self._mistakes = setting.loop.mistakes

    def fault(self, error: BaseException) -> None:
        self._mistakes.append(f"a fault in {self.owner}: {error!r}")


@lru_cache(maxsize=1)
def _metrics() -> AgentMetrics:
    """One set for all agents: to make it takes longer than many a history, and nothing here reads it."""
    return AgentMetrics(CollectorRegistry(), "")
