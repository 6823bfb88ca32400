"""The table's time, from the Date header of its replies.

A reply sent for at ``sent`` and received at ``received`` (this process's monotonic seconds) with the header ``date`` was made
at some moment in between, at which the table's clock stood in [date, date + 1). So the offset from monotonic time to table
time lies in [date - received, date + 1 - sent]. Each reply narrows the interval; between replies it widens by the drift that
two clocks may have. Nothing here reads the machine's wall clock: it may be wrong by minutes and jump.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from thunderagent.errors import ClockUnknown

MAX_DRIFT = 500e-6
"""Seconds that two clocks may drift apart a second: the limit within which the kernel disciplines a clock (adjtimex(2))."""


def monotonic() -> float:
    """Seconds that never jump and, on Linux, also count while the machine is suspended."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


class TableClock:
    """Bounds on the table's time. Safe to share between threads."""

    def __init__(self, monotonic: Callable[[], float] = monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._bounds: tuple[float, float, float] | None = None
        self.jumps = 0
        """How often a reply contradicted all earlier ones: a clock was set, or the machine slept."""

    @property
    def known(self) -> bool:
        return self._bounds is not None

    def read(self) -> float:
        """This process's monotonic time, for ``sent`` and ``received``."""
        return self._monotonic()

    def observe(self, date: float, sent: float, received: float) -> None:
        """Take in one reply: its Date header in epoch seconds, and when it was sent for and received."""
        # The reply may have been made as early as at ``sent``; from then on the offset could drift.
        low, high = date - received, date + 1 - sent + MAX_DRIFT * (received - sent)
        with self._lock:
            if self._bounds is not None:
                old_low, old_high = self._widened(received)
                if old_low <= high and low <= old_high:
                    low, high = max(low, old_low), min(high, old_high)
                else:
                    self.jumps += 1
            self._bounds = (low, high, received)

    def earliest(self) -> float:
        """The table's time is at least this, in epoch seconds. Raises ClockUnknown before the first reply."""
        return self._at(0)

    def latest(self) -> float:
        """The table's time is at most this, in epoch seconds. Raises ClockUnknown before the first reply."""
        return self._at(1)

    def uncertainty(self) -> float:
        """Seconds between the two bounds; infinite before the first reply. It grows while no reply is seen."""
        return self.latest() - self.earliest() if self.known else math.inf

    def now(self) -> int:
        """Whole epoch seconds that have certainly passed in the table's time."""
        return math.floor(self.earliest())

    def lease_end(self, seconds: float) -> int:
        """The epoch second that certainly lies ``seconds`` or more ahead."""
        return math.ceil(self.latest() + seconds)

    def _at(self, side: int) -> float:
        now = self._monotonic()
        with self._lock:
            return now + self._widened(now)[side]

    def _widened(self, now: float) -> tuple[float, float]:
        if self._bounds is None:
            raise ClockUnknown("The table's time is not known yet: no reply with a Date header has been received.")
        low, high, since = self._bounds
        drift = MAX_DRIFT * max(0.0, now - since)
        return low - drift, high + drift
