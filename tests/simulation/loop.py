"""An event loop on virtual time whose processes can be stopped, continued and killed.

Nothing in it asks the operating system for anything, so a history is the same on every machine. All processes of a history
share one loop; a context variable says to which process a coroutine belongs, and what is due for a stopped process waits until
it goes on, as it does for a process that got SIGSTOP: timers then fire late, all at once and in their order.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
"""The simulated process that the running code belongs to; None for the network, the table and the simulation itself."""


class Process:
    """A simulated operating system process: its coroutines, and whether it runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_stopped = False
        self.is_over = False
        self._parked: list[_Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._main: asyncio.Task[Any] | None = None

    def start(self, loop: SimulatedLoop, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``work`` as the process, which ends with it."""
        context = contextvars.copy_context()
        context.run(PROCESS.set, self)
        self._main = loop.create_task(work, context=context)
        return self._main

    async def ended(self) -> None:
        """Return once the process has ended."""
        if self._main is not None:
            await asyncio.wait({self._main})

    def stop(self) -> None:
        """As SIGSTOP: nothing of it runs until it is continued."""
        self.is_stopped = True

    def go_on(self, loop: SimulatedLoop) -> None:
        """As SIGCONT."""
        self.is_stopped = False
        parked, self._parked = self._parked, []
        loop.again(parked)

    def kill(self, loop: SimulatedLoop) -> None:
        """As SIGKILL. Whoever holds its way to the table sees to it that nothing that it still does gets out."""
        self.is_over = True
        self.go_on(loop)
        for task in self._tasks:
            task.cancel()

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """A coroutine that the process has begun."""
        self._tasks.append(task)
        if len(self._tasks) > 200:
            self._tasks = [each for each in self._tasks if not each.done()]

    def park(self, handle: _Handle) -> None:
        """Keep what is due until the process goes on."""
        self._parked.append(handle)


class _Handle:
    """A callback that is due, now or later."""

    __slots__ = ("_cancelled", "_when", "args", "callback", "context", "process")

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context, when: float
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.process = context.get(PROCESS)
        self._when = when
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True

    def cancelled(self) -> bool:
        return self._cancelled

    def when(self) -> float:
        return self._when


class SimulatedLoop(asyncio.AbstractEventLoop):
    """See the module. Time starts at 0 and is in seconds; what is due at one moment runs in the order it was asked for.

    Its handles are its own, as those of other event loops are: asyncio needs no more of them than ``cancel``.
    """

    def __init__(self) -> None:
        self._time = 0.0
        self._ready: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._order = itertools.count()
        self.mistakes: list[str] = []
        """What asyncio had to complain about: an exception that nobody looked at."""

    # --- what coroutines use ----------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._time

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        handle = _Handle(callback, args, contextvars.copy_context() if context is None else context, self._time)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        return self.call_at(self._time + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        handle = _Handle(callback, args, contextvars.copy_context() if context is None else context, when)
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: object = None, context: contextvars.Context | None = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name="" if name is None else str(name), context=context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            process.adopt(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.mistakes.append(f"{context.get('message')}: {context.get('exception')!r}")

    # --- running ------------------------------------------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and everything else for so long."""
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(work)
            while not task.done():
                self._turn()
            return task.result()  # type: ignore[no-any-return]
        finally:
            asyncio._set_running_loop(None)

    def again(self, handles: list[_Handle]) -> None:
        """What was due earlier is due now."""
        self._ready.extend(handles)

    def _turn(self) -> None:
        if not self._ready:
            self._jump()
        handle = self._ready.popleft()
        if handle._cancelled:
            return
        if handle.process is not None and handle.process.is_stopped:
            handle.process.park(handle)
        else:
            handle.context.run(handle.callback, *handle.args)

    def _jump(self) -> None:
        """Let time pass until something is due. A timer that was cancelled moves no time."""
        while True:
            when, _, handle = heapq.heappop(self._timers)
            if not handle._cancelled:
                break
        self._time = max(self._time, when)
        self._ready.append(handle)
