"""Whether the operator is alive: every pool has to end a cycle in a bounded time, and the listing of pools, too.

A cycle that failed or was given up has ended, so neither an outage nor a bad pool makes the operator unhealthy. What does is
what only a restart mends: a loop that hangs, or a task that has died.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Watchdog:
    """Beats by name. ``now`` gives monotonic seconds. Safe to share with the thread that answers probes."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}

    def expect(self, name: str, within: float) -> None:
        """The next beat has to come within so many seconds. Each call is a beat."""
        with self._lock:
            self._due[name] = self._now() + within

    def forget(self, name: str) -> None:
        """Nothing is expected of it any more."""
        with self._lock:
            self._due.pop(name, None)

    def problem(self) -> str | None:
        """Who is overdue, for the liveness probe; None while all is well."""
        now = self._now()
        with self._lock:
            overdue = {name: now - due for name, due in self._due.items() if now > due}
        if not overdue:
            return None
        worst = max(overdue, key=lambda name: overdue[name])
        return f"{len(overdue)} overdue; {worst} by {overdue[worst]:.0f} s."
