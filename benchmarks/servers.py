"""DynamoDB stand-ins to measure against, each in a process of its own, so that what it costs is not counted as ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.standins.dynalite import Dynalite, StandInUnavailable
from tests.standins.ministack import Ministack

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
        yield _server("dynalite", Dynalite(), stack)


@contextmanager
def ministack() -> Iterator[Server | None]:
    """ministack, or None where it cannot be installed. The fastest of the three: it is the limit of a figure last."""
    with ExitStack() as stack:
        yield _server("ministack", Ministack(), stack)


def _server(name: str, stand_in: Dynalite | Ministack, stack: ExitStack) -> Server | None:
    try:
        stack.enter_context(stand_in)
    except StandInUnavailable as reason:
        print(f"{name} cannot run here, and its rows are left out: {reason}", file=sys.stderr)
        return None
    return Server(name, stand_in.endpoint)


def _endpoint(line: str) -> str:
    name, _, endpoint = line.strip().removeprefix("export ").partition("=")
    if name != "THUNDERAGENT_ENDPOINT":
        raise RuntimeError(f"thunderagent dynamodb did not start; it printed {line!r} first.")
    return endpoint
