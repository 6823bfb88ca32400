"""What an agent needs of whatever runs handlers: child processes in production, the same process in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from thunderagent.agent.handler import RouteTable
from thunderagent.task import Outcome, Task


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended. ``stopped``: the handler did not end by itself, it was stopped; ``outcome`` then says little."""

    outcome: Outcome
    stopped: bool = False


class RunListener(Protocol):
    """Hears from a run while it goes on. Called in the event loop."""

    def on_save(self, handle: RunHandle, progress: Mapping[str, Any], wait: bool) -> None: ...


class RunHandle(Protocol):
    """A run under way."""

    @property
    def end(self) -> asyncio.Future[RunEnd]: ...

    def tell_lost(self, lost: bool) -> None:
        """Set or clear ``task.lease_lost``."""

    def tell_saved(self, ok: bool) -> None:
        """Answer a save that waits."""

    async def stop(self, grace: float) -> None:
        """Ask the handler to stop, and end it by force after ``grace`` seconds. Returns once ``end`` is known."""


class Runner(Protocol):
    """Runs handlers."""

    async def start(self) -> RouteTable:
        """Get ready and say what the handler takes. Raises InvalidHandler where it cannot be imported."""

    def begin(self, task: Task, listener: RunListener) -> RunHandle | None:
        """Start a run. None where no process has a place for it now."""

    def freed(self) -> asyncio.Future[bool]:
        """Done once a process may have a place."""

    async def close(self) -> None:
        """End all processes. Runs still under way end as stopped."""
