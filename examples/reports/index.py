"""The index page: when it can be made, what it lists, and what it says about reports that could not be made.

It is made from the task table: a report task's result says where its page is and what its key figure is, and a task that
FAILED says why. Nothing is guessed from the files that happen to lie in a directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from examples.reports import words
from examples.reports.files import slug
from examples.reports.names import IMPORT, REPORT
from examples.reports.page import environment
from thunderagent.task import ErrorType, Task

Ask = Callable[[str], Task | None]
"""Gives a task as it stands in the table, None where there is none."""

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
PAUSE_PER_TASK = 0.1
"""Seconds of snoozing for each task that may still be open: long while much is to do, short near the end."""


@dataclass(frozen=True, slots=True)
class Link:
    """A page that was made. ``page`` is a URL relative to the index."""

    title: str
    page: str
    label: str
    value: str
    spark: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """The reports of one file. ``rows`` is None where the import's result is not there."""

    source: str
    anchor: str
    rows: int | None
    links: tuple[Link, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that FAILED, or is not in the table, and the ones that FAILED because of it."""

    name: str
    task_id: str
    reason: str
    dependents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """What the page shows."""

    sections: tuple[Section, ...]
    failures: tuple[Failure, ...]
    failed: int
    made_at: datetime

    @property
    def made(self) -> int:
        return sum(len(section.links) for section in self.sections)


def first_open(task_ids: Sequence[str], start: int, ask: Ask) -> int:
    """The position of the first task from ``start`` on that has not ended; ``len(task_ids)`` if all have.

    Each look goes on where the last one stopped, so that all looks together read each task about once. One that is not in
    the table has ended too: nothing will come of waiting for it.
    """
    for position in range(start, len(task_ids)):
        task = ask(task_ids[position])
        if task is not None and not task.status.is_final:
            return position
    return len(task_ids)


def pause_seconds(maybe_open: int) -> float:
    """How long to snooze while up to ``maybe_open`` tasks have not ended."""
    return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, PAUSE_PER_TASK * maybe_open))


def make_index(
    tasks: Mapping[str, Task | None], page: Path, made_at: datetime, left_out: Mapping[str, int] | None = None
) -> Index:
    """Put together what the index shows from all tasks of the plan, in its order, each as it ended."""
    links: dict[str, list[Link]] = {}
    rows: dict[str, int] = {}
    for task in tasks.values():
        if task is None or not task.status.is_met:
            continue
        result = task.result if isinstance(task.result, Mapping) else {}
        if task.task_type == REPORT:
            links.setdefault(_source(task), []).append(_link(result, page))
        elif task.task_type == IMPORT:
            rows[_source(task)] = int(result.get("rows", 0))
    sections = tuple(
        Section(source, slug(source), rows.get(source), tuple(found), int((left_out or {}).get(source, 0)))
        for source, found in links.items()
    )
    failed = sum(task is None or not task.status.is_met for task in tasks.values())
    return Index(sections, _failures(tasks), failed, made_at)


def index_html(index: Index) -> str:
    """The HTML of the index page."""
    return environment().get_template("index.html.j2").render(index=index, made_at=index.made_at)


def _link(result: Mapping[str, Any], index_page: Path) -> Link:
    relative = os.path.relpath(str(result.get("page", "")), index_page.parent)
    return Link(
        title=str(result.get("title", "")),
        page=quote(Path(relative).as_posix()),
        label=str(result.get("label", "")),
        value=str(result.get("value", "")),
        spark=tuple(float(value) for value in result.get("spark", ())),
    )


def _source(task: Task) -> str:
    """The file a task is about, as the reader knows it."""
    payload = task.payload if isinstance(task.payload, Mapping) else {}
    return str(payload.get("source") or Path(str(payload.get("csv", task.task_id))).name)


def _failures(tasks: Mapping[str, Task | None]) -> tuple[Failure, ...]:
    """Causes with their consequences: forty pages that are missing for one broken file are one piece of news."""
    ended_badly = {task_id: task for task_id, task in tasks.items() if task is None or not task.status.is_met}
    causes: dict[str, list[str]] = {}
    for task_id, task in ended_badly.items():
        causes.setdefault(_cause(task_id, task, ended_badly), []).append(task_id)
    return tuple(
        _failure(task_id, ended_badly[task_id], [other for other in because if other != task_id])
        for task_id, because in causes.items()
    )


def _cause(task_id: str, task: Task | None, ended_badly: Mapping[str, Task | None]) -> str:
    if task is None or task.error is None or task.error.type != ErrorType.DEPENDENCY_FAILED:
        return task_id
    return next((each for each in task.dependencies if each in ended_badly), task_id)


def _failure(task_id: str, task: Task | None, because: list[str]) -> Failure:
    if task is None:
        return Failure(task_id, task_id, "It is not in the task table.", tuple(because))
    reason = str(task.error) if task.error else "No reason was written."
    title = f"{_source(task)}: {words.period(str(task.payload['key']))}" if task.task_type == REPORT else _source(task)
    return Failure(title, task_id, reason.removeprefix("Fail: "), tuple(because))
