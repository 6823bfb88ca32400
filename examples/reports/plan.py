"""From input files to the tasks to enqueue: an import a file, its reports, which depend on it, and the index of all.

The index must come last and must come even where reports FAIL, and a task whose dependency FAILED is FAILED with it. So it
depends on nothing: it is told which tasks to look for, and snoozes until all of them have ended (see ``index.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from examples.reports.files import unique_slugs
from examples.reports.grouping import Grouping, find_grouping
from examples.reports.names import IMPORT, INDEX, REPORT
from thunderagent import NewTask


@dataclass(frozen=True, slots=True)
class Plan:
    """All tasks, in an order in which they can be enqueued: what is depended on comes first, the index last."""

    tasks: tuple[NewTask, ...]
    index_page: Path


def make_plan(files: Sequence[Path], work: Path, run: str = "reports") -> Plan:
    """Plan the reports of CSV files: databases and pages will be below ``work``, taskIds begin with ``run``.

    The same ``run`` on the same files gives the same tasks, so that planning and enqueueing again adds nothing; another
    ``run`` is another set of tasks. All agents must see the files and ``work`` under the same paths.
    """
    work = work.absolute()
    index_page = work / "pages" / "index.html"
    tasks: list[NewTask] = []
    left_out: dict[str, int] = {}
    for path, name in zip(files, unique_slugs([path.stem for path in files], "file"), strict=True):
        grouping = find_grouping(path)
        tasks.extend(_tasks_of_file(path.absolute(), name, grouping, work, run))
        if grouping.left_out:
            left_out[path.name] = grouping.left_out
    payload = {"page": str(index_page), "tasks": [task.task_id for task in tasks], "leftOut": left_out}
    return Plan((*tasks, NewTask(payload, f"{run}/index", INDEX)), index_page)


def _tasks_of_file(path: Path, name: str, grouping: Grouping, work: Path, run: str) -> Iterator[NewTask]:
    database = str(work / "data" / f"{name}.sqlite")
    # The kind of task comes first: no file name can then make the id of another task.
    import_id = f"{run}/import/{name}"
    payload = {"csv": str(path), "database": database, "indexOn": [grouping.column] if grouping.column else []}
    yield NewTask(payload, import_id, IMPORT)
    for key, key_name in zip(grouping.keys, unique_slugs(grouping.keys, "other"), strict=True):
        report = {
            "source": path.name,
            "database": database,
            "by": grouping.by.value,
            "column": grouping.column,
            "key": key,
            "page": str(work / "pages" / name / f"{key_name}.html"),
        }
        yield NewTask(report, f"{run}/report/{name}/{key_name}", REPORT, depends_on=import_id)
