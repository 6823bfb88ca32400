"""One thing that a check found."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from thunderagent.task import Task

NAMED = 5
"""Tasks that a finding about many names; it counts the others."""


class Severity(StrEnum):
    """How bad it is. ERROR: tasks do not run. WARNING: look at it. INFO: good to know, nothing is wrong."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about a ``subject`` (a table, an index, a taskId, a group), and what to do. ``code`` is for programs."""

    severity: Severity
    code: str
    subject: str
    what: str
    remedy: str


def named(task_ids: Collection[str]) -> str:
    """The first few ids, and how many more there are."""
    first = ", ".join(list(task_ids)[:NAMED])
    return first if len(task_ids) <= NAMED else f"{first} and {len(task_ids) - NAMED} more"


def counted(tasks: Collection[object]) -> str:
    """``1 task``, ``12 tasks``."""
    return f"{len(tasks)} task{'s' * (len(tasks) != 1)}"


def ids_of(tasks: Iterable[Task]) -> list[str]:
    return [task.task_id for task in tasks]
