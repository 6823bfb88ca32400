"""Rules about the attributes of items: those of other programs may lack some, or write them in their own way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from thunderagent.diagnosis.finding import Finding, Severity, counted, ids_of, named
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.task import DEPENDS_ON, Attr, Status, Task, as_number, is_plain_number
from thunderagent.times import EPOCH_LIMIT

_TIMES = (Attr.LOCK_TIME, Attr.CREATED_AT, Attr.UPDATED_AT, Attr.EXPIRES_AT)
_OPEN = (Status.PENDING, Status.RUNNING)

_EXPECTED: tuple[tuple[Attr, str, Callable[[Any], bool]], ...] = (
    (Attr.PAYLOAD, "a map", lambda value: isinstance(value, dict)),
    (Attr.RETRY_COUNT, "a number", is_plain_number),
    (Attr.MAX_RETRY, "a number", is_plain_number),
    (Attr.LOCK_TIME, "a number", is_plain_number),
    (Attr.CREATED_AT, "a number", is_plain_number),
    (Attr.UPDATED_AT, "a number", is_plain_number),
    (Attr.TASK_TYPE, "text", lambda value: isinstance(value, str)),
)
_NEEDED = (Attr.PAYLOAD, Attr.RETRY_COUNT, Attr.MAX_RETRY, Attr.UPDATED_AT)
"""Attributes of the published format that open tasks have; the others are in the index, or may be absent."""


def milliseconds(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Times are in seconds."""
    by_attr: dict[str, list[Task]] = defaultdict(list)
    for task in observation.tasks():
        for attr in _TIMES:
            number = as_number(task.record.get(attr))
            if number is not None and number >= EPOCH_LIMIT:
                by_attr[attr.value].append(task)
    for name, tasks in by_attr.items():
        effect = {
            Attr.LOCK_TIME: "nobody takes them for thousands of years",
            Attr.EXPIRES_AT: "TTL never removes them",
        }.get(Attr(name), "they sort behind all others and their age is wrong")
        yield Finding(
            Severity.WARNING,
            "time-in-milliseconds",
            name,
            f"{counted(tasks)} have a {name} of the year 5138 or later, which is written in milliseconds, so "
            f"{effect}: {named(ids_of(tasks))}.",
            "Mend the program that writes it: times are epoch seconds. Cancel these tasks and enqueue them again.",
        )


def odd_types(observation: Observation, _: Patience) -> Iterator[Finding]:
    """The attributes of the published format are there, and of the types that it says."""
    odd: dict[tuple[str, str], list[Task]] = defaultdict(list)
    absent: dict[str, list[Task]] = defaultdict(list)
    for task in observation.tasks(*_OPEN):
        for attr, kind, fits in _EXPECTED:
            if attr in task.record and not fits(task.record[attr]):
                odd[attr.value, kind].append(task)
        for attr in _NEEDED:
            if attr not in task.record:
                absent[attr.value].append(task)
        if _has_odd_dependencies(task):
            odd[f"payload.{DEPENDS_ON}", "a taskId or a list of them"].append(task)
    for (name, kind), tasks in odd.items():
        yield _odd(name, kind, tasks)
    for name, tasks in absent.items():
        yield _absent(name, tasks)


def expires_while_open(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Only tasks that have ended expire."""
    tasks = [task for task in observation.tasks(*_OPEN) if task.expires_at is not None]
    if tasks:
        yield Finding(
            Severity.WARNING,
            "expires-while-open",
            counted(tasks),
            f"Not ended, but with an expiresAt: TTL may remove such tasks before they ran: {named(ids_of(tasks))}.",
            "Mend the program that writes it: expiresAt is set when a task ends, and only then.",
        )


def never_expires(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Tasks that have ended expire."""
    tasks = [task for task in observation.tasks(Status.SUCCESS, Status.DONE, Status.FAILED) if task.expires_at is None]
    if tasks:
        yield Finding(
            Severity.INFO,
            "never-expires",
            counted(tasks),
            f"Ended, but without an expiresAt, so that TTL never removes them: {named(ids_of(tasks))}.",
            "None is needed. A program of others ended them; it can set expiresAt when it writes the final status.",
        )


def _odd(name: str, kind: str, tasks: list[Task]) -> Finding:
    return Finding(
        Severity.WARNING,
        "odd-type",
        name,
        f"In {counted(tasks)} {name} is not {kind}: {named(ids_of(tasks))}. Agents of ThunderAgent read it as well as "
        "they can, or as if it were absent; other programs may not.",
        "Mend the program that enqueues these tasks.",
    )


def _absent(name: str, tasks: list[Task]) -> Finding:
    return Finding(
        Severity.INFO,
        "attribute-absent",
        name,
        f"{counted(tasks)} lack {name}: {named(ids_of(tasks))}. The default is used.",
        "None is needed for agents of ThunderAgent. For others, let the program that enqueues write all attributes.",
    )


def _has_odd_dependencies(task: Task) -> bool:
    if not isinstance(task.payload, dict) or DEPENDS_ON not in task.payload:
        return False
    value = task.payload[DEPENDS_ON]
    items = value if isinstance(value, list | set) else [value]
    return not all(isinstance(item, str) and item for item in items)
