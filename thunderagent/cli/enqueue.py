"""``thunderagent task enqueue``: one task from the command line, or one a line from a file of any length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import click

from thunderagent.cli.exits import FAILED, leave
from thunderagent.cli.manytasks import print_tasks
from thunderagent.cli.newtasks import KEYS, LineResult, enqueue_lines, open_source, read_payload
from thunderagent.cli.output import Form, JsonStream, output_option, say
from thunderagent.cli.parameters import MOMENT, SPAN, TASK_ID, Where, table_options
from thunderagent.cli.surroundings import Surroundings
from thunderagent.errors import InvalidInput
from thunderagent.task import DEFAULT_QUEUE


@click.command()
@click.argument("payload", default="{}")
@click.option("--many", is_flag=True, help="Read a task a line (see above) from @FILE, or from stdin for -.")
@click.option("--id", "task_id", type=TASK_ID, help="The taskId; without it a random one. Enqueueing it twice runs it once.")
@click.option("--type", "task_type", metavar="TYPE", help="The task type, which routes to a handler.")
@click.option("--queue", metavar="QUEUE", help="One of the table's queues.  [default: default]")
@click.option("--max-retry", type=click.IntRange(0, 1000), help="Retries allowed.")
@click.option("--delay", type=SPAN, help="Run not before this span from now: 90, 90s, 5m, 2h.")
@click.option("--not-before", type=MOMENT, help="Run not before this time: epoch seconds, or ISO 8601 with a zone.")
@click.option("--depends-on", multiple=True, type=TASK_ID, help="A task that must have ended well first. May be repeated.")
@click.option(
    "--check-dependencies/--no-check-dependencies", default=True, help="Refuse a dependency that is not in the table."
)
@click.option(
    "--if-exists",
    type=click.Choice(["raise", "return"]),
    help="What a taskId that is taken is: an error, or the task to show.  [default: raise; return with --many]",
)
@output_option(Form.TABLE, Form.JSON, Form.JSONL)
@table_options
@click.pass_obj
def enqueue(surroundings: Surroundings, /, payload: str, many: bool, form: Form, where: Where, **given: Any) -> None:
    """Put a task into the table and print its taskId.

    PAYLOAD is a JSON object, @FILE with one, or - for stdin; {} if left out. What JSON lacks is written as {"$bytes": BASE64},
    {"$decimal": "1.10"}, {"$set": [...]}, {"$float": "nan"}.

    With --many, PAYLOAD is @FILE or -, and each line is an object with the keys payload and, as needed, taskId, taskType,
    maxRetry, delay, notBefore, dependsOn, queue. Dependencies come in earlier lines. Where lines have a taskId, the file can be
    enqueued again: only what is missing is added. Lines that fail are told on stderr, and the exit code is then 1.
    """
    if many:
        _check_many(payload, given)
        _enqueue_many(surroundings, payload, form, where, given)
    else:
        _enqueue_one(surroundings, payload, form, where, given)


def _enqueue_one(surroundings: Surroundings, payload: str, form: Form, where: Where, given: dict[str, Any]) -> None:
    if given["delay"] is not None and given["not_before"] is not None:
        raise click.UsageError("--delay and --not-before are both given; give one of them.")
    try:
        content = read_payload(payload)
    except InvalidInput as error:
        raise click.BadParameter(str(error), param_hint="PAYLOAD") from None
    given["if_exists"] = given["if_exists"] or "raise"
    given["queue"] = given["queue"] or DEFAULT_QUEUE
    enqueued = surroundings.queue(where).enqueue(content, **given)
    if form is Form.TABLE:
        click.echo(enqueued.task_id)
    else:
        print_tasks([enqueued], form)


def _check_many(source: str, given: Mapping[str, Any]) -> None:
    if source != "-" and not source.startswith("@"):
        raise click.UsageError("--many reads tasks from @FILE, or from stdin for -.")
    for name in KEYS.values():
        if given.get(name) not in (None, ()):
            flag = name.removeprefix("task_").replace("_", "-")
            raise click.UsageError(f"--{flag} does not go with --many: the lines say it.")


def _enqueue_many(surroundings: Surroundings, source: str, form: Form, where: Where, given: Mapping[str, Any]) -> None:
    try:
        opened = open_source(source)
    except InvalidInput as error:
        raise click.BadParameter(str(error), param_hint="PAYLOAD") from None
    taken_is_wrong = given["if_exists"] == "raise"
    counts: Counter[str] = Counter()
    queue = surroundings.queue(where)
    try:
        with opened as lines:
            results = enqueue_lines(queue, lines, check_dependencies=given["check_dependencies"])
            _print_results(_counted(results, counts), form, taken_is_wrong)
    finally:
        say(", ".join(f"{counts[state]} {state}" for state in ("enqueued", "existing", "failed")))
    if counts["failed"] or (taken_is_wrong and counts["existing"]):
        leave(FAILED)


def _counted(results: Iterator[LineResult], counts: Counter[str]) -> Iterator[LineResult]:
    for result in results:
        counts[result.state] += 1
        yield result


def _print_results(results: Iterator[LineResult], form: Form, taken_is_wrong: bool) -> None:
    if form is not Form.TABLE:
        with JsonStream(form) as stream:
            for result in results:
                stream.write(_result_as_json(result))
                _tell_result(result, taken_is_wrong)
        return
    for result in results:
        if result.task_id is not None and result.state != "failed":
            click.echo(result.task_id)
        _tell_result(result, taken_is_wrong)


def _tell_result(result: LineResult, taken_is_wrong: bool) -> None:
    if result.state == "failed":
        say(f"line {result.line}: {result.error}")
    elif result.state == "existing" and taken_is_wrong:
        say(f"line {result.line}: there is a task {result.task_id} already")


def _result_as_json(result: LineResult) -> dict[str, Any]:
    shown = {"line": result.line, "taskId": result.task_id, "state": result.state, "error": result.error}
    return {name: value for name, value in shown.items() if value not in (None, "")}
