"""The command line over an in-memory table: no network, a clock that passes when somebody sleeps, an empty environment."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from click.testing import CliRunner, Result

from tests.builders import NOW, Time
from thunderagent.cli.main import main
from thunderagent.cli.surroundings import Surroundings
from thunderagent.settings import TableSettings
from thunderagent.store import Store
from thunderagent.store.base import Applied, CallReport, Observer
from thunderagent.store.memory import MemoryStore
from thunderagent.transitions import Transition


@dataclass
class World:
    """One table and the settings that the commands opened it with."""

    time: Time = field(default_factory=Time)
    environ: dict[str, str] = field(default_factory=dict)
    opened: list[TableSettings] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.time)
        self.used: Store = self.store

    def run(self, *arguments: str, input: str | bytes | None = None) -> Result:
        """Run ``thunderagent`` with these arguments; an exception that no command expects fails the test."""
        surroundings = Surroundings(
            environ=self.environ, open_store=self._open, sleep=self.time.sleep, monotonic=self.time, wall=self.time
        )
        return CliRunner().invoke(
            main, list(arguments), input=input, obj=surroundings, prog_name="thunderagent", catch_exceptions=False
        )

    def json(self, *arguments: str) -> Any:
        """What the command writes as JSON. It must succeed."""
        result = self.run(*arguments, "-o", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def record(self, task_id: str) -> dict[str, Any]:
        return self.store.records()[task_id]

    def _open(self, settings: TableSettings, observer: Observer | None) -> Store:
        self.opened.append(settings)
        if observer is not None:
            observer(CallReport("Query", "ok", 0.0, 4.5))
        return self.used


class Refusing(MemoryStore):
    """A table that raises ``error`` for each write after the first ``allowed``."""

    def __init__(self, clock: Time, error: Exception, *, allowed: int = 0) -> None:
        super().__init__(clock)
        self._error = error
        self.allowed = allowed

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        self.allowed -= 1
        if self.allowed < 0:
            raise self._error
        return super().apply(transition, want_task=want_task)


__all__ = ["NOW", "Refusing", "World"]
