"""Two replicas of the operator over the simulated cluster, and what they must never do to it."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from controller.allowed import DEFAULT
from controller.cycle import PoolCycle, Surroundings
from controller.deployments import Deployments
from controller.election import Candidacy, Election
from controller.names import pool_identity
from controller.reading import Readings
from controller.registry import Limits, Registry
from controller.watchdog import Watchdog
from tests.controller.fakecluster import FakeCluster
from tests.simulation.agents import Setting
from tests.simulation.checker import Violation
from tests.simulation.cluster import NAMESPACE, POOL, Api, ApiServer, Nodes, spec
from tests.simulation.loop import Process
from tests.simulation.plan import Fault
from tests.simulation.wire import Wire
from thunderagent.errors import StoreError
from thunderagent.scaling import owner_of
from thunderagent.task import Status

IDENTITY = pool_identity(NAMESPACE, POOL)
REPLICAS_OF_OPERATOR = ("operator-a", "operator-b")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the index showed at the moment of one reading, counted here without the code that is under test.

    The operator knows the table's time to a second: ``ready`` were so a second before, ``soon`` by a second after. ``pending``:
    where these are more than a reading goes through, it adds what it found before, and may be too high.
    """

    ready: int
    soon: int
    pending: int
    waiting: int
    expired: int
    running: int
    busy: dict[str, int]

    def least(self, staying: set[str]) -> int:
        """Tasks that the pool's replicas are for at the least: those ready, lost, or held by a pod that stays."""
        return self.ready + self.expired + sum(count for owner, count in self.busy.items() if owner in staying)

    def most(self) -> int:
        return self.soon + min(1, self.waiting) + self.running


@dataclass(slots=True)
class _Eyes:
    """What one operator process has read of the table; None for a reading that failed."""

    readings: list[Seen | None] = field(default_factory=list)


