"""Which replica of the operator leads: a Lease of coordination.k8s.io, held by who keeps renewing it.

The official client's own election dies on an API server that cannot be reached, and goes on leading by the wall clock; so the
loop is written here. All times that decide are monotonic, and the leader's promise ends before anybody may break it::

    renewal sent                    the leader's last write may begin      it has ended      another may lead
    |-------------------------------|--------------------------------------|-----------------|
    0                               DEADLINE 10 s                          + WRITE_TIMEOUT 4 DURATION 15 s, from when the
                                                                                             other *saw* the renewal

A leader that is too late steps down by ending its process: nothing that it may still hold in memory can then act.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controller.cluster import Leases, Object
from controller.errors import ClusterError, NotLeading, ObjectChanged
from thunderagent.log import say

log = logging.getLogger("thunderagent.operator")

DURATION = 15.0
"""Seconds without a renewal after which another replica may lead."""

DEADLINE = 10.0
"""Seconds after it sent its last good renewal for which the leader may begin a write."""

RETRY = 1.5
"""Seconds between renewals, and between looks at somebody else's Lease. A leader that dies is replaced within
RETRY + DURATION + RETRY: 18 s."""


@dataclass(frozen=True, slots=True)
class Candidacy:
    """Who stands for election, and by which Lease."""

    namespace: str
    name: str
    identity: str


class Election:
    """``now`` gives monotonic seconds, ``wall`` epoch seconds, which go into the Lease for people to read."""

    def __init__(
        self, leases: Leases, candidacy: Candidacy, now: Callable[[], float], wall: Callable[[], float], rng: random.Random
    ) -> None:
        self._leases = leases
        self._candidacy = candidacy
        self._now = now
        self._wall = wall
        self._rng = rng
        self._lease: Object | None = None
        self._seen: tuple[Any, ...] = ()
        self._seen_at = now()
        self._leads_until = 0.0
        self._said = ""

    @property
    def is_leading(self) -> bool:
        return self._now() < self._leads_until

    def check(self) -> None:
        """Raises NotLeading unless this replica may write now. Called by every thread that is about to."""
        if not self.is_leading:
            raise NotLeading("The Lease has not been renewed in time, so another replica may lead now.")

    async def acquire(self) -> None:
        """Return once this replica leads."""
        while True:
            if await self._try():
                return
            await asyncio.sleep(RETRY * self._rng.uniform(0.8, 1.0))

    async def keep(self) -> None:
        """Renew until leadership is lost, and return then. It is not taken again: the process has to begin anew."""
        while True:
            await asyncio.sleep(RETRY)
            if not self.is_leading:
                return
            await self._try()

    async def release(self) -> None:
        """Let another replica lead at once. Only once nothing of this process writes any more."""
        if not self.is_leading or self._lease is None:
            return
        self._leads_until = 0.0
        try:
            await self._leases.replace_lease(_with_spec(self._lease, {**self._lease["spec"], "holderIdentity": ""}))
        except ClusterError as error:
            say(log, logging.WARNING, "lease not released", why=str(error))

    async def _try(self) -> bool:
        """Renew or take the Lease if it is there to be had; whether this replica leads. Never raises a fault on."""
        sent = self._now()
        try:
            async with asyncio.timeout(DEADLINE):
                renewed = await self._renew() if self.is_leading else await self._take()
        except (ClusterError, TimeoutError) as error:
            renewed = False
            self._lease = None if isinstance(error, ObjectChanged) else self._lease
            self._say(str(error) or "the API server did not answer in time")
        except Exception:
            log.exception("a mistake in the election")
            renewed = False
        if renewed:
            self._leads_until = sent + DEADLINE
            self._say("")
        return renewed and self.is_leading

    async def _renew(self) -> bool:
        """Write over what we wrote last, without a look; where that fails, the next time with one."""
        if self._lease is None:
            return await self._take()
        self._lease = await self._leases.replace_lease(_with_spec(self._lease, self._spec(self._lease["spec"])))
        return True

    async def _take(self) -> bool:
        candidacy = self._candidacy
        lease = await self._leases.lease(candidacy.namespace, candidacy.name)
        if lease is None:
            self._lease = await self._leases.create_lease(self._fresh())
            return True
        if not self._is_free(lease):
            self._leads_until = 0.0
            return False
        self._lease = await self._leases.replace_lease(_with_spec(lease, self._spec(lease["spec"])))
        return True

    def _is_free(self, lease: Object) -> bool:
        """Whether it is ours, nobody's, or has not changed for as long as its holder said that it would renew it."""
        spec = lease["spec"]
        seen = (spec.get("holderIdentity"), spec.get("renewTime"), lease["metadata"].get("resourceVersion"))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._now()
        if spec.get("holderIdentity") in {self._candidacy.identity, "", None}:
            return True
        return self._now() - self._seen_at >= max(DURATION, float(spec.get("leaseDurationSeconds") or 0))

    def _fresh(self) -> dict[str, Any]:
        metadata = {"namespace": self._candidacy.namespace, "name": self._candidacy.name}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": self._spec({})}

    def _spec(self, earlier: Mapping[str, Any]) -> dict[str, Any]:
        now = datetime.fromtimestamp(self._wall(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_same = earlier.get("holderIdentity") == self._candidacy.identity
        return {
            "holderIdentity": self._candidacy.identity,
            "leaseDurationSeconds": int(DURATION),
            "acquireTime": earlier["acquireTime"] if is_same and "acquireTime" in earlier else now,
            "renewTime": now,
            "leaseTransitions": int(earlier.get("leaseTransitions") or 0) + (not is_same and bool(earlier)),
        }

    def _say(self, why: str) -> None:
        if why and why != self._said:
            say(log, logging.WARNING, "lease not renewed", why=why)
        self._said = why


def _with_spec(lease: Object, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: lease["metadata"].get(key) for key in ("namespace", "name", "resourceVersion", "uid")}
    present = {key: value for key, value in metadata.items() if value is not None}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": present, "spec": dict(spec)}
