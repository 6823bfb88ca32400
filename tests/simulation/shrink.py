"""Making a history with a violation smaller: without the faults and the tasks that the violation does not need."""

from __future__ import annotations

from tests.simulation.history import NOTHING, History, Mutation, simulate


def shrink(history: History, mutation: Mutation = NOTHING) -> History:
    """The smallest history found that breaks the same rule, by leaving out one kind of fault or one task after the other."""
    rule = history.violations[0].rule
    for fault in sorted(history.plan.faults):
        history = _smaller(history, mutation, rule, faults=(fault,))
    for task in history.plan.tasks:
        history = _smaller(history, mutation, rule, tasks=(task.task_id,))
    return history


def _smaller(
    history: History, mutation: Mutation, rule: str, faults: tuple[str, ...] = (), tasks: tuple[str, ...] = ()
) -> History:
    smaller = simulate(history.plan.without(faults, tasks), mutation)
    return smaller if smaller.violations and smaller.violations[0].rule == rule else history
