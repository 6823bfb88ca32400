"""``thunderagent dynamodb``: the embedded DynamoDB as a command."""

from __future__ import annotations

import signal
import threading

import click

from thunderagent.cli.output import say


@click.command(short_help="Run an embedded DynamoDB that keeps nothing.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on. Nobody is asked for a password.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port to listen on; 0: a free one."
)
def dynamodb(host: str, port: int) -> None:
    """Run an embedded DynamoDB until Ctrl-C or SIGTERM, for demos and tests on one machine.

    It keeps nothing: tables and tasks live in its memory and are gone when it stops. What it prints on stdout are the settings
    that other shells need to use it.
    """
    from thunderagent.local.dynamodb import EmbeddedDynamoDB  # noqa: PLC0415 - its server's modules would slow down --help

    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with EmbeddedDynamoDB(host, port) as embedded:
        click.echo(settings_for(embedded.endpoint))
        say("The embedded DynamoDB runs and keeps nothing: its tables are gone when it stops. Ctrl-C stops it.")
        stopped.wait()
    say("stopped")


def settings_for(endpoint: str) -> str:
    """Lines for a shell. A client needs some region and some credentials; each region has tables of its own here."""
    lines = {
        "THUNDERAGENT_ENDPOINT": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    return "\n".join(f"export {name}={value}" for name, value in lines.items())
