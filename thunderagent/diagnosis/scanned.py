"""Rules about items that the index cannot show; they are seen only where a scan was asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from thunderagent.diagnosis.finding import Finding, Severity, named
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.store.layout import RESERVED_IDS
from thunderagent.task import Attr, Record, Status, is_plain_number


def not_tasks(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Every item's status is one that a task has."""
    by_status: dict[str, list[str]] = defaultdict(list)
    for record in _records(observation):
        if not _has_status(record):
            status = f"the status {record[Attr.STATUS]!r}" if Attr.STATUS in record else "no status"
            by_status[status].append(_name(record))
    for status, ids in by_status.items():
        yield Finding(
            Severity.WARNING,
            "not-a-task",
            status,
            f"An item with {status} is no task, and nobody runs it: {named(ids)}.",
            f"A task's status is one of {', '.join(Status)}, in capitals. Mend the program that writes it, or keep "
            "such items in a table of their own.",
        )


def not_in_index(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Every task has what the published index needs."""
    if not observation.layout.classic_index:
        return
    ids = [
        _name(record)
        for record in _records(observation)
        if _has_status(record) and not is_plain_number(record.get(Attr.CREATED_AT))
    ]
    if ids:
        yield Finding(
            Severity.WARNING,
            "not-in-index",
            observation.index,
            f"Without a createdAt that is a number the index leaves a task out, and no agent finds it: {named(ids)}.",
            "Mend the program that enqueues them, and give these items a createdAt in epoch seconds.",
        )


def _records(observation: Observation) -> tuple[Record, ...]:
    records = () if observation.scanned is None else observation.scanned.records
    return tuple(record for record in records if record.get(Attr.TASK_ID) not in RESERVED_IDS)


def _has_status(record: Record) -> bool:
    return record.get(Attr.STATUS) in list(Status)


def _name(record: Record) -> str:
    return str(record.get(Attr.TASK_ID, "(no taskId)"))
