"""Child processes from the agent's side: started, fed, listened to, stopped and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import random
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thunderagent.agent import wire
from thunderagent.agent.handler import RouteTable
from thunderagent.agent.pulse import Pulse
from thunderagent.agent.runner import RunEnd, RunListener
from thunderagent.backoff import full_jitter
from thunderagent.errors import InvalidHandler, ThunderAgentError
from thunderagent.settings import AgentSettings, TableSettings
from thunderagent.task import ErrorType, Outcome, OutcomeKind, Task, TaskError

log = logging.getLogger("thunderagent.children")

READ_OUT = 0.5
"""Seconds in which the last frames of a child that has ended are read; a process it left behind may keep the socket open."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What every child of an agent is started with."""

    handler: str
    table: TableSettings
    settings: AgentSettings

    def arguments(self, descriptor: int) -> list[str]:
        settings = {
            "table": dataclasses.asdict(self.table),
            "threads": self.settings.threads,
            "memory_mb": self.settings.memory_mb,
            "parent": os.getpid(),
        }
        return [sys.executable, "-m", "thunderagent.agent.child", str(descriptor), self.handler, json.dumps(settings)]


class ChildRun:
    """A run in a child, as the agent sees it."""

    def __init__(self, number: int, child: Child, is_async: bool, listener: RunListener) -> None:
        self.number = number
        self.is_async = is_async
        self.listener = listener
        self.end: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self._child = child

    def tell_lost(self, lost: bool) -> None:
        self._child.send(wire.Lost(self.number, lost))

    def tell_saved(self, ok: bool) -> None:
        self._child.send(wire.Saved(self.number, ok))

    async def stop(self, grace: float) -> None:
        await self._child.stop_run(self, grace)

    def finish(self, end: RunEnd) -> None:
        if not self.end.done():
            self.end.set_result(end)


