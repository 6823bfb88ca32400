"""A local pool's cycles as metrics: the same that the operator has of a pool on Kubernetes."""

from __future__ import annotations

from collections.abc import Callable

from thunderagent.local.pool import READ_LIMIT, PoolView
from thunderagent.metrics import PoolMetrics
from thunderagent.pool import Pool
from thunderagent.poolcycle import PoolName, tell_backlog, tell_decision
from thunderagent.scaling import FailedRead, Observation, ReplicaState

STALL = 60.0
"""Seconds beyond a poll and the longest reading without the end of a cycle, after which the pool calls itself unhealthy."""


class PoolMeter:
    """Is told of each cycle of one pool. ``wall`` is in epoch seconds, ``monotonic`` in seconds."""

    def __init__(self, metrics: PoolMetrics, pool: Pool, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._metrics = metrics
        self._labels: PoolName = ("", pool.name)
        self._wall = wall
        self._monotonic = monotonic
        self._limit = pool.spec.scaling.poll_seconds + READ_LIMIT + STALL
        self._last_cycle = monotonic()
        metrics.begin(self._labels)
        metrics.min_replicas.labels(*self._labels).set(pool.spec.scaling.min_replicas)
        metrics.max_replicas.labels(*self._labels).set(pool.spec.scaling.max_replicas)
        metrics.target_age.labels(*self._labels).set(pool.spec.scaling.target_age_seconds)

    def tell(self, view: PoolView) -> None:
        """Set the pool's series after a cycle."""
        self._last_cycle = self._monotonic()
        self._metrics.last_cycle.labels(*self._labels).set(self._wall())
        self._metrics.cycle_seconds.labels(*self._labels).observe(view.seconds)
        self._tell_reading(view)
        tell_decision(self._metrics, self._labels, view.decision)
        self._tell_replicas(view)
        for kind, is_true in conditions(view).items():
            self._metrics.condition.labels(*self._labels, kind).set(is_true)

    def problem(self) -> str | None:
        """What is wrong with the process, if anything: its cycles no longer end."""
        silent = self._monotonic() - self._last_cycle
        return f"No cycle of the pool has ended for {silent:.0f} s." if silent > self._limit else None

    def _tell_reading(self, view: PoolView) -> None:
        if isinstance(view.seen, Observation):
            tell_backlog(self._metrics, self._labels, view.seen)
            self._metrics.last_read.labels(*self._labels).set(self._wall())
        result = view.seen.reason if isinstance(view.seen, FailedRead) else "ok"
        self._metrics.reads.labels(*self._labels, result).inc()

    def _tell_replicas(self, view: PoolView) -> None:
        before, after = view.asked
        self._metrics.desired.labels(*self._labels).set(after)
        for state, found in (("available", ReplicaState.READY), ("starting", ReplicaState.STARTING)):
            self._metrics.replicas.labels(*self._labels, state).set(view.replicas.get(found, 0))
        if after != before:
            self._metrics.scalings.labels(*self._labels, "up" if after > before else "down", "ok").inc()


def conditions(view: PoolView) -> dict[str, bool]:
    """The conditions that the operator writes into a pool's status, as far as a machine has them."""
    is_read = isinstance(view.seen, Observation)
    return {
        "Ready": is_read and view.failures == 0,
        "Active": isinstance(view.seen, Observation) and view.seen.work > 0,
        "Paused": view.decision.paused,
        "Fallback": view.decision.fallback,
    }
