"""Rules about the layout that a table says it has: its own index, and tasks that stand where nobody looks."""

from __future__ import annotations

from collections.abc import Iterator

from thunderagent.diagnosis.finding import Finding, Severity, named
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.diagnosis.shape import USABLE
from thunderagent.store.base import task_or_none
from thunderagent.store.layout import DISPATCH_INDEX, RESERVED_IDS, Way
from thunderagent.task import Attr, Task

DISPATCH_KEYS = ((Attr.DISPATCH.value, "HASH"), (Attr.DUE_AT.value, "RANGE"))
_MIGRATE = "`thunderagent table migrate --layout dispatch` adds it and goes on from there."


def dispatch_index(observation: Observation, _: Patience) -> Iterator[Finding]:
    """A table that says it has the dispatch layout has its index."""
    layout, index = observation.layout, observation.index_named(DISPATCH_INDEX)
    if observation.shape is None or not layout.keyed:
        return
    severity = Severity.ERROR if layout.way is Way.DISPATCH else Severity.INFO
    if index is None:
        yield Finding(severity, "index-missing", DISPATCH_INDEX, "The table says it has this index, and has not.", _MIGRATE)
    elif index.status not in USABLE:
        what = f"The index is {index.status}; until it is ACTIVE no task is found by it."
        yield Finding(severity, "index-building", index.name, what, "Wait: DynamoDB fills it from the items that are there.")
    elif index.keys != DISPATCH_KEYS:
        keys = ", ".join(f"{name} ({kind})" for name, kind in index.keys)
        what = f"The index is over {keys}; it must be over dispatch (HASH), dueAt (RANGE)."
        yield Finding(severity, "index-keys-wrong", index.name, what, f"Delete it; then {_MIGRATE}")


def astray(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Every open task is in the index where its state belongs."""
    ids = sorted({task.task_id for task in _seen(observation) if not observation.layout.is_filed(task)})
    if ids:
        yield Finding(
            Severity.ERROR if observation.layout.way is Way.DISPATCH else Severity.INFO,
            "not-in-index",
            DISPATCH_INDEX,
            f"The index does not show these tasks where an agent looks for them: {named(ids)}.",
            "A program that knows no layouts wrote them: stop it. `thunderagent table migrate` files them.",
        )


def _seen(observation: Observation) -> Iterator[Task]:
    yield from observation.tasks()
    for record in () if observation.scanned is None else observation.scanned.records:
        task = task_or_none(record) if record[Attr.TASK_ID] not in RESERVED_IDS else None
        if task is not None:
            yield task
