"""Exit codes of the command line."""

from __future__ import annotations

from typing import NoReturn

import click

FAILED = 1
"""Something is wrong: an error, a problem that a check found, a task that FAILED or has not ended in time."""

WRONG_USAGE = 2
INTERRUPTED = 130
"""Ctrl-C: 128 and the number of the signal, as shells have it."""

READER_GONE = 141
"""The reader of stdout went away, as `head` does: 128 and the number of SIGPIPE."""


def leave(code: int) -> NoReturn:
    """End the command with this exit code."""
    raise click.exceptions.Exit(code)
