"""``thunderagent pool run``: a pool of agents on this machine, from the file that the operator takes on Kubernetes."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thunderagent import __version__, log
from thunderagent.cli.surroundings import Surroundings
from thunderagent.pool import Pool, load_pool

if TYPE_CHECKING:
    from thunderagent.local.meter import PoolMeter
    from thunderagent.local.pool import PoolView
    from thunderagent.metrics import PoolMetrics

NO_PORT = -1


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the pool serves /healthz and /metrics, and from which port on its agents do. ``port``: -1 for nowhere."""

    host: str
    port: int

    @property
    def first_of_agents(self) -> int | None:
        return self.port + 1 if self.port > 0 else None


@click.group()
def pool() -> None:
    """Run a pool of agents on this machine."""


@pool.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--endpoint", help="URL of DynamoDB, where the file names none.")
@click.option(
    "--port",
    type=click.IntRange(NO_PORT, 65535),
    default=NO_PORT,
    envvar="THUNDERAGENT_POOL_PORT",
    show_envvar=True,
    help="Port of the pool's /healthz and /metrics; its agents have the ones after it. -1: none of them has any.  "
    "[default: -1]",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that they listen on.")
@click.option(
    "--samples",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for a line a cycle, of which `report` makes a page.",
)
@click.pass_obj
def run(surroundings: Surroundings, file: str, endpoint: str | None, port: int, host: str, samples: Path | None) -> None:
    """Scale local agents as the pool in FILE says, until Ctrl-C or SIGTERM; then drain them.

    A second signal hurries the drain, a third one kills.
    """
    found = load_pool(file)
    log.set_up(environ=surroundings.environ)
    with _sampling(found, surroundings, samples) as sample:
        asyncio.run(_run(found, surroundings, endpoint, Listening(host, port), sample))


async def _run(
    found: Pool, surroundings: Surroundings, endpoint: str | None, listening: Listening, sample: Callable[[PoolView], None]
) -> None:
    # boto3 takes longer to import than --help may take
    from thunderagent.local.meter import PoolMeter  # noqa: PLC0415
    from thunderagent.local.pool import LocalPool  # noqa: PLC0415
    from thunderagent.local.replicas import AgentPorts  # noqa: PLC0415
    from thunderagent.metrics import PoolMetrics  # noqa: PLC0415

    given = {**found.table_settings()}
    given.setdefault("endpoint", endpoint)
    settings = surroundings.table(given)
    environ = dict(surroundings.environ)
    if settings.endpoint:
        environ["THUNDERAGENT_ENDPOINT"] = settings.endpoint
    metrics = PoolMetrics()
    meter = PoolMeter(metrics, found, surroundings.wall, surroundings.monotonic)
    store = surroundings.open_store(settings, metrics.called)
    ports = AgentPorts(listening.host, listening.first_of_agents)

    def tell(view: PoolView) -> None:
        meter.tell(view)
        sample(view)

    local = LocalPool(found, store, environ, on_cycle=tell, ports=ports, rng=surroundings.rng, wall=surroundings.wall)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, local.stop)
    with _served(metrics, meter, listening):
        await local.run()


@contextmanager
def _sampling(found: Pool, surroundings: Surroundings, path: Path | None) -> Iterator[Callable[[PoolView], None]]:
    """What writes a sample of each cycle, where that is wanted."""
    from thunderagent.local.samples import Sampler  # noqa: PLC0415 - boto3 again
    from thunderagent.report.samplefile import SampleFile  # noqa: PLC0415

    if path is None:
        yield lambda view: None
        return
    with SampleFile(path) as file:
        yield Sampler(found, file, surroundings.wall).tell


@contextmanager
def _served(metrics: PoolMetrics, meter: PoolMeter, listening: Listening) -> Iterator[None]:
    """Serve /healthz and /metrics meanwhile, where that is wanted."""
    from thunderagent.agent.health import HealthServer  # noqa: PLC0415 - a web server takes time to import, too

    if listening.port == NO_PORT:
        yield
        return
    metrics.build.info({"version": __version__})
    health = HealthServer(listening.host, listening.port, metrics.registry, meter.problem)
    log.say(logging.getLogger("thunderagent.pool"), logging.INFO, "listening", host=listening.host, port=health.port)
    try:
        yield
    finally:
        health.close()
