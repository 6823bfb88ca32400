"""How long after an agent's death its task runs again: real agents on a virtual clock, over a table in memory."""

from __future__ import annotations

import asyncio
import random

from benchmarks.pairs import middle
from benchmarks.report import Figure, Goal
from tests.simulation.history import silence
from tests.unit.virtual import World, until
from thunderagent import AgentSettings, Router

TRIES = 50
SETTINGS = AgentSettings(start_delay_min=0, start_delay_max=0, processes=1)
LOOK_MAX = 1.5
"""The longest wait between two looks for ended leases, in times of its mean."""

ROUNDING = 2
"""Seconds by which whole seconds of the table's time may lengthen the two."""


def seconds_until_rerun(seed: int) -> float:
    """One agent dies at a random moment of its run; another one, which has nothing to do, takes the task over."""
    world = World(seed)
    world.queue.enqueue({}, task_id="t")
    router = Router()
    router.default(lambda task: None)

    async def scenario() -> float:
        first, wire, _ = world.agent("first", SETTINGS, router)
        running = asyncio.create_task(first.run())
        await until(lambda: first.busy == 1)
        await asyncio.sleep(random.Random(seed).uniform(0, 3 * SETTINGS.renew))
        wire.cut = True
        died_at = asyncio.get_running_loop().time()
        other, _, runner = world.agent("other", SETTINGS, router)
        taking_over = asyncio.create_task(other.run())
        await until(lambda: bool(runner.runs))
        seconds = asyncio.get_running_loop().time() - died_at
        runner.runs[0].finish()
        for task in (running, taking_over):
            task.cancel()
        await asyncio.gather(running, taking_over, return_exceptions=True)
        return seconds

    return world.run(scenario)


def measure(tries: int = TRIES) -> list[Figure]:
    """The middle and the worst of some deaths."""
    with silence():
        samples = tuple(seconds_until_rerun(seed) for seed in range(tries))
    lease, renew, look = SETTINGS.lease, SETTINGS.renew, SETTINGS.expired_look
    lease, renew, look = SETTINGS.lease, SETTINGS.renew, SETTINGS.expired_look
    how = f"lease {lease:g} s, renewed every {renew:g} s, looks every {look:g} s on average; {tries} deaths, virtual clock"
    return [
        Figure("from an agent's death to the next run of its task", middle(samples), "s", "", how, None, samples),
        Figure("the same at worst", max(samples), "s", "a lease and one look", how, Goal(lease + LOOK_MAX * look + ROUNDING)),
    ]
