"""``thunderagent task``: the commands on tasks, gathered."""

from __future__ import annotations

import click

from thunderagent.cli.change import cancel, redrive
from thunderagent.cli.enqueue import enqueue
from thunderagent.cli.look import get, list_, wait
from thunderagent.cli.show import show


@click.group(short_help="Enqueue tasks, look at them, change them.")
def task() -> None:
    """Enqueue tasks, look at them, change them."""


for command in (enqueue, get, show, list_, wait, cancel, redrive):
    task.add_command(command)
