"""DynamoDB stand-ins to measure against, each in a process of its own, so that what it costs is not counted as ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.standins.dynalite import Dynalite, StandInUnavailable

STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Server:
    """A stand-in that runs: what to call it in the table, and the ``endpoint_url`` for clients."""

    name: str
    endpoint: str


@contextmanager
def embedded() -> Iterator[Server]:
    """``thunderagent dynamodb`` on a free port, as a user starts it."""
    command = [sys.executable, "-m", "thunderagent", "dynamodb", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server("embedded", _endpoint(process.stdout.readline()))
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


@contextmanager
def dynalite() -> Iterator[Server | None]:
    """dynalite, or None where node is absent."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(Dynalite())
        except StandInUnavailable:
            server = None
        else:
            server = Server("dynalite", running.endpoint)
        yield server


def _endpoint(line: str) -> str:
    name, _, endpoint = line.strip().removeprefix("export ").partition("=")
    if name != "THUNDERAGENT_ENDPOINT":
        raise RuntimeError(f"thunderagent dynamodb did not start; it printed {line!r} first.")
    return endpoint
