"""An event loop on virtual time: where it would wait, its clock jumps to the moment it waits for."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable

RESOLUTION = 1e-6
"""Seconds within which two moments are one: a wait shorter than floating point tells apart would never end."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Time passes only when all coroutines wait, and then at once. Nothing in it may wait for another thread.

    ``now`` gives the virtual time in seconds and ``advance`` moves it on.
    """

    def __init__(self, now: Callable[[], float], advance: Callable[[float], None]) -> None:
        self._virtual_now = now
        super().__init__(_JumpingSelector(advance))
        self._clock_resolution = RESOLUTION

    def time(self) -> float:
        return self._virtual_now()


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError(
                "Everything waits for something that will not happen: nothing is scheduled on the virtual clock."
            )
        if timeout > 0:
            self._advance(timeout)
        return super().select(0)
