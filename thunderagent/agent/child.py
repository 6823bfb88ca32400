"""A child process: it imports the handler, runs what it is sent, and says how each run ended.

An agent starts it as ``python -m thunderagent.agent.child <socket> <handler> <settings>``, in a session of its own. With one
thread the handler runs in the main thread, so that SIGTERM can stop it from inside; with several they run in a thread each;
async handlers share one event loop beside them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import resource
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from thunderagent.agent import wire
from thunderagent.agent.handler import (
    HandlerStopped,
    Route,
    Router,
    RunningTask,
    describe_error,
    load_handler,
    outcome_of_exception,
    outcome_of_return,
)
from thunderagent.agent.lifeline import end_with_parent
from thunderagent.errors import InvalidHandler, LeaseLost
from thunderagent.log import set_up
from thunderagent.settings import TableSettings
from thunderagent.task import Outcome, Task

if TYPE_CHECKING:
    from thunderagent.queue import TaskQueue

log = logging.getLogger("thunderagent.child")


class Link:
    """The socket to the agent. Any thread may send; one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._incoming = connection.makefile("rb")
        self._lock = threading.Lock()

    def send(self, value: object) -> None:
        frame = wire.pack(value)
        with self._lock:
            self._connection.sendall(frame)

    def receive(self) -> Any:
        """The next frame's value. Raises EOFError when the agent is gone."""
        return wire.unpack(self._exactly(wire.body_size(self._exactly(wire.HEADER.size))))

    def _exactly(self, size: int) -> bytes:
        body = self._incoming.read(size)
        if len(body) < size:
            raise EOFError
        return body


class Run:
    """One run of one task in this process, and its link back to the agent."""

    def __init__(self, start: wire.Start, child: Child) -> None:
        self.number = start.run
        self.task = Task.from_record(start.record)
        self.stop_asked = False
        self.future: asyncio.Task[None] | None = None
        self._child = child
        self._lost = threading.Event()
        self._saved: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def save(self, progress: Mapping[str, Any], *, wait: bool) -> None:
        self._child.link.send(wire.Save(self.number, progress, wait))
        if wait and (self.stop_asked or not self._saved.get()):
            raise LeaseLost(f"The progress of {self.task.task_id} was not saved: another agent may have the task.")

    def lease_lost(self) -> bool:
        return self._lost.is_set()

    def queue(self) -> TaskQueue:
        return self._child.queue()

    def note_saved(self, ok: bool) -> None:
        self._saved.put(ok)

    def note_lost(self, lost: bool) -> None:
        self._lost.set() if lost else self._lost.clear()


