"""Handlers that agents of tests run. Each writes into the history when it starts and when it ends; that is what is counted.

A line is one write to a file opened for appending, so that lines of many processes do not mix and none is lost in a crash.
"""

from __future__ import annotations

import asyncio
import ctypes
import enum
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from thunderagent import Done, Fail, Router, RunningTask, Snooze
from thunderagent.agent.handler import HandlerStopped

PATIENCE = 90.0
"""Seconds after which a handler that waits for a test gives up."""

FOLDER = Path(os.environ.get("THUNDERAGENT_TEST_FOLDER", "."))
AGENT = os.environ.get("THUNDERAGENT_TEST_AGENT", "")

router = Router()


def write(event: str, task: RunningTask, note: Any = None) -> None:
    """Add a line to the history."""
    entry = {"event": event, "task_id": task.task_id, "pid": os.getpid(), "agent": AGENT, "at": time.monotonic(), "note": note}
    descriptor = os.open(FOLDER / "history", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, json.dumps(entry).encode() + b"\n")
    finally:
        os.close(descriptor)


@contextmanager
def noted(task: RunningTask) -> Iterator[None]:
    """Write the start and the end of a run; a run that is stopped writes ``stopped`` in place of ``end``."""
    write("start", task)
    try:
        yield
    except (HandlerStopped, asyncio.CancelledError):
        write("stopped", task)
        raise
    write("end", task)


def wait_at_gate(name: str) -> None:
    """Wait until the test opens a gate."""
    deadline = time.monotonic() + PATIENCE
    while not (FOLDER / f"gate-{name}").exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"The gate {name} was not opened.")
        time.sleep(0.02)


# --- well behaved -------------------------------------------------------------------------------------------------------


@router.default
@router.task("plain")
def plain(task: RunningTask) -> dict[str, Any]:
    with noted(task):
        return {"pid": os.getpid(), "agent": AGENT, "clock": time.time()}


@router.task("short")
def short(task: RunningTask) -> None:
    with noted(task):
        time.sleep(0.1)


@router.task("hold")
def hold(task: RunningTask) -> dict[str, Any]:
    """Wait at the gate that the payload names, or at the agent's own."""
    with noted(task):
        wait_at_gate(task.payload.get("gate", AGENT))
        return {"pid": os.getpid(), "agent": AGENT}


@router.task("narrow", slots=1)
def narrow(task: RunningTask) -> None:
    with noted(task):
        time.sleep(0.05)


@router.task("brief", timeout=1)
def brief(task: RunningTask) -> None:
    with noted(task):
        wait_at_gate("never")


@router.task("together")
async def together(task: RunningTask) -> dict[str, Any]:
    """Ends once as many runs as the payload says are under way in this very process."""
    _together.add(task.task_id)
    with noted(task):
        async with asyncio.timeout(PATIENCE):
            if len(_together) == task.payload["count"]:
                _all_here.set()
            await _all_here.wait()
        return {"pid": os.getpid()}


_together: set[str] = set()
_all_here = asyncio.Event()


@router.task("async hold")
async def async_hold(task: RunningTask) -> None:
    with noted(task):
        async with asyncio.timeout(PATIENCE):
            while not (FOLDER / f"gate-{task.payload.get('gate', AGENT)}").exists():  # noqa: ASYNC110 - a test opens it
                await asyncio.sleep(0.02)


@router.task("checkpoint")
def checkpoint(task: RunningTask) -> dict[str, Any]:
    """Saves each step; the first run waits for its end after the second step."""
    write("start", task, task.progress)
    for step in range((task.progress or {"step": 0})["step"] + 1, 5):
        write("step", task, step)
        task.save({"step": step}, wait=True)
        if step == 2 and task.retry_count == 0:
            write("saved", task)
            wait_at_gate("never")
    write("end", task)
    return {"steps": 4}


@router.task("once")
def once(task: RunningTask) -> dict[str, Any]:
    """Its effect happens in the first run, which then dies."""
    receipt = task.once(_effect, task)
    if task.retry_count == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"receipt": receipt}


