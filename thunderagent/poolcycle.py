"""What a cycle of a pool is made of wherever it runs: on this machine with processes, or on Kubernetes with pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from thunderagent.metrics import PoolMetrics
from thunderagent.pool import Pool
from thunderagent.scaling import Counts, Decision, Observation, ScalingRules
from thunderagent.settings import AgentSettings, TableSettings, environment_variable
from thunderagent.store.backlog import Backlog
from thunderagent.task import Task

PoolName = tuple[str, str]
"""Namespace and name of a pool, as its metrics have them for labels. On one machine the namespace is empty."""


def settings_environment(pool: Pool, identity: str, **more: Any) -> dict[str, str]:
    """What the pool says about its agents and their table, as environment variables.

    ``identity`` is the first part of their lockOwner. ``more`` are further fields of AgentSettings. What is empty is left out.
    """
    variables = {field.name: environment_variable(field) for cls in (AgentSettings, TableSettings) for field in fields(cls)}
    settings = {**pool.table_settings(), **pool.agent_settings(), "pool": identity, **more}
    return {variables[name]: str(value) for name, value in settings.items() if value not in (None, "")}


def tasks_needed(rules: ScalingRules) -> int:
    """Tasks up to which a reading has to count: those that all replicas together are for, or what it takes to wake the pool."""
    return max(rules.max_replicas * rules.tasks_per_replica, rules.activation_threshold + 1)


def wanted_by(pool: Pool) -> Callable[[Task], bool]:
    """Whether the pool's agents could claim a task."""
    task_types = frozenset(pool.spec.queue.task_types)
    return lambda task: not task_types or task.task_type in task_types


def counts_of(backlog: Backlog) -> Counts:
    """A reading of the table in the words of scaling."""
    return Counts(
        ready=backlog.ready,
        waiting=backlog.waiting,
        waiting_due=backlog.waiting_due,
        expired=backlog.expired,
        leases=backlog.running,
        oldest_ready_age=backlog.oldest_ready_age,
        cut=backlog.cut,
    )


def tell_backlog(metrics: PoolMetrics, pool: PoolName, seen: Observation) -> None:
    """Set what a reading has shown."""
    metrics.ready.labels(*pool).set(seen.ready)
    metrics.waiting.labels(*pool).set(seen.waiting)
    metrics.running.labels(*pool).set(seen.running)
    metrics.expired.labels(*pool).set(seen.expired)
    metrics.oldest_age.labels(*pool).set(seen.oldest_ready_age or 0)
    metrics.cut.labels(*pool).set(seen.cut)


def tell_decision(metrics: PoolMetrics, pool: PoolName, decision: Decision) -> None:
    """Count a decision by the reason that settled it, and set what the backlog asks for where it could be read."""
    metrics.decisions.labels(*pool, str(decision.reasons[-1])).inc()
    if decision.wanted is not None:
        metrics.wanted.labels(*pool).set(decision.wanted)
