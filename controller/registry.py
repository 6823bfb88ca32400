"""Every pool that is served, each with a task of its own that runs its cycles.

Events come from kopf, and now and then from a listing that finds what events have missed; either may be late or double. A pool
that has gone leaves nothing: no task, no series, no memory. A task that dies is started again, and takes no other with it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from controller.cluster import Cluster, Object
from controller.cycle import Report
from controller.errors import ClusterError, NotLeading
from controller.watchdog import Watchdog
from thunderagent.backoff import full_jitter
from thunderagent.log import say

log = logging.getLogger("thunderagent.operator")

FIRST_SPREAD = 2.0
"""Seconds over which the first cycles of pools found by a listing are spread."""

RESTART_BASE, RESTART_CAP = 1.0, 30.0
"""Seconds before a pool's task that has died is started again, growing while it dies again at once."""

LISTING = "the listing of pools"


class Cycles(Protocol):
    """The cycles of one pool."""

    async def run(self, resource: Object) -> Report:
        """One cycle. Raises NotLeading."""

    def forget(self) -> None:
        """The pool is gone."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. ``cycle``: after which a cycle is given up. ``stall``: beyond that, after which its task counts as dead."""

    cycle: float
    stall: float
    listing: float


class Registry:
    """``make`` makes the cycles of a new pool; ``tell`` hears of each report and how long it took, ``gone`` of pools that went.

    Nothing but :meth:`on_event` and :meth:`list_forever` need be called; both in the loop's thread.
    """

    def __init__(
        self,
        cluster: Cluster,
        make: Callable[[str], Cycles],
        watchdog: Watchdog,
        limits: Limits,
        rng: random.Random,
        *,
        tell: Callable[[Object, Report, float], None] = lambda resource, report, seconds: None,
        gone: Callable[[Object], None] = lambda resource: None,
        lost: Callable[[], None] = lambda: None,
        counted: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._cluster = cluster
        self._make = make
        self._watchdog = watchdog
        self._limits = limits
        self._rng = rng
        self._tell = tell
        self._gone = gone
        self._lost = lost
        self._counted = counted
        self._pools: dict[str, _Served] = {}
        self._unlisted = ""
        self._untold = ""
        self.listed = asyncio.Event()
        """Set once the pools have been listed: their kind is known to the API server."""

    @property
    def uids(self) -> set[str]:
        """The pools that have a task."""
        return set(self._pools)

    def on_event(self, kind: str | None, resource: Object) -> None:
        """An event of a watch: ``DELETED``, or anything else for a pool that is there."""
        if kind == "DELETED":
            self._remove(resource["metadata"]["uid"])
        else:
            self._see(resource, delay=0.0)

    async def list_forever(self) -> None:
        """List all pools again and again. An API server that is away changes nothing."""
        failed = 0
        while True:
            self._watchdog.expect(LISTING, within=self._limits.listing + self._limits.cycle + self._limits.stall)
            failed = 0 if await self._list() else failed + 1
            soon = full_jitter(self._rng, failed, base=RESTART_BASE, cap=self._limits.listing)
            await asyncio.sleep(soon if failed else self._limits.listing)

    async def stop(self) -> None:
        """End all tasks, a cycle under way in its middle."""
        tasks = [served.task for served in self._pools.values()]
        for uid in list(self._pools):
            self._remove(uid)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _list(self) -> bool:
        before = {uid: served.version for uid, served in self._pools.items()}
        try:
            async with asyncio.timeout(self._limits.cycle):
                self._compare(await self._cluster.pools(), before)
        except (ClusterError, TimeoutError) as error:
            self._say_unlisted(str(error) or type(error).__name__)
            return False
        except Exception:
            log.exception("listing the pools failed")
            return False
        self._unlisted = ""
        self.listed.set()
        return True

    def _say_unlisted(self, why: str) -> None:
        """Once for each reason, not once a try."""
        if why != self._unlisted:
            say(log, logging.WARNING, "pools not listed", why=why)
        self._unlisted = why

    def _compare(self, pools: Iterable[Object], before: dict[str, int]) -> None:
        """Take the listing in. What came, went or changed by an event meanwhile is newer than the listing."""
        listed = {pool["metadata"]["uid"]: pool for pool in pools}
        for uid in before.keys() - listed.keys():
            self._remove(uid)
        for uid, pool in listed.items():
            known = self._pools.get(uid)
            if known is None and uid not in before:
                self._see(pool, delay=self._rng.uniform(0.0, FIRST_SPREAD))
            elif known is not None and known.version == before.get(uid):
                self._see(pool, delay=0.0)

    def _see(self, resource: Object, delay: float) -> None:
        metadata = resource["metadata"]
        uid = metadata["uid"]
        if metadata.get("deletionTimestamp") is not None:
            self._remove(uid)  # what it owns goes by the garbage collector; until then its pods are left in peace
        elif uid in self._pools:
            self._pools[uid].update(resource)
        else:
            served = _Served(resource)
            self._pools[uid] = served
            served.task = asyncio.create_task(self._serve(uid, served, delay), name=f"pool {uid}")
            self._counted(len(self._pools))

    def _remove(self, uid: str) -> None:
        served = self._pools.pop(uid, None)
        if served is not None:
            served.task.cancel()
            self._watchdog.forget(uid)
            self._gone(served.resource)
            self._counted(len(self._pools))

    async def _serve(self, uid: str, served: _Served, delay: float) -> None:
        """Run the pool's cycles, anew should they fail."""
        failed = 0
        await asyncio.sleep(delay)
        while True:
            cycles = self._make(uid)
            try:
                await self._run_cycles(uid, served, cycles)
            except NotLeading as error:
                say(log, logging.ERROR, "no longer leading", why=str(error))
                self._lost()
                return
            except Exception:
                log.exception("the task of a pool died")
                self._watchdog.expect(uid, within=RESTART_CAP + self._limits.stall)
                await asyncio.sleep(full_jitter(self._rng, failed, base=RESTART_BASE, cap=RESTART_CAP))
                failed += 1
            finally:
                cycles.forget()

    async def _run_cycles(self, uid: str, served: _Served, cycles: Cycles) -> None:
        now = asyncio.get_running_loop().time
        while True:
            self._watchdog.expect(uid, within=2 * self._limits.cycle + self._limits.stall)  # to work, and to tell
            served.changed.clear()
            began, resource = now(), served.resource
            report = await cycles.run(resource)
            self._measure(resource, report, now() - began)
            self._watchdog.expect(uid, within=report.pause + 2 * self._limits.cycle + self._limits.stall)
            await served.pause(report.pause)

    def _measure(self, resource: Object, report: Report, seconds: float) -> None:
        """What is only told must not cost a pool what its cycles remember: a mistake in it is logged, once."""
        try:
            self._tell(resource, report, seconds)
        except Exception as error:
            if repr(error) != self._untold:
                log.exception("a cycle could not be told")
            self._untold = repr(error)


class _Served:
    """A pool as last seen. ``version`` counts how often it was seen; ``changed`` is set when a person has changed it."""

    def __init__(self, resource: Object) -> None:
        self.resource = resource
        self.version = 0
        self.changed = asyncio.Event()
        self.task: asyncio.Task[None]

    def update(self, resource: Object) -> None:
        if _older(resource, self.resource):
            return
        if _essence(resource) != _essence(self.resource):
            self.changed.set()
        self.resource = resource
        self.version += 1

    async def pause(self, seconds: float) -> None:
        """Wait for the next cycle, or until a person changes the pool."""
        try:
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        except TimeoutError:
            return


def _essence(resource: Object) -> tuple[Any, ...]:
    """What of a pool its owner writes. Its status is the operator's own."""
    metadata = resource["metadata"]
    return metadata.get("generation"), metadata.get("annotations"), metadata.get("labels")


def _older(resource: Object, known: Object) -> bool:
    """Whether the object is an earlier state of the one that is known: a watch that began again repeats old ones."""
    return bool(resource["metadata"].get("generation", 0) < known["metadata"].get("generation", 0))
