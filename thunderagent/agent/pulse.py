"""A wake-up call for coroutines: everyone who waits when it is fired goes on."""

from __future__ import annotations

import asyncio


class Pulse:
    """Like a condition variable without a lock: check what you wait for, then wait; within one event loop nothing is missed."""

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    def fire(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for the next fire. False where ``seconds`` passed first."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=seconds)
            return waiter.done()
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
