"""A cycle's report as metrics."""

from __future__ import annotations

import time
from collections.abc import Callable

from controller.cluster import Object
from controller.conditions import Outcome
from controller.cycle import Report
from thunderagent.metrics import ControllerMetrics
from thunderagent.poolcycle import PoolName, tell_backlog, tell_decision

UNREAD = frozenset({"NotAllowed"})
"""Faults for which the backlog was not even asked for."""

BESIDE_THE_READING = frozenset({"InvalidAnnotation"})
"""Faults that are found before the reading and do not keep it from being made."""

UNSCALED = {"ScaleRefused": "refused", "Conflict": "conflict"}
"""Faults of a change of the replicas that was due, and the result that they count as."""


def tell(
    metrics: ControllerMetrics, resource: Object, report: Report, seconds: float, *, wall: Callable[[], float] = time.time
) -> None:
    """Set the pool's series. What this cycle did not learn stays as it was; ``wall`` is in epoch seconds."""
    metadata = resource["metadata"]
    pool = (metadata["namespace"], metadata["name"])
    metrics.begin(pool)
    metrics.cycle_seconds.labels(*pool).observe(seconds)
    metrics.last_cycle.labels(*pool).set(wall())
    _tell_outcome(metrics, pool, report.outcome)
    if report.pool is not None:
        metrics.min_replicas.labels(*pool).set(report.pool.spec.scaling.min_replicas)
        metrics.max_replicas.labels(*pool).set(report.pool.spec.scaling.max_replicas)
        metrics.target_age.labels(*pool).set(report.pool.spec.scaling.target_age_seconds)
        _tell_reading(metrics, pool, report.outcome)
    _tell_scaling(metrics, pool, report)
    metrics.marks.labels(*pool).inc(report.marked)
    for condition in report.status["conditions"]:
        metrics.condition.labels(*pool, condition["type"]).set(condition["status"] == "True")


def _tell_outcome(metrics: ControllerMetrics, pool: PoolName, outcome: Outcome) -> None:
    if outcome.observation is not None:
        tell_backlog(metrics, pool, outcome.observation)
    if outcome.decision is not None:
        tell_decision(metrics, pool, outcome.decision)
    if outcome.workload is not None:
        available = outcome.workload.available
        metrics.replicas.labels(*pool, "available").set(available)
        metrics.replicas.labels(*pool, "starting").set(max(0, outcome.workload.existing - available))
    if outcome.replicas is not None:
        metrics.desired.labels(*pool).set(outcome.replicas)


def _tell_reading(metrics: ControllerMetrics, pool: PoolName, outcome: Outcome) -> None:
    if outcome.read_at is not None:
        metrics.last_read.labels(*pool).set(outcome.read_at)
        metrics.reads.labels(*pool, "ok").inc()
        return
    reasons = [fault.reason for fault in outcome.faults if fault.reason not in BESIDE_THE_READING]
    if reasons and reasons[0] not in UNREAD:
        metrics.reads.labels(*pool, reasons[0]).inc()


def _tell_scaling(metrics: ControllerMetrics, pool: PoolName, report: Report) -> None:
    if report.scaled is not None:
        before, after = report.scaled
        metrics.scalings.labels(*pool, "up" if after > before else "down", "ok").inc()
    decision = report.outcome.decision
    for fault in report.outcome.faults:
        if decision is not None and fault.reason in UNSCALED:
            direction = "up" if decision.target > decision.current else "down"
            metrics.scalings.labels(*pool, direction, UNSCALED[fault.reason]).inc()
