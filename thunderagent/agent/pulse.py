"""A wake-up call for coroutines: everyone who waits when it is fired goes on."""

from __future__ import annotations

import asyncio


class Pulse:
    """Like a condition variable without a lock: check what you wait for, then wait; within one event loop nothing is missed."""

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[bool]] = []

    def fire(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            _settle(waiter, True)

    def next(self) -> asyncio.Future[bool]:
        """Done at the next fire."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for the next fire. False where ``seconds`` passed first."""
        waiter = self.next()
        timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, _settle, waiter, False)
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()
            if waiter in self._waiters:
                self._waiters.remove(waiter)


def _settle(waiter: asyncio.Future[bool], fired: bool) -> None:
    if not waiter.done():
        waiter.set_result(fired)