class Child:
    """The process as a whole: a reading thread, the threads that run handlers, an event loop for async ones."""

    def __init__(self, link: Link, router: Router, table: TableSettings, threads: int) -> None:
        self.link = link
        self._router = router
        self._table = table
        self._threads = threads
        self._pid = os.getpid()
        self._runs: dict[int, Run] = {}
        self._todo: queue.SimpleQueue[tuple[Run, Route] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: TaskQueue | None = None
        self._queue_lock = threading.Lock()
        self._in_handler = False

    def serve(self) -> NoReturn:
        """Run what comes until the agent says to leave or is gone."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=self._read, name="thunderagent-read", daemon=True).start()
        for number in range(self._threads - 1):
            threading.Thread(target=self._work, name=f"thunderagent-handler-{number + 1}", daemon=True).start()
        self.link.send(wire.Ready(self._router.table()))
        self._work()
        self._leave(0)

    def queue(self) -> TaskQueue:
        """The task queue that handlers enqueue on, opened when the first one does."""
        from thunderagent.queue import TaskQueue  # noqa: PLC0415  boto3 is not loaded for handlers that enqueue nothing

        with self._queue_lock:
            if self._queue is None:
                self._queue = TaskQueue(self._table, on_enqueued=lambda task_id: self.link.send(wire.Enqueued(task_id)))
            return self._queue

    def _read(self) -> None:
        try:
            while True:
                self._take(self.link.receive())
        except (EOFError, ConnectionError):
            self._leave(0)  # the agent is gone, and with it the lease
        except BaseException:
            log.exception("An order of the agent cannot be carried out.")
            self._leave(1)

    def _take(self, order: Any) -> None:
        match order:
            case wire.Start():
                self._start(order)
            case wire.Stop(number) if number in self._runs:
                self._stop(self._runs[number])
            case wire.Lost(number, lost) if number in self._runs:
                self._runs[number].note_lost(lost)
            case wire.Saved(number, ok) if number in self._runs:
                self._runs[number].note_saved(ok)
            case wire.Exit():
                self._leave(0)

    def _start(self, start: wire.Start) -> None:
        run = Run(start, self)
        route = self._router.route(run.task.task_type)
        if route is None:
            outcome = outcome_of_exception(InvalidHandler(f"There is no handler for the task type {run.task.task_type!r}."))
            self.link.send(wire.Ended(run.number, outcome))
            return
        self._runs[run.number] = run
        if route.is_async:
            asyncio.run_coroutine_threadsafe(self._run_async(run, route), self._event_loop())
        else:
            self._todo.put((run, route))

    def _stop(self, run: Run) -> None:
        run.stop_asked = True
        run.note_lost(True)
        run.note_saved(False)
        if run.future is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(run.future.cancel)

    def _work(self) -> None:
        while True:
            try:
                item = self._todo.get()
                if item is None:
                    return
                self._run_sync(*item)
            except HandlerStopped:
                continue  # SIGTERM came just after a handler had ended
            except BaseException as error:
                self._give_up(error)

    def _run_sync(self, run: Run, route: Route) -> None:
        stopped = False
        try:
            if run.stop_asked:
                raise HandlerStopped("The run was stopped before it began.")
            self._in_handler = threading.current_thread() is threading.main_thread()
            outcome = outcome_of_return(route.handler(RunningTask(run.task, run)), run.task)
        except HandlerStopped as error:
            outcome, stopped = outcome_of_exception(error), True
        except BaseException as error:
            outcome, stopped = outcome_of_exception(error), run.stop_asked
        self._in_handler = False
        self._finish(run, outcome, stopped)

    async def _run_async(self, run: Run, route: Route) -> None:
        run.future = asyncio.current_task()
        try:
            self._finish(run, *await self._outcome_async(run, route))
        except BaseException as error:
            self._give_up(error)

    async def _outcome_async(self, run: Run, route: Route) -> tuple[Outcome, bool]:
        try:
            if run.stop_asked:
                raise asyncio.CancelledError
            return outcome_of_return(await route.handler(RunningTask(run.task, run)), run.task), False
        except BaseException as error:
            return outcome_of_exception(error), run.stop_asked

    def _finish(self, run: Run, outcome: Outcome, stopped: bool) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # a process that the handler forked and let return: the run is its parent's to report
        self._runs.pop(run.number, None)
        self.link.send(wire.Ended(run.number, outcome, stopped))

    def _give_up(self, error: BaseException) -> NoReturn:
        """Leave where the agent cannot be told of a run's end. At once: a thread that a handler left behind would hold it."""
        with contextlib.suppress(BaseException):  # an exception of a handler's own making may not let itself be shown
            log.error("The end of a run cannot be told to the agent.", exc_info=error)
        self._leave(1)

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._serve_async, args=(self._loop,), name="thunderagent-async", daemon=True).start()
        return self._loop

    def _serve_async(self, loop: asyncio.AbstractEventLoop) -> NoReturn:
        """Without the loop no async run would ever end: a SystemExit of a task that a handler left behind ends it, for one."""
        try:
            loop.run_forever()
            raise RuntimeError("A handler has stopped the event loop of all async handlers.")
        except BaseException as error:
            self._give_up(error)

    def _on_sigterm(self, number: int, frame: object) -> None:
        if self._in_handler:
            self._in_handler = False
            raise HandlerStopped("The agent asked this run to stop.")

    def _leave(self, code: int) -> NoReturn:
        for flush in (sys.stdout.flush, sys.stderr.flush, logging.shutdown):
            with contextlib.suppress(Exception):  # a handler may have closed them
                flush()
        os._exit(code)


def main(arguments: list[str]) -> None:
    """Entry of the process: socket number, handler name, settings as JSON."""
    descriptor, handler, text = arguments
    settings = json.loads(text)
    end_with_parent(settings["parent"], signal.SIGKILL)
    _limit_memory(settings["memory_mb"])
    set_up("%(asctime)s %(levelname)s %(name)s: %(message)s")
    connection = socket.socket(fileno=int(descriptor))
    connection.set_inheritable(False)
    link = Link(connection)
    try:
        router = load_handler(handler)
    except InvalidHandler as error:
        link.send(wire.Broken(str(error)))
        return
    except BaseException as error:
        link.send(wire.Broken(f"The handler {handler} cannot be imported: {describe_error(error)}"))
        return
    Child(link, router, TableSettings(**settings["table"]), settings["threads"]).serve()


def _limit_memory(megabytes: int) -> None:
    if megabytes:
        limit = megabytes * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main(sys.argv[1:])