def _effect(task: RunningTask) -> str:
    write("effect", task)
    return f"receipt of {os.getpid()}"


@router.task("enqueues")
def enqueues(task: RunningTask) -> dict[str, Any]:
    new = task.enqueue({"from": task.task_id}, task_type="plain", task_id=f"{task.task_id}-next")
    return {"next": new.task_id}


@router.task("watches lease")
def watches_lease(task: RunningTask) -> None:
    """Write when the lease is lost and when it is there again; end at the gate."""
    with noted(task):
        deadline, lost = time.monotonic() + PATIENCE, False
        while not (FOLDER / "gate-lease").exists() and time.monotonic() < deadline:
            if task.lease_lost is not lost:
                lost = task.lease_lost
                write("lease lost" if lost else "lease back", task)
            time.sleep(0.02)


# --- odd ends -----------------------------------------------------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Base(BaseException):
    pass


class Leaving(Exception):
    def __str__(self) -> str:
        raise SystemExit("while it is told")


class Text(str):
    """Text of the handler's own kind: the agent, where it stood, would run this code."""

    def encode(self, *arguments: object) -> bytes:
        raise ValueError("not here")


class Id(str):
    """A taskId as a program may have it."""


class TextError(Exception):
    def __str__(self) -> str:
        return Text("words")


class Seconds(float):
    """As numpy's float is one: a kind of float that only the handler's process knows."""


class Kind(enum.StrEnum):
    OWN = "own kinds"


class Liar:
    __class__ = bool  # type: ignore[assignment]


class Scrambled(dict[str, Any]):
    def items(self) -> Any:
        raise LookupError("not today")


@router.task("raises")
def raises(task: RunningTask) -> NoReturn:
    kinds = {
        "ValueError": ValueError("boom"),
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "BaseException": Base("base"),
        "unspeakable": Unspeakable(),
        "leaving": Leaving(),
        "own text": TextError(),
        "huge text": ValueError("x" * 1_000_000),
        "surrogate": ValueError("\ud800"),
        "cancelled": asyncio.CancelledError(),
        "stopped": HandlerStopped("by itself"),
        "fail": Fail("for good"),
        "group": ExceptionGroup("several", [ValueError("one"), TypeError("two")]),
    }
    with noted(task):
        raise kinds[task.payload["kind"]]


@router.task("returns")
def returns(task: RunningTask) -> Any:
    values: dict[str, Any] = {
        "list": [1],
        "lambda": lambda: None,
        "lambda inside": {"f": lambda: None},
        "huge": {"x": "x" * 1_000_000},
        "generator": (each for each in [1]),
        "class": Done,
        "nan": {"x": float("nan")},
        "deep": _nested(60),
        "bytes": {"x": b"\0\xff"},
        "done": Done({"x": 1}),
        "own kinds": {Kind.OWN: [Kind.OWN, Seconds(1.5)]},
        "liar": {"x": Liar()},
        "scrambled": Scrambled(x=1),
        "itself": _endless(),
        "nothing": None,
        "fail": Fail("returned"),
    }
    with noted(task):
        return values[task.payload["kind"]]


def _endless() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["in"] = value
    return value


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@router.task(Kind.OWN)
def own_kinds(task: RunningTask) -> dict[str, Any]:
    """Everything that goes to the agent is of a kind which only this process knows."""
    if task.progress is None:
        task.save({"seconds": Seconds(0.5), Kind.OWN: Kind.OWN}, wait=True)
        raise Snooze(Seconds(0.01))
    return dict(task.progress) | {"next": task.enqueue({}, task_id=Id(f"{task.task_id}-next"), task_type="plain").task_id}


@router.task("async raises")
async def async_raises(task: RunningTask) -> NoReturn:
    with noted(task):
        raise Leaving


