"""``thunderagent agent run``: one agent in this process, its settings from flags and the environment."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable
from typing import Any

import click

from thunderagent import log
from thunderagent.cli.parameters import Where, table_options
from thunderagent.cli.surroundings import Surroundings
from thunderagent.errors import InvalidSettings
from thunderagent.settings import AgentSettings, base_type, environment_variable, from_environment


@click.group()
def agent() -> None:
    """Run an agent."""


def agent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A flag for each setting of an agent; the command gets those that were given as the mapping ``given``."""
    kinds = typing.get_type_hints(AgentSettings)
    fields = dataclasses.fields(AgentSettings)

    @functools.wraps(command)
    def gather(**arguments: Any) -> Any:
        given = {field.name: arguments.pop(field.name) for field in fields}
        return command(**arguments, given=given)

    decorated: Callable[..., Any] = gather
    for field in reversed(fields):
        decorated = click.option(
            f"--{field.name.replace('_', '-')}",
            field.name,
            type=base_type(kinds[field.name]),
            help=f"{field.metadata['doc']}  [env: {environment_variable(field)}; default: {field.default!r}]",
        )(decorated)
    return decorated


@agent.command()
@click.argument("handler")
@table_options
@agent_options
@click.pass_obj
def run(surroundings: Surroundings, handler: str, where: Where, given: dict[str, Any]) -> None:
    """Claim tasks and run HANDLER (module:name, a function or a Router) for each, until SIGTERM or Ctrl-C.

    The first signal drains: nothing more is claimed and running tasks may finish; a second one hurries that.
    """
    from thunderagent.agent.process import AgentProcess  # noqa: PLC0415 - boto3 takes longer to import than --help may take

    try:
        settings = from_environment(AgentSettings, surroundings.environ, **given)
    except InvalidSettings as error:
        raise click.UsageError(str(error)) from None
    log.set_up(environ=surroundings.environ)
    with log.in_background():
        AgentProcess(handler, surroundings.table(where), settings, surroundings.environ).run()
