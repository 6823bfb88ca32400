"""The ways to a cluster: `current`, `kind` and `built`, one module each, all with the functions of `Way`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Protocol

from tests.cluster import built, commands, current, kind
from tests.cluster.choice import Choice, Surroundings, choose
from tests.cluster.errors import ClusterError
from tests.cluster.record import Record
from tests.cluster.settings import Settings


class Way(Protocol):
    """What each way's module offers."""

    def plan(self, settings: Settings) -> Record:
        """Where the cluster will be found once it is up. Looks, changes nothing. Raises `ClusterError` where it cannot be."""

    def is_up(self, settings: Settings, record: Record) -> bool:
        """Whether the cluster of the record is there and answers."""

    def up(self, settings: Settings, record: Record) -> Record:
        """Bring the cluster up; called only when it is not. Removes first what an interrupted attempt left. Returns the record
        with what only now is known."""

    def down(self, settings: Settings, record: Record) -> None:
        """Remove all that `up` made. Harmless when there is nothing, or half of it."""

    def build_image(self, settings: Settings, record: Record, reference: str, context: Path, flags: list[str]) -> None:
        """Build an image from a Dockerfile's context and make it known to the cluster under `reference`."""


BY_NAME: dict[str, Way] = {"current": current, "kind": kind, "built": built}


def chosen(settings: Settings) -> str:
    """The name of the way to take: asks at the terminal where a person must agree. Raises `ClusterError` when there is none."""
    choice = choose(settings.way, settings.confirmed, look_around())
    if not choice.ask or _agrees(choice):
        return choice.way
    if choice.otherwise is None:
        raise ClusterError("Nothing was done.")
    return choice.otherwise


def look_around() -> Surroundings:
    """See what the machine offers."""
    return Surroundings(
        context=current.context(),
        terminal=sys.stdin.isatty() and sys.stderr.isatty(),
        docker=commands.succeeds("docker", "info"),
        kind=bool(shutil.which("kind") or shutil.which("go")),
        debian=bool(shutil.which("apt-get")),
        root=os.geteuid() == 0,
    )


def _agrees(choice: Choice) -> bool:
    commands.say(f"kubectl's current context is {current.context()!r}: {current.server()}")
    commands.say("The tests create namespaces, a CRD and cluster roles there, and delete them again.")
    print(f"Use it? [y/N{f'; no takes {choice.otherwise}' if choice.otherwise else ''}] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
