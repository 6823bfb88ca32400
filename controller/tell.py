"""A cycle's report as metrics."""

from __future__ import annotations

from controller.cluster import Object
from controller.conditions import Outcome
from controller.cycle import Report
from thunderagent.metrics import ControllerMetrics
from thunderagent.scaling import Observation


def tell(metrics: ControllerMetrics, resource: Object, report: Report, seconds: float) -> None:
    """Set the pool's series. What this cycle did not learn stays as it was."""
    metadata = resource["metadata"]
    pool = (metadata["namespace"], metadata["name"])
    metrics.cycle_seconds.labels(*pool).observe(seconds)
    _tell_outcome(metrics, pool, report.outcome)
    if report.pool is not None:
        metrics.min_replicas.labels(*pool).set(report.pool.spec.scaling.min_replicas)
        metrics.max_replicas.labels(*pool).set(report.pool.spec.scaling.max_replicas)
    if report.scaled is not None:
        before, after = report.scaled
        metrics.scalings.labels(*pool, "up" if after > before else "down").inc()
    metrics.marks.labels(*pool).inc(report.marked)
    for condition in report.status["conditions"]:
        metrics.condition.labels(*pool, condition["type"]).set(condition["status"] == "True")


def _tell_outcome(metrics: ControllerMetrics, pool: tuple[str, str], outcome: Outcome) -> None:
    if outcome.observation is not None:
        _tell_backlog(metrics, pool, outcome.observation)
    if outcome.read_at is not None:
        metrics.last_read.labels(*pool).set(outcome.read_at)
    if outcome.decision is not None:
        metrics.decisions.labels(*pool, str(outcome.decision.reasons[-1])).inc()
    if outcome.workload is not None:
        available = outcome.workload.available
        metrics.replicas.labels(*pool, "available").set(available)
        metrics.replicas.labels(*pool, "starting").set(max(0, outcome.workload.existing - available))
    if outcome.replicas is not None:
        metrics.desired.labels(*pool).set(outcome.replicas)


def _tell_backlog(metrics: ControllerMetrics, pool: tuple[str, str], seen: Observation) -> None:
    metrics.ready.labels(*pool).set(seen.ready)
    metrics.waiting.labels(*pool).set(seen.waiting)
    metrics.running.labels(*pool).set(seen.running)
    metrics.expired.labels(*pool).set(seen.expired)
    metrics.oldest_age.labels(*pool).set(seen.oldest_ready_age or 0)
    metrics.cut.labels(*pool).set(seen.cut)
