"""What a cycle of a pool is made of wherever it runs: on this machine with processes, or on Kubernetes with pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from thunderagent.pool import Pool
from thunderagent.scaling import Counts, ScalingRules
from thunderagent.settings import AgentSettings, TableSettings, environment_variable
from thunderagent.store.backlog import Backlog
from thunderagent.task import Task


def settings_environment(pool: Pool, identity: str, **more: Any) -> dict[str, str]:
    """What the pool says about its agents and their table, as environment variables.

    ``identity`` is the first part of their lockOwner. ``more`` are further fields of AgentSettings. What is empty is left out.
    """
    variables = {field.name: environment_variable(field) for cls in (AgentSettings, TableSettings) for field in fields(cls)}
    settings = {**pool.table_settings(), **pool.agent_settings(), "pool": identity, **more}
    return {variables[name]: str(value) for name, value in settings.items() if value not in (None, "")}


def tasks_needed(rules: ScalingRules) -> int:
    """Tasks that all replicas of the pool together are for: a reading need not count further."""
    return rules.max_replicas * rules.tasks_per_replica


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
