"""The handlers: what an agent runs. Each is a thin shell that reads the payload, calls plain functions and says how it ended.

An agent is started with ``examples.reports.tasks:router``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from examples.reports.analyse import NothingToReport, Request, analyse
from examples.reports.csvfile import BadCsv
from examples.reports.database import open_database
from examples.reports.files import write_text
from examples.reports.grouping import By
from examples.reports.index import first_open, index_html, make_index, pause_seconds
from examples.reports.load import Survey, load, survey
from examples.reports.names import IMPORT, INDEX, REPORT
from examples.reports.page import report_page
from thunderagent import Done, Fail, Router, RunningTask, Snooze, Task, TaskQueue
from thunderagent.errors import LeaseLost, TaskNotFound, ValueTooLarge

router = Router()


@router.task(IMPORT)
def import_csv(task: RunningTask) -> dict[str, Any]:
    """Load a CSV file into SQLite. One that is no table FAILS at once: reading it again would find the same."""
    path, database = Path(task.payload["csv"]), Path(task.payload["database"])
    try:
        found = _surveyed(task, path)
        rows = load(path, database, found, index_on=task.payload["indexOn"], on_rows=_stop_when_lost(task))
    except BadCsv as error:
        raise Fail(str(error)) from error
    return {"rows": rows, "columns": len(found.columns), "database": str(database)}


@router.task(REPORT)
def make_report(task: RunningTask) -> dict[str, Any]:
    """Write one page; the result says where it is and what the index shows of it."""
    wanted = task.payload
    request = Request(wanted["source"], By(wanted["by"]), wanted["column"], wanted["key"])
    try:
        with open_database(Path(wanted["database"])) as data:
            report = analyse(data, request)
    except NothingToReport as error:
        raise Fail(str(error)) from error
    write_text(Path(wanted["page"]), report_page(report, datetime.now(UTC)))
    key_figure = {"label": report.tiles[0].label, "value": report.tiles[0].value, "spark": list(report.spark)}
    return {"page": wanted["page"], "title": report.title, "rows": report.rows, **key_figure}


@router.task(INDEX)
def make_index_page(task: RunningTask) -> Done:
    """Write the index once all other tasks have ended, well or not; until then snooze, which costs no retry and no slot.

    The checkpoint is how many of them were found ended, so that the next look begins there. It ends as DONE: the plan is
    over, and nothing waits for it.
    """
    task_ids, page = task.payload["tasks"], Path(task.payload["page"])
    find = partial(_find, task.queue)
    ended = first_open(task_ids, int((task.progress or {}).get("ended", 0)), find)
    if ended < len(task_ids):
        task.save({"ended": ended})
        raise Snooze(pause_seconds(len(task_ids) - ended))
    index = make_index({each: find(each) for each in task_ids}, page, datetime.now(UTC), task.payload["leftOut"])
    write_text(page, index_html(index))
    return Done({"page": str(page), "reports": index.made, "failed": index.failed})


def _surveyed(task: RunningTask, path: Path) -> Survey:
    """The survey that an earlier run saved, if it is still that file; else a new one, saved for the run that may follow.

    It is half of an import's work. The rows loaded so far are no checkpoint: they are in a file of this run alone.
    """
    saved = task.progress
    if isinstance(saved, Mapping) and "columns" in saved and (found := Survey.from_record(saved)).is_of(path):
        return found
    found = survey(path)
    # With hundreds of columns it does not fit a task; then a run that follows surveys again.
    with suppress(ValueTooLarge):
        task.save(found.to_record())
    return found


def _stop_when_lost(task: RunningTask) -> Callable[[int], None]:
    def check(rows: int) -> None:
        if task.lease_lost:
            raise LeaseLost(f"stopped after {rows:,} rows")

    return check


def _find(queue: TaskQueue, task_id: str) -> Task | None:
    try:
        return queue.get(task_id)
    except TaskNotFound:
        return None
