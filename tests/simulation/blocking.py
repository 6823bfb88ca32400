"""Running code that blocks, such as TaskQueue, on the simulated clock: in a thread that runs while the loop waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from typing import Any, TypeVar, cast

from tests.simulation.wire import Wire
from thunderagent.store.base import Applied, BatchRead, Cursor, Page
from thunderagent.store.layout import Layout
from thunderagent.task import Status, Task
from thunderagent.transitions import Transition

T = TypeVar("T")


class BlockingStore:
    """A Store whose calls block its thread for as long as they take on the simulated clock."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._thread: _Thread | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """Run ``function``, which calls this store. One at a time."""
        thread = self._thread = _Thread(function)
        request = thread.go_on(None)
        while request is not None:
            request = thread.go_on(await _outcome(request))
        return cast("T", thread.result())

    def sleep(self, seconds: float) -> None:
        self._ask(lambda: asyncio.sleep(seconds))

    def now(self) -> int:
        return int(self._call(self._wire.now))

    def lease_end(self, seconds: float) -> int:
        return int(self._call(self._wire.lease_end, seconds))

    def get(self, task_id: str) -> Task | None:
        task: Task | None = self._call(self._wire.get, task_id)
        return task

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        read: BatchRead = self._call(self._wire.get_many, task_ids)
        return read

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        applied: Applied = self._call(self._wire.apply, transition, want_task=want_task)
        return applied

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        page: Page = self._call(self._wire.page, status, limit=limit, cursor=cursor, newest_first=newest_first)
        return page

    def layout(self) -> Layout:
        return self._wire.layout()

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        page: Page = self._call(self._wire.entries, partition, limit=limit, until=until, cursor=cursor)
        return page

    def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._ask(lambda: self._wire.call(function, *args, **kwargs))

    def _ask(self, begin: Callable[[], Any]) -> Any:
        assert self._thread is not None
        return self._thread.ask(begin)


class _Thread:
    """A thread that takes turns with the loop: only one of the two ever runs."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._request: Callable[[], Any] | None = None
        self._reply: Any = None
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def go_on(self, reply: Any) -> Callable[[], Any] | None:
        """Let it run until it asks for something, or has ended (None)."""
        self._reply, self._request = reply, None
        self._mine.release()
        self._theirs.acquire()
        return self._request

    def ask(self, begin: Callable[[], Any]) -> Any:
        """In the thread: have the loop do something, and wait for what comes of it."""
        self._request = begin
        self._theirs.release()
        self._mine.acquire()
        value, error = self._reply
        if error is not None:
            raise error
        return value

    def result(self) -> Any:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        self._mine.acquire()
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error
        self._theirs.release()


async def _outcome(begin: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return await begin(), None
    except Exception as error:
        return None, error
