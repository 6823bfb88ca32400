"""``thunderagent task show``."""

from __future__ import annotations

import click

from thunderagent.cli.look import dependency_states
from thunderagent.cli.output import Form, output_option, print_fields, print_json, print_table
from thunderagent.cli.parameters import TASK_ID, Where, table_options
from thunderagent.cli.story import STORY_TITLES, counts, headline, story_of, story_row, totals, waits_for
from thunderagent.cli.surroundings import Surroundings
from thunderagent.times import moment


@click.command()
@click.argument("task_id", metavar="ID", type=TASK_ID)
@output_option(Form.TABLE, Form.JSON)
@table_options
@click.pass_obj
def show(surroundings: Surroundings, task_id: str, form: Form, where: Where) -> None:
    """Tell one task's story: its waits, its runs, who ran them, what went wrong, and what it waits for.

    The payload and the result are not shown: `task get` does that.
    """
    queue = surroundings.queue(where)
    task, now = queue.get(task_id), queue.store.now()
    story = story_of(task, now)
    waiting = waits_for(task, dependency_states(queue, task))
    if form is Form.JSON:
        waited, ran = totals(task, now)
        told = {"taskId": task.task_id, "taskType": task.task_type, "status": str(task.status), "at": now}
        print_json({**told, "waited": waited, "ran": ran, "waitsFor": waiting, "story": [each.as_json() for each in story]})
        return
    click.echo(headline(task, now))
    click.echo()
    print_fields({**counts(task, now), **_waiting_field(waiting), "seen": moment(now)})
    click.echo()
    print_table(STORY_TITLES, [story_row(each) for each in story])


def _waiting_field(waiting: dict[str, str]) -> dict[str, str]:
    return {"waits for": "\n".join(f"{each} ({status})" for each, status in waiting.items())} if waiting else {}
