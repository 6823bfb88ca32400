"""``thunderagent task get``, ``list`` and ``wait``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from thunderagent.cli.manytasks import Outcome, ids_argument, print_tasks
from thunderagent.cli.output import Form, output_option, print_fields, print_table, say
from thunderagent.cli.parameters import SPAN, STATUS, TASK_ID, Where, table_options
from thunderagent.cli.surroundings import Surroundings
from thunderagent.cli.taskview import LIST_TITLES, RUN_TITLES, list_row, run_row, task_fields
from thunderagent.task import Status, Task

if TYPE_CHECKING:
    from thunderagent.queue import TaskQueue


@click.command()
@click.argument("task_id", metavar="ID", type=TASK_ID)
@output_option(Form.TABLE, Form.JSON, Form.JSONL)
@table_options
@click.pass_obj
def get(surroundings: Surroundings, task_id: str, form: Form, where: Where) -> None:
    """Show a task: where it stands, its runs, its payload and what came of it.

    JSON shows the item as it stands in the table. What JSON lacks is written as {"$bytes": BASE64}, {"$decimal": "1.10"},
    {"$set": [...]}, {"$float": "nan"}, and read back so by `task enqueue`.
    """
    queue = surroundings.queue(where)
    found = queue.get(task_id)
    if form is not Form.TABLE:
        print_tasks([found], form)
        return
    print_fields(task_fields(found, queue.store.now(), dependency_states(queue, found)))
    if found.history:
        click.echo()
        print_table(RUN_TITLES, [run_row(run) for run in found.history])


def dependency_states(queue: TaskQueue, found: Task) -> dict[str, str]:
    """The status of each task that a task waits for, in words."""
    if not found.is_waiting:
        return {}
    read = queue.store.get_many(found.unmet)
    present = {task_id: str(dependency.status) for task_id, dependency in read.found.items()}
    return {task_id: present.get(task_id, "not in the table") for task_id in found.unmet if task_id not in read.unknown}


@click.command("list")
@click.option("--status", "statuses", type=STATUS, multiple=True, help="Only this status. May be repeated.  [default: all]")
@click.option("--type", "task_type", metavar="TYPE", help="Only this task type; reads on until the limit is reached.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Tasks shown at most.")
@click.option("--newest", is_flag=True, help="The newest first, instead of the oldest.")
@output_option(Form.TABLE, Form.JSON, Form.JSONL)
@table_options
@click.pass_obj
def list_(
    surroundings: Surroundings,
    statuses: tuple[str, ...],
    task_type: str | None,
    limit: int,
    newest: bool,
    form: Form,
    where: Where,
) -> None:
    """List tasks by status and age."""
    queue = surroundings.queue(where)
    wanted = [Status(status) for status in statuses] or list(Status)
    found = (each for status in wanted for each in queue.tasks(status, newest_first=newest))
    taken = _Taken(each for each in found if task_type is None or each.task_type == task_type)
    if form is Form.TABLE:
        now = queue.store.now()
        print_table(LIST_TITLES, [list_row(each, now) for each in islice(taken, limit)])
    else:
        print_tasks(islice(taken, limit), form, many=True)
    if taken.count == limit:
        say(f"Stopped at --limit {limit}; there may be more.")


class _Taken:
    """An iterator that knows how many it has given."""

    def __init__(self, tasks: Iterator[Task]) -> None:
        self._tasks = tasks
        self.count = 0

    def __iter__(self) -> Iterator[Task]:
        for each in self._tasks:
            self.count += 1
            yield each


@click.command()
@ids_argument
@click.option("--timeout", type=SPAN, help="Give up after this span: 90, 90s, 5m, 2h.  [default: never]")
@output_option(Form.TABLE, Form.JSON, Form.JSONL)
@table_options
@click.pass_obj
def wait(surroundings: Surroundings, task_ids: tuple[str, ...], timeout: float | None, form: Form, where: Where) -> None:
    """Wait until tasks have ended, and print how. The exit code is 1 when one FAILED, is missing, or has not ended in time."""
    queue = surroundings.queue(where)
    deadline = None if timeout is None else surroundings.monotonic() + timeout

    def ended(task_id: str) -> Task:
        left = None if deadline is None else round(max(0.0, deadline - surroundings.monotonic()), 1)
        return queue.wait(task_id, left)

    outcome = Outcome()
    print_tasks(outcome.noting_failed(outcome.of(ended, task_ids)), form, many=True, line=_ended_line)
    outcome.leave()


def _ended_line(ended: Task) -> str:
    error = "" if ended.error is None else f"  {ended.error}"
    return f"{ended.task_id}  {ended.status}{error}"