class Operators:
    """The operator's processes and the pool that they scale. ``found`` hears of violations."""

    def __init__(self, setting: Setting, found: Callable[[Violation], None]) -> None:
        self.setting = setting
        self.fake = FakeCluster(setting.table.time)
        self.api = Api()
        self.nodes = Nodes(setting, self.fake, self._victims)
        self.processes: dict[str, Process] = {}
        self._found = found
        self._rng = setting.plan.rng("operators")
        self._eyes: dict[str, _Eyes] = {}
        self._busy_at_scale: dict[str, int] = {}
        self._starts = 0
        self.api.on_write, self.api.on_scale = self._wrote, self._scaled
        self.fake.lag = self._rng.uniform(0.0, 1.5)
        self._pool = spec(self._rng, setting.plan.tasks_per_replica, setting.plan.settings.drain)
        self.fake.create_pool(self._pool, POOL, NAMESPACE)

    # --- the processes ----------------------------------------------------------------------------------------------------

    def start(self) -> list[Coroutine[Any, Any, None]]:
        """Start both; what comes back is what goes wrong with them, each to run until faults end."""
        self.setting.loop.create_task(self.nodes.run())
        for name in REPLICAS_OF_OPERATOR:
            self.setting.loop.create_task(self._supervise(name))
        kinds = {
            Fault.OPERATOR_CRASH: self._crash,
            Fault.LEADER: self._pause,
            Fault.API_OUTAGE: self._outage,
            Fault.EVICTION: self._evict,
        }
        return [self._again_and_again(fault, happen) for fault, happen in kinds.items() if fault in self.setting.plan.faults]

    @property
    def is_at_rest(self) -> bool:
        return not self.fake.all_pods() and self.fake.replicas() == 0

    async def _supervise(self, name: str) -> None:
        """Whenever the process has ended, start it again."""
        while True:
            self._starts += 1
            process = self.processes[name] = Process(f"{name}-{self._starts}")
            self.setting.note(process.name, "starts")
            running = process.start(self.setting.loop, self._run(process, name))
            await asyncio.wait({running})
            process.is_over = True
            if not running.cancelled():
                running.result()
            await asyncio.sleep(self._rng.uniform(0.5, 5.0))

    async def _run(self, process: Process, name: str) -> None:
        """The operator's process, put together as controller.main does, without signals and threads."""
        setting, machine = self.setting, self.setting.machine(name)
        view = ApiServer(setting, self.fake, process, self.api)
        rng = setting.plan.rng(f"operator {process.name}")
        election = Election(view, Candidacy(NAMESPACE, "thunderagent", process.name), machine.monotonic, machine.wall, rng)
        view.election = election
        await election.acquire()
        setting.note(process.name, "leads")
        wire, eyes = setting.wire(process, machine), self._eyes.setdefault(process.name, _Eyes())
        around = Surroundings(
            cluster=view,
            readings=Readings(lambda settings: wire, partial(self._read, wire, eyes), machine.monotonic, rng),
            deployments=Deployments(view, "1.0"),
            allowed=DEFAULT,
            now=machine.monotonic,
            wall=machine.wall,
        )
        lost = asyncio.Event()
        registry = Registry(
            view,
            partial(PoolCycle, around=around),
            Watchdog(machine.monotonic),
            Limits(cycle=60.0, stall=60.0, listing=10.0),
            random.Random(rng.random()),
            lost=lost.set,
        )
        parts = [asyncio.create_task(each) for each in (registry.list_forever(), election.keep(), lost.wait())]
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        setting.note(process.name, "no longer leads, and ends")
        process.kill(setting.loop)

    async def _read(self, wire: Wire, eyes: _Eyes, function: Callable[[], Any]) -> Any:
        try:
            seen, value = await wire.call(lambda: (self._look(), function()))
        except StoreError:
            eyes.readings.append(None)
            raise
        eyes.readings.append(seen)
        return value

    # --- what goes wrong ----------------------------------------------------------------------------------------------------

    async def _again_and_again(self, fault: Fault, happen: Callable[[random.Random], Coroutine[Any, Any, None]]) -> None:
        rng = self.setting.plan.rng(fault)
        every = rng.choice([20.0, 60.0])
        while not self.setting.weather.calm:
            await asyncio.sleep(min(rng.expovariate(1 / every), self.setting.plan.calm_at))
            if not self.setting.weather.calm:
                await happen(rng)

    async def _crash(self, rng: random.Random) -> None:
        process = self.processes[rng.choice(REPLICAS_OF_OPERATOR)]
        if not process.is_over:
            self.setting.note(process.name, "is killed")
            process.kill(self.setting.loop)

    async def _pause(self, rng: random.Random) -> None:
        """The other one leads meanwhile, if it lasts."""
        process = self.processes[rng.choice(REPLICAS_OF_OPERATOR)]
        self.setting.note(process.name, "is paused")
        process.stop()
        await asyncio.sleep(rng.choice([5.0, 14.0, 25.0]))
        self.setting.note(process.name, "goes on")
        process.go_on(self.setting.loop)

    async def _outage(self, rng: random.Random) -> None:
        self.setting.note("API server", "is away")
        self.api.is_away = True
        await asyncio.sleep(rng.choice([3.0, 20.0, 60.0]))
        self.api.is_away = False
        self.setting.note("API server", "is back")

    async def _evict(self, rng: random.Random) -> None:
        self.nodes.evict(gone=rng.random() < 0.4)

    # --- what must never happen -----------------------------------------------------------------------------------------------

    def _look(self) -> Seen:
        now = math.floor(self.setting.table.time())
        pending, running = (self.setting.table.shown(status) for status in (Status.PENDING, Status.RUNNING))
        busy: dict[str, int] = {}
        for task in running:
            owner = owner_of(task.lock_owner or "")
            if owner.startswith(f"{IDENTITY}/") and not task.is_due(now - 1):
                busy[owner] = busy.get(owner, 0) + (not task.is_due(now + 1))
        return Seen(
            ready=sum(task.is_due(now - 1) and not task.is_waiting for task in pending),
            soon=sum(task.is_due(now + 1) and not task.is_waiting for task in pending),
            pending=len(pending),
            waiting=sum(task.is_waiting for task in pending),
            expired=sum(task.is_due(now - 1) for task in running),
            running=len(running),
            busy={owner: count for owner, count in busy.items() if count},
        )

    def _wrote(self, process: Process) -> None:
        """A write to the cluster that has arrived: its sender must still be the one that the Lease names."""
        holder = next(iter(self.fake._leases.values()))["spec"]["holderIdentity"]
        self._check("only the leader writes", holder == process.name, f"{process.name} writes, {holder} leads")

    def _scaled(self, process: Process, before: int, after: int) -> None:
        self.setting.note(process.name, f"scales from {before} to {after}")
        readings = self._eyes[process.name].readings
        seen = readings[-1]
        if seen is None:
            self._check("no scaling on a failed read", False, f"from {before} to {after}")
            return
        per_replica = self.setting.plan.tasks_per_replica
        if after > before:
            is_cut = seen.pending >= self._most() * per_replica
            enough = is_cut or after <= math.ceil(seen.most() / per_replica)
            self._check("what waits is no reason to grow", enough, f"from {before} to {after} for {seen}")
            return
        staying = self._staying()
        self._busy_at_scale = dict(seen.busy)
        busy = sum(seen.busy.get(owner, 0) > 0 for owner in staying)
        self._check("replicas are never below those busy", after >= busy, f"{after} of {before}, {busy} busy")
        for each in [None, *readings][-2:]:
            low = each is not None and min(self._most(), math.ceil(each.least(staying) / per_replica)) <= after
            self._check("a scale-down needs two low readings in a row", low, f"from {before} to {after}: {readings[-2:]}")

    def _victims(self, uids: list[str]) -> None:
        """Pods that their ReplicaSet has chosen to remove: idle, by the reading that the scale-down was decided on."""
        busy = {owner.rpartition("/")[2] for owner, count in self._busy_at_scale.items() if count}
        for uid in uids:
            self._check("pods that go are idle", uid not in busy, uid)

    def _staying(self) -> set[str]:
        """The owners of pods that are not on their way out."""
        names = [pod["metadata"] for pod in self.fake.all_pods() if "deletionTimestamp" not in pod["metadata"]]
        return {f"{IDENTITY}/{each['name']}/{each['uid']}" for each in names}

    def _most(self) -> int:
        return int(self._pool["scaling"]["maxReplicas"])

    def _check(self, rule: str, holds: bool, what: str) -> None:
        if not holds:
            self._found(Violation(rule, self.setting.loop.time(), what))