class Child:
    """One child process. ``on_change`` is called when it has a free slot more, or has ended."""

    def __init__(self, spec: ChildSpec, on_change: Callable[[], None], on_enqueued: Callable[[str], None]) -> None:
        self._spec = spec
        self._on_change = on_change
        self._on_enqueued = on_enqueued
        self._runs: dict[int, ChildRun] = {}
        self._numbers = 0
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[RouteTable] = asyncio.get_running_loop().create_future()
        self._stopping: ChildRun | None = None
        self._exited = False
        self._stops = 0
        self.routes: RouteTable | None = None
        self.ended = False
        self.retiring = False
        self.over = asyncio.Event()
        """Set once another is to take its place: it has ended, or is retiring."""

    async def start(self) -> RouteTable:
        """Start the process and wait until its handler is imported. Raises InvalidHandler; ThunderAgentError for other ends."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._spec.arguments(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:  # no memory, or no process id left
            ours.close()
            raise ThunderAgentError(f"A child process cannot be started: {error}.") from error
        finally:
            theirs.close()
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._reading = asyncio.create_task(self._read(reader))
        self._watching = asyncio.create_task(self._watch())
        try:
            self.routes = await asyncio.wait_for(self._ready, self._spec.settings.child_start)
        except TimeoutError:
            self.kill()
            raise ThunderAgentError(f"The handler was not imported within {self._spec.settings.child_start:g} s.") from None
        return self.routes

    @property
    def usable(self) -> bool:
        """Whether a run may begin here: not while another is being stopped, since that may have to kill the process."""
        return self.routes is not None and not self._exited and not self.retiring and not self._stops and self._stopping is None

    @property
    def idle(self) -> bool:
        return not self._runs

    @property
    def load(self) -> int:
        return len(self._runs)

    def has_slot(self, is_async: bool) -> bool:
        taken = sum(run.is_async is is_async for run in self._runs.values())
        return taken < (self._spec.settings.async_tasks if is_async else self._spec.settings.threads)

    def begin(self, task: Task, is_async: bool, listener: RunListener) -> ChildRun:
        self._numbers += 1
        run = ChildRun(self._numbers, self, is_async, listener)
        self._runs[run.number] = run
        self.send(wire.Start(run.number, dict(task.record)))
        if self._spec.settings.recycle_tasks and self._numbers >= self._spec.settings.recycle_tasks:
            self.retiring = True
            self.over.set()
        return run

    def send(self, value: object) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(wire.pack(value))

    async def stop_run(self, run: ChildRun, grace: float) -> None:
        """Stop one run: ask, wait, then kill the process; its other runs are then released, since they did nothing wrong."""
        self._stops += 1
        try:
            self.send(wire.Stop(run.number))
            if self._spec.settings.threads == 1 and not run.is_async:
                self._signal(signal.SIGTERM)
            await asyncio.wait({run.end}, timeout=grace)
            if not run.end.done():
                self._stopping = run
                self.kill()
                await asyncio.wait({run.end})
        finally:
            self._stops -= 1
            self._on_change()

    def kill(self) -> None:
        """Kill the process and what it started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self, grace: float) -> None:
        """Ask an idle process to leave, and kill it where it does not."""
        self.send(wire.Exit())
        if self.routes is None:
            self.kill()  # still importing the handler: it would not hear
        if self._watching is not None:
            await asyncio.wait({self._watching}, timeout=grace)
            if not self._watching.done():
                self.kill()
                await asyncio.wait({self._watching})

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                size = wire.body_size(await reader.readexactly(wire.HEADER.size))
                self._take(wire.unpack(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except Exception:
            log.exception("A child process sent what cannot be read and is ended.")
            self.kill()

    async def _watch(self) -> None:
        assert self._process is not None
        code = await self._process.wait()
        self._exited = True
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=READ_OUT)
            self._reading.cancel()
        self._end(code)

    def _end(self, code: int) -> None:
        self.ended = True
        self.over.set()
        self.kill()  # what a handler forked and left behind is in the same process group
        if self._writer is not None:
            self._writer.close()
        if not self._ready.done():
            self._ready.set_exception(
                ThunderAgentError(f"A child process ended before its handler was imported: {_how(code)}.")
            )
        for run in list(self._runs.values()):
            self._finish(run.number, self._end_of(run, code))
        self._on_change()

    def _end_of(self, run: ChildRun, code: int) -> RunEnd:
        if self._stopping is None:
            error = TaskError(ErrorType.CHILD_DIED, f"The process that ran the handler ended: {_how(code)}.")
            return RunEnd(Outcome(OutcomeKind.RETRY, error=error))
        return RunEnd(Outcome(OutcomeKind.RELEASED), stopped=run is self._stopping)

    def _take(self, value: Any) -> None:
        match value:
            case wire.Ready(routes):
                if not self._ready.done():
                    self._ready.set_result(routes)
            case wire.Broken(reason):
                if not self._ready.done():
                    self._ready.set_exception(InvalidHandler(reason))
            case wire.Ended(number, outcome, stopped):
                self._finish(number, RunEnd(outcome, stopped))
                self._on_change()
            case wire.Save(number, progress, wait) if number in self._runs:
                run = self._runs[number]
                run.listener.on_save(run, progress, wait)
            case wire.Enqueued(task_id):
                self._on_enqueued(task_id)

    def _finish(self, number: int, end: RunEnd) -> None:
        run = self._runs.pop(number, None)
        if run is not None:
            run.finish(end)


class Children:
    """The child processes of an agent: as many as its settings say, each replaced when it ends or has done its share."""

    def __init__(
        self,
        spec: ChildSpec,
        rng: random.Random,
        *,
        on_enqueued: Callable[[str], None] = lambda task_id: None,
        on_replaced: Callable[[], None] = lambda: None,
    ) -> None:
        self._spec = spec
        self._rng = rng
        self._on_enqueued = on_enqueued
        self._on_replaced = on_replaced
        self._children: list[Child] = []
        self._changed = Pulse()
        self._tending: set[asyncio.Task[None]] = set()
        self._closing = False
        self._routes: RouteTable | None = None

    async def start(self) -> RouteTable:
        """Start one child, learn its routes, and have the others follow. Raises InvalidHandler, ThunderAgentError."""
        first = self._new_child()
        self._routes = await first.start()
        for child in (first, *(None for _ in range(self._spec.settings.processes - 1))):
            self._spawn(self._tend(child))
        return self._routes

    def begin(self, task: Task, listener: RunListener) -> ChildRun | None:
        """Start a run in the child with the least to do. None where none has a slot."""
        info = self._routes.info(task.task_type) if self._routes else None
        is_async = info is not None and info.is_async
        fit = [child for child in self._children if child.usable and child.has_slot(is_async)]
        return min(fit, key=lambda child: child.load).begin(task, is_async, listener) if fit else None

    def freed(self) -> asyncio.Future[bool]:
        """Done once a child may have a slot more."""
        return self._changed.next()

    async def close(self) -> None:
        """End all children; runs still under way end as stopped."""
        self._closing = True
        for task in self._tending:
            task.cancel()
        await asyncio.gather(*(child.close(self._spec.settings.stop_grace) for child in self._children), return_exceptions=True)
        await asyncio.gather(*self._tending, return_exceptions=True)

    def _new_child(self) -> Child:
        child = Child(self._spec, self._changed.fire, self._on_enqueued)
        self._children.append(child)
        return child

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tending.add(task)
        task.add_done_callback(self._tending.discard)

    async def _tend(self, child: Child | None) -> None:
        """Keep one place filled: start a child there, wait until it ends or retires, and start the next."""
        failures = 0
        while not self._closing:
            if child is None:
                child = await self._started()
                failures = 0 if child else failures + 1
            if child is None:
                await asyncio.sleep(full_jitter(self._rng, failures, base=1.0, cap=30.0))
                continue
            self._changed.fire()
            await self._until_over(child)
            child = None
            self._on_replaced()

    async def _started(self) -> Child | None:
        child = self._new_child()
        try:
            await child.start()
        except ThunderAgentError as error:
            log.error("A child process did not start: %s", error)
            child.kill()
            self._children.remove(child)
            return None
        return child

    async def _until_over(self, child: Child) -> None:
        await child.over.wait()
        if child.retiring and not child.ended:
            self._spawn(self._retire(child))
        else:
            self._children.remove(child)

    async def _retire(self, child: Child) -> None:
        while not child.idle and not child.ended:
            await self._changed.wait()
        await child.close(self._spec.settings.stop_grace)
        self._children.remove(child)


def _how(code: int) -> str:
    """An exit status in words, with what it usually means."""
    if code >= 0:
        return f"exit status {code}"
    name = signal.Signals(-code).name if -code in {each.value for each in signal.Signals} else f"signal {-code}"
    hints = {
        "SIGKILL": "killed, often for lack of memory",
        "SIGSEGV": "a crash in native code",
        "SIGABRT": "aborted by native code",
    }
    return f"{name} ({hints[name]})" if name in hints else name
