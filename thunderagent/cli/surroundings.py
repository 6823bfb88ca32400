"""What a command is given from outside: environment, clocks, the way to a store. Tests give their own as click's ``obj``."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

import thunderagent
from thunderagent.cli.live.kubectl import run_kubectl
from thunderagent.errors import InvalidSettings
from thunderagent.settings import TableSettings, from_environment

if TYPE_CHECKING:
    from thunderagent.queue import TaskQueue
    from thunderagent.store.base import Observer, Store
    from thunderagent.store.dynamo import DynamoStore


def open_dynamo_store(settings: TableSettings, observer: Observer | None = None) -> DynamoStore:
    """The table in DynamoDB, closed when the command ends."""
    from thunderagent.store.dynamo import DynamoStore  # noqa: PLC0415 - boto3 takes longer to import than --help may take

    store = DynamoStore(settings, observer=observer)
    click.get_current_context().call_on_close(store.close)
    return store


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The world of one command. ``wall`` is this machine's clock in epoch seconds, for a check of it and for metrics alone."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    open_store: Callable[[TableSettings, Observer | None], Store] = open_dynamo_store
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    rng: random.Random = field(default_factory=random.Random)
    kubectl: Callable[[Sequence[str]], str] = run_kubectl

    def table(self, given: Mapping[str, str | None]) -> TableSettings:
        """The table's settings: the flags that were given, then the environment. Ends the command as wrong usage."""
        try:
            settings = from_environment(TableSettings, self.environ, **given)
        except InvalidSettings as error:
            raise click.UsageError(str(error)) from None
        if settings.endpoint and not settings.endpoint.startswith(("http://", "https://")):
            raise click.UsageError(f"The endpoint {settings.endpoint} is not a URL. Write it whole: http://127.0.0.1:8000.")
        return settings

    def queue(self, given: Mapping[str, str | None], observer: Observer | None = None) -> TaskQueue:
        """The queue over that table."""
        store = self.open_store(self.table(given), observer)
        return thunderagent.TaskQueue(store=store, rng=self.rng, sleep=self.sleep, monotonic=self.monotonic)
