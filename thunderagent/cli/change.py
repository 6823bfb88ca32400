"""``thunderagent task cancel`` and ``redrive``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from thunderagent.cli.manytasks import Outcome, ids_argument, print_tasks, try_task
from thunderagent.cli.output import Form, output_option, say
from thunderagent.cli.parameters import TASK_ID, Where, table_options
from thunderagent.cli.surroundings import Surroundings
from thunderagent.errors import TaskNotRedrivable
from thunderagent.task import ErrorType, Status, Task

if TYPE_CHECKING:
    from thunderagent.queue import TaskQueue


@click.command()
@ids_argument
@click.option("--reason", default="", help="Kept with the task as its error's message.")
@output_option(Form.TABLE, Form.JSON, Form.JSONL)
@table_options
@click.pass_obj
def cancel(surroundings: Surroundings, task_ids: tuple[str, ...], reason: str, form: Form, where: Where) -> None:
    """End tasks that have not ended: they become FAILED. The handler of a running one is stopped at its next renewal."""
    queue = surroundings.queue(where)
    outcome = Outcome()
    print_tasks(outcome.of(lambda task_id: queue.cancel(task_id, reason=reason), task_ids), form, many=True)
    outcome.leave()


@click.command()
@click.argument("task_ids", metavar="[ID...]", nargs=-1, type=TASK_ID)
@click.option("--all-failed", is_flag=True, help="Every FAILED task, as far as the index shows them.")
@click.option("--type", "task_type", metavar="TYPE", help="With --all-failed: only this task type.")
@click.option("--dependents", is_flag=True, help="Also the tasks that failed because one of these did.")
@output_option(Form.TABLE, Form.JSON, Form.JSONL)
@table_options
@click.pass_obj
def redrive(
    surroundings: Surroundings,
    task_ids: tuple[str, ...],
    all_failed: bool,
    task_type: str | None,
    dependents: bool,
    form: Form,
    where: Where,
) -> None:
    """Give FAILED tasks all their retries again, and print the taskId of each as it is done."""
    if bool(task_ids) == all_failed:
        raise click.UsageError("Give the taskIds to redrive, or --all-failed.")
    if task_type is not None and not all_failed:
        raise click.UsageError("--type goes with --all-failed.")
    queue = surroundings.queue(where)
    outcome = Outcome()
    results = queue.redrive_failed(task_type=task_type) if all_failed else (try_task(queue.redrive, each) for each in task_ids)
    chosen = outcome.sorted_out(results)
    print_tasks(_and_dependents(queue, chosen, outcome) if dependents else chosen, form, many=True)
    if all_failed:
        say(f"{outcome.done} redriven, {outcome.failed} not")
    outcome.leave()


def _and_dependents(queue: TaskQueue, chosen: Iterable[Task], outcome: Outcome) -> Iterator[Task]:
    """What was chosen, then, generation by generation, what failed because of it: one pass over FAILED for each."""
    done: set[str] = set()
    for each in chosen:
        done.add(each.task_id)
        yield each
    parents = set(done)
    while parents:
        failed = (each.task_id for each in queue.tasks(Status.FAILED) if _failed_because_of(each, parents))
        results = (try_task(queue.redrive, task_id) for task_id in failed if task_id not in done)
        children: set[str] = set()
        for child in outcome.sorted_out(each for each in results if not isinstance(each, TaskNotRedrivable)):
            children.add(child.task_id)
            yield child
        done |= children
        parents = children


def _failed_because_of(failed: Task, parents: set[str]) -> bool:
    because = failed.error is not None and failed.error.type == ErrorType.DEPENDENCY_FAILED
    return because and not parents.isdisjoint(failed.dependencies)
