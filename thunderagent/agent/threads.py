"""Threads for blocking calls of an event loop.

``run_in_executor`` makes two futures a call, locks each, and chains one to the other; at a few milliseconds a task that is a
tenth of what an agent costs. Here a call is one future of the loop, and one entry of a queue.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

T = TypeVar("T")

_Order = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class CallThreads:
    """At most ``limit`` threads, each started when all others are busy. Made, called and closed in one event loop.

    Leaving the ``with`` block waits for the calls under way; those not begun are cancelled.
    """

    def __init__(self, limit: int, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._name = name
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._open = 0
        """Calls that were ordered and whose ends this loop has not seen."""

    def __call__(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> asyncio.Future[T]:
        """Call ``function`` in a thread; the future has what it returned or raised. One that is cancelled is not begun."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._open += 1
        if len(self._threads) < min(self._open, self._limit):
            self._start_thread()
        self._orders.put((future, function, args, kwargs))
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while not self._orders.empty():
            order = self._orders.get()
            if order is not None:
                order[0].cancel()
        for _ in self._threads:
            self._orders.put(None)
        for thread in self._threads:
            thread.join()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            future, function, args, kwargs = order
            if future.cancelled():
                self._tell(self._end, future, None, None)
                continue
            try:
                result, error = function(*args, **kwargs), None
            except BaseException as raised:
                result, error = None, raised
            self._tell(self._end, future, result, error)
            del order, future, function, args, kwargs, result, error  # or an idle thread would keep the last call's alive

    def _tell(self, *call: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(*call)
        except RuntimeError:
            return  # the loop is closed, and with it whoever waited

    def _end(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self._open -= 1
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