@router.task("leaves an exit")
async def leaves_an_exit(task: RunningTask) -> None:
    """A task of asyncio's that it started ends the loop, which runs every async handler of the process."""

    async def leave() -> NoReturn:
        raise SystemExit(3)

    with noted(task):
        left = asyncio.ensure_future(leave())
        await asyncio.sleep(PATIENCE)
        await left


@router.task("stops the loop")
async def stops_the_loop(task: RunningTask) -> None:
    with noted(task):
        asyncio.get_running_loop().stop()
        await asyncio.sleep(PATIENCE)


@router.task("snoozes")
def snoozes(task: RunningTask) -> None:
    runs = (task.progress or {"runs": 0})["runs"] + 1
    task.save({"runs": runs}, wait=True)
    if runs < 3:
        raise Snooze(0)


# --- hostile ------------------------------------------------------------------------------------------------------------


@router.task("dies")
def dies(task: RunningTask) -> None:
    write("start", task)
    match task.payload["how"]:
        case "segfault":
            ctypes.string_at(0)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "abort":
            os.abort()
        case "exit 0":
            os._exit(0)
        case "exit 7":
            os._exit(7)
        case "closes everything":
            os.closerange(3, 256)
        case "hides our module":
            sys.modules.pop("thunderagent.agent.wire")
        case "deep recursion":
            sys.setrecursionlimit(10**9)
            _recurse()


def _recurse() -> str:
    return re.sub("x", lambda match: _recurse(), "x")  # through C, so that the C stack is what ends


@router.task("eats memory")
def eats_memory(task: RunningTask) -> None:
    with noted(task):
        eaten = []
        while True:
            eaten.append(bytearray(16 * 1024 * 1024))


@router.task("holds the interpreter")
def holds_the_interpreter(task: RunningTask) -> None:
    """A call into C that does not let go of the interpreter: no other thread of this process runs meanwhile."""
    with noted(task):
        ctypes.PyDLL(None).usleep(int(task.payload["seconds"] * 1_000_000))


@router.task("forks")
def forks(task: RunningTask) -> dict[str, Any]:
    """Both processes return; only one of them is the run."""
    write("start", task)
    pid = os.fork()
    if pid == 0:
        write("in the fork", task)
        return {"fork": True}
    os.waitpid(pid, 0)
    write("end", task)
    return {"fork": False}


@router.task("leaves a process")
def leaves_a_process(task: RunningTask) -> dict[str, Any]:
    """A process that it forked lives on; then, if asked, the run's own process dies."""
    write("start", task)
    pid = os.fork()
    if pid == 0:
        time.sleep(PATIENCE)
        os._exit(0)
    write("left", task, pid)
    if task.payload.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"left": pid}


@router.task("prints")
def prints(task: RunningTask) -> None:
    with noted(task):
        for _ in range(100):
            print("o" * 100_000)
            print("e" * 100_000, file=sys.stderr)


@router.task("closes stdout")
def closes_stdout(task: RunningTask) -> None:
    with noted(task):
        sys.stdout.close()
        os.close(1)
        os.close(2)


@router.task("changes signals")
def changes_signals(task: RunningTask) -> None:
    with noted(task):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)


@router.task("leaves a thread")
def leaves_a_thread(task: RunningTask) -> None:
    with noted(task):
        threading.Thread(target=time.sleep, args=(PATIENCE,)).start()


@router.task("changes the process")
def changes_the_process(task: RunningTask) -> None:
    with noted(task):
        os.chdir("/")
        os.environ.clear()
        sys.path.clear()
        sys.setrecursionlimit(200)


@router.task("ignores the stop")
def ignores_the_stop(task: RunningTask) -> None:
    write("start", task)
    match task.payload["how"]:
        case "signal":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            wait_at_gate("never")
        case "exception":
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                try:
                    wait_at_gate("never")
                except BaseException:
                    continue
        case "interpreter":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it would interrupt usleep
            ctypes.PyDLL(None).usleep(int(PATIENCE * 1_000_000))


@router.task("blocks the loop")
async def blocks_the_loop(task: RunningTask) -> None:
    with noted(task):
        wait_at_gate("never")
