"""What is wrong with a task table, and what to do about it: the trouble-shooting table as a program.

:mod:`~thunderagent.diagnosis.read` observes a table at a bounded cost; :func:`diagnose` is a pure function from what was
observed to findings. Each rule is a function of its own, in the module of its subject; they are joined here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thunderagent.diagnosis import (
    agents,
    coverage,
    dependencies,
    items,
    layout,
    leases,
    machine,
    runs,
    scanned,
    schedule,
    shape,
)
from thunderagent.diagnosis.finding import Finding, Severity
from thunderagent.diagnosis.observation import Observation, Patience

__all__ = ["Finding", "Observation", "Patience", "Severity", "diagnose"]

Rule = Callable[[Observation, Patience], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    shape.table_state,
    shape.keys,
    shape.index_there,
    shape.index_keys,
    shape.projection,
    layout.dispatch_index,
    layout.astray,
    shape.ttl,
    shape.billing,
    machine.throttling,
    machine.clock,
    agents.no_agent,
    agents.untaken_type,
    agents.slow_backlog,
    dependencies.cycles,
    dependencies.failed,
    dependencies.missing,
    dependencies.not_looked_at,
    dependencies.waiting,
    schedule.scheduled,
    schedule.far_away,
    leases.expired,
    leases.status_not_written,
    leases.endless,
    runs.overlapping,
    runs.several_owners,
    runs.same_error,
    runs.lost_again,
    runs.released_again,
    runs.failures,
    items.milliseconds,
    items.odd_types,
    items.expires_while_open,
    items.never_expires,
    scanned.not_tasks,
    scanned.not_in_index,
    coverage.cut,
)


def diagnose(observation: Observation, patience: Patience | None = None) -> tuple[Finding, ...]:
    """Everything that the rules find in what was observed, the worst first."""
    limits = patience or Patience()
    found = [finding for rule in RULES for finding in rule(observation, limits)]
    return tuple(sorted(found, key=lambda finding: finding.severity.rank))
