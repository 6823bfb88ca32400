"""``thunderagent pool run``: a pool of agents on this machine, from the file that the operator takes on Kubernetes."""

from __future__ import annotations

import asyncio
import signal

import click

from thunderagent import log
from thunderagent.cli.surroundings import Surroundings
from thunderagent.pool import Pool, load_pool


@click.group()
def pool() -> None:
    """Run a pool of agents on this machine."""


@pool.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--endpoint", help="URL of DynamoDB, where the file names none.")
@click.pass_obj
def run(surroundings: Surroundings, file: str, endpoint: str | None) -> None:
    """Scale local agents as the pool in FILE says, until Ctrl-C or SIGTERM; then drain them.

    A second signal hurries the drain, a third one kills.
    """
    found = load_pool(file)
    log.set_up()
    asyncio.run(_run(found, surroundings, endpoint))


async def _run(found: Pool, surroundings: Surroundings, endpoint: str | None) -> None:
    from thunderagent.local.pool import LocalPool  # noqa: PLC0415 - boto3 takes longer to import than --help may take

    given = {**found.table_settings()}
    given.setdefault("endpoint", endpoint)
    settings = surroundings.table(given)
    environ = dict(surroundings.environ)
    if settings.endpoint:
        environ["THUNDERAGENT_ENDPOINT"] = settings.endpoint
    local = LocalPool(found, surroundings.open_store(settings, None), environ, rng=surroundings.rng)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, local.stop)
    await local.run()
