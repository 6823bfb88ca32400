"""What the commands on tasks share: several tasks one after the other, and how tasks are written to stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import click

from thunderagent.cli.exits import FAILED, leave
from thunderagent.cli.output import Form, JsonStream, print_json, printable, say
from thunderagent.cli.parameters import TASK_ID
from thunderagent.cli.taskview import task_as_json
from thunderagent.errors import TaskStateError, ThunderAgentError, WaitTimeout
from thunderagent.task import Status, Task

ids_argument = click.argument("task_ids", metavar="ID...", nargs=-1, required=True, type=TASK_ID)


class Outcome:
    """Several tasks, one after the other: an error is told and the others go on; at the end the exit code tells of it."""

    def __init__(self) -> None:
        self.done = 0
        self.failed = 0

    def of(self, act: Callable[[str], Task], task_ids: Iterable[str]) -> Iterator[Task]:
        return self.sorted_out(try_task(act, task_id) for task_id in task_ids)

    def sorted_out(self, results: Iterable[Task | ThunderAgentError]) -> Iterator[Task]:
        for result in results:
            if isinstance(result, ThunderAgentError):
                self.failed += 1
                say(f"error: {result}")
            else:
                self.done += 1
                yield result

    def noting_failed(self, ended: Iterable[Task]) -> Iterator[Task]:
        """Pass tasks on; one that FAILED counts against the exit code."""
        for each in ended:
            self.failed += each.status is Status.FAILED
            yield each

    def leave(self) -> None:
        if self.failed:
            leave(FAILED)


def try_task(act: Callable[[str], Task], task_id: str) -> Task | ThunderAgentError:
    """What became of one task. An error of the table is not caught: it would be the next one's too."""
    try:
        return act(task_id)
    except (TaskStateError, WaitTimeout) as error:
        return error


def print_tasks(
    tasks: Iterable[Task], form: Form, *, many: bool = False, line: Callable[[Task], str] = lambda each: each.task_id
) -> None:
    """The tasks, as they come: a line each, or JSON; one alone is an object, ``many`` are an array."""
    if form is Form.TABLE:
        for each in tasks:
            click.echo(printable(line(each)))
    elif form is Form.JSON and not many:
        for each in tasks:
            print_json(task_as_json(each))
    else:
        with JsonStream(form) as stream:
            for each in tasks:
                stream.write(task_as_json(each))
