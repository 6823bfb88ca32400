"""The command line: which commands there are, and how a command ends.

An error is one line on stderr; the exit codes are those of :mod:`thunderagent.cli.exits`. Commands are imported when they are
called, so that ``--help`` and shell completion start at once.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from thunderagent import __version__
from thunderagent.cli.exits import FAILED, INTERRUPTED, READER_GONE, WRONG_USAGE
from thunderagent.cli.output import escape_what_cannot_be_written, say
from thunderagent.cli.surroundings import Surroundings
from thunderagent.errors import ThunderAgentError

COMMANDS = {
    "table": ("thunderagent.cli.table", "Create the task table and check it."),
    "task": ("thunderagent.cli.task", "Enqueue tasks, look at them, change them."),
    "top": ("thunderagent.cli.top", "Watch the task table, its agents and its pools."),
    "stats": ("thunderagent.cli.stats", "Count tasks by status, and what waits for an agent."),
    "agent": ("thunderagent.cli.agent", "Run an agent: it claims tasks and has your handler run them."),
    "pool": ("thunderagent.cli.pool", "Run a pool of agents on this machine, scaled with the backlog."),
    "report": ("thunderagent.cli.report", "Write a page about a pool over a time: backlog, replicas, waits, outcomes."),
    "demo": ("thunderagent.cli.demo", "Watch a pool grow from zero, make reports, and shrink to zero."),
    "dynamodb": ("thunderagent.cli.dynamodb", "Run an embedded DynamoDB that keeps nothing."),
}
"""Each command's module, which has an attribute of the command's name, and the help line shown without importing it."""


class Commands(click.Group):
    """A group that imports its commands late and says what went wrong in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; end with 1 for an error of ours, 130 for Ctrl-C, 141 for a reader that went away."""
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except ThunderAgentError as error:
            _tell(error, debug=ctx.params["debug"])
            ctx.exit(FAILED)
        except KeyboardInterrupt:
            say("interrupted")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _leave_stdout()
            ctx.exit(READER_GONE)
        except OSError as error:  # a full disk under stdout, a file that cannot be read
            _tell(error, debug=ctx.params["debug"])
            _leave_stdout()
            ctx.exit(FAILED)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """As click's, but errors of usage are told in the same form as all others."""
        run: Callable[[], Any] = partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        try:
            code = run()
            sys.stdout.flush()
        except click.ClickException as error:
            code = _tell_usage(error)
        except click.Abort:
            code = INTERRUPTED
        except OSError as error:  # a full disk under --help
            code = FAILED
            say(f"error: {error}")
            _leave_stdout()
        sys.exit(code or 0)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--debug", is_flag=True, help="Show where an error came from.")
@click.version_option(__version__, prog_name="thunderagent")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """Background tasks from one DynamoDB table, run by agents that scale from zero and back.

    Data goes to stdout, messages to stderr. Exit codes: 0 all is well, 1 something is wrong, 2 wrong usage.
    """
    escape_what_cannot_be_written()
    ctx.ensure_object(Surroundings)


def _tell(error: Exception, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    say(f"error: {error}")


def _tell_usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    say(f"error: {error.format_message()}")
    context = getattr(error, "ctx", None)
    if context is not None and error.exit_code == WRONG_USAGE:
        say(f"See `{context.command_path} --help`.")
    return error.exit_code


def _leave_stdout() -> None:
    """Let what is still buffered go nowhere: the interpreter would complain when it flushes it at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
