"""Faults that come and go by themselves: each a coroutine that ends once faults have ended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tests.simulation.agents import Host, Setting
from tests.simulation.plan import Fault

LONG_OUTAGE = 900.0
"""Seconds of the longest outage of the table; most last about as long as a lease."""


def of_agents(setting: Setting, hosts: Callable[[], Sequence[Host]]) -> list[Coroutine[Any, Any, None]]:
    """What happens to agents and their machines."""
    kinds = {Fault.KILL: _kill, Fault.PAUSE: _pause, Fault.CUT: _cut, Fault.CLOCK: _set_clock}
    if not setting.plan.pool:  # a pod that is asked to end is deleted: that is an eviction
        kinds[Fault.RESTART] = _restart
    present = setting.plan.faults & kinds.keys()
    return [_again_and_again(setting, hosts, fault, kinds[fault]) for fault in sorted(present)]


def of_table(setting: Setting) -> list[Coroutine[Any, Any, None]]:
    """What happens to the table."""
    return [_outage(setting)] if Fault.OUTAGE in setting.plan.faults else []


async def _again_and_again(setting: Setting, hosts: Callable[[], Sequence[Host]], fault: Fault, happen: Any) -> None:
    rng = setting.plan.rng(fault)
    every = rng.choice([0.3, 1.0, 2.0]) * setting.plan.settings.lease
    while True:
        await asyncio.sleep(min(rng.expovariate(1 / every), setting.plan.calm_at))
        if setting.weather.calm:
            return
        if hosts():
            await happen(setting, _victim(hosts(), rng), rng)


def _victim(hosts: Sequence[Host], rng: random.Random) -> Host:
    """Mostly one that runs something: what happens to an idle agent seldom matters."""
    busy = [host for host in hosts if host.busy]
    return rng.choice(busy if busy and rng.random() < 0.8 else hosts)


def _about(setting: Setting, rng: random.Random) -> float:
    """Seconds a little shorter or longer than a lease: whoever is away for so long meets others at the end of what it holds."""
    return setting.plan.settings.lease * rng.uniform(0.7, 1.5)


async def _kill(setting: Setting, host: Host, rng: random.Random) -> None:
    host.kill()
    if not setting.plan.pool:  # a pod's kubelet starts its container again
        await asyncio.sleep(rng.choice([0.5, 10.0, _about(setting, rng)]))
        if not host.is_up:
            host.start()


async def _restart(setting: Setting, host: Host, rng: random.Random) -> None:
    process = host.process
    if process is None or process.is_over:
        return
    host.stop()
    if rng.random() < 0.3:
        await asyncio.sleep(rng.uniform(0.0, 5.0))
        host.stop()  # a second signal hurries it
    await process.ended()
    if not host.is_up:
        host.start()


async def _pause(setting: Setting, host: Host, rng: random.Random) -> None:
    host.pause()
    await asyncio.sleep(rng.choice([3.0, _about(setting, rng), _about(setting, rng)]))
    host.go_on()


async def _cut(setting: Setting, host: Host, rng: random.Random) -> None:
    setting.note(host.name, "is cut off from the table")
    host.machine.is_cut = True
    await asyncio.sleep(rng.choice([5.0, _about(setting, rng), _about(setting, rng)]))
    host.machine.is_cut = False
    setting.note(host.name, "is no longer cut off")


async def _set_clock(setting: Setting, host: Host, rng: random.Random) -> None:
    host.machine.wall_offset = rng.uniform(-600.0, 600.0)
    setting.note(host.name, f"has its clock set off by {host.machine.wall_offset:.0f} s")


async def _outage(setting: Setting) -> None:
    rng = setting.plan.rng(Fault.OUTAGE)
    lasts = LONG_OUTAGE if setting.plan.calm_at > LONG_OUTAGE else setting.plan.settings.lease * rng.uniform(0.3, 2.0)
    await asyncio.sleep(rng.uniform(0.0, setting.plan.calm_at - lasts))
    setting.note("table", "is away")
    setting.weather.outage = True
    await asyncio.sleep(lasts)
    setting.weather.outage = False
    setting.note("table", "is back")
