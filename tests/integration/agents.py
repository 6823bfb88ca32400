"""Real agents for tests: started as a user starts them, watched through the table, and killed by their process id.

A test never sleeps for a guessed time: :func:`eventually` asks again and again until what it waits for is there, or fails when
its patience is over.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from thunderagent import Status, Task, TaskQueue
from thunderagent.settings import TableSettings

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
HANDLERS = "tests.integration.handlers:router"

PATIENCE = 40.0
"""Seconds after which a condition is given up. Only a failing test waits for so long."""

LEASE = 3
SHORT = {
    "lease": LEASE,
    "renew": 0.5,
    "expired_look": 1,
    "start_delay_min": 0,
    "start_delay_max": 0,
    "wait_busy": 0.1,
    "wait_quiet": 0.2,
    "wait_idle": 0.3,
    "retry_base": 0.1,
    "retry_cap": 0.2,
    "stop_grace": 1,
    "drain": 60,
    "checkpoint": 0.2,
    "port": -1,
}
"""Settings under which leases end, polls come round and retries are due within seconds."""


def eventually(condition: Callable[[], T | None], what: Callable[[], str] | str, patience: float = PATIENCE) -> T:
    """What ``condition`` returns, once it is neither None nor False. ``what`` says in the failure what was missing."""
    deadline = time.monotonic() + patience
    while True:
        found = condition()
        if found is not None and found is not False:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {patience:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not asked for its status yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@dataclass(frozen=True)
class Entry:
    """A line that a handler wrote: what happened to which task, in which process of which agent."""

    event: str
    task_id: str
    pid: int
    agent: str
    at: float
    note: Any = None


class AgentProcess:
    """One ``thunderagent agent run`` with its children. ``name`` is what its handlers write into the history."""

    def __init__(self, process: subprocess.Popen[bytes], log_file: Path) -> None:
        self._process = process
        self._log_file = log_file
        self.pid = process.pid

    @property
    def log(self) -> str:
        return self._log_file.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def port(self) -> int:
        """The port of /healthz, as the agent says it in its log."""
        self.says("listening ")
        (line,) = (line for line in self.log.splitlines() if "listening " in line)
        return int(line.rpartition("port=")[2])

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def exit_code(self) -> int:
        """Wait for the end of the process."""
        return self._process.wait(PATIENCE)

    def says(self, text: str) -> None:
        """Wait until the log holds the text, or fail if the process ends without."""
        eventually(lambda: text in self.log or not self.running, lambda: f"the log line {text!r}\n{self.log[-3000:]}")
        assert text in self.log, self.log[-3000:]

    def end(self) -> None:
        """Kill what still runs. The children go with their agent."""
        if self.running:
            with suppress(ProcessLookupError):
                self.send(signal.SIGKILL)
            self._process.wait(PATIENCE)


class Scene:
    """A task table, the agents that share it, and the history that their handlers write."""

    def __init__(self, endpoint: str, table: str, folder: Path) -> None:
        self.endpoint = endpoint
        self.settings = TableSettings(table=table, endpoint=endpoint)
        self.queue = TaskQueue(self.settings)
        self.folder = folder
        self._history_file = folder / "history"
        self._history_file.touch()
        self._agents: list[AgentProcess] = []

    def agent(
        self,
        name: str = "A",
        *,
        handler: str = HANDLERS,
        endpoint: str | None = None,
        environ: Mapping[str, str] | None = None,
        wait: bool = True,
        **settings: object,
    ) -> AgentProcess:
        """Start an agent, by default through to its first poll. ``settings`` go over :data:`SHORT`."""
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in (SHORT | settings).items()]
        where = [f"--table={self.settings.table}", f"--endpoint={endpoint or self.endpoint}"]
        log_file = self.folder / f"log-{name}-{len(self._agents)}"
        surroundings = os.environ | {
            "PYTHONPATH": str(ROOT),
            "THUNDERAGENT_TEST_FOLDER": str(self.folder),
            "THUNDERAGENT_TEST_AGENT": name,
        }
        with log_file.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "thunderagent", "agent", "run", handler, *where, *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=surroundings | dict(environ or {}),
                start_new_session=True,
            )
        agent = AgentProcess(process, log_file)
        self._agents.append(agent)
        if wait:
            agent.says("agent ready")
        return agent

    def close(self) -> None:
        for agent in self._agents:
            agent.end()
        self.queue.store.close()  # type: ignore[attr-defined]

    # --- what handlers wrote

    def history(self, task_id: str | None = None, event: str | None = None) -> list[Entry]:
        """The lines so far, of one task and one event if these are given."""
        entries = [Entry(**json.loads(line)) for line in self._history_file.read_text().splitlines()]
        return [each for each in entries if task_id in {None, each.task_id} and event in {None, each.event}]

    def lines(self) -> int:
        """How many lines there are; cheaper than to read them."""
        return self._history_file.read_bytes().count(b"\n")

    def wrote(self, event: str, task_id: str, *, agent: str | None = None, count: int = 1) -> Entry:
        """Wait for the ``count``-th such line and return it."""

        def look() -> Entry | None:
            found = [each for each in self.history(task_id, event) if agent in {None, each.agent}]
            return found[count - 1] if len(found) >= count else None

        return eventually(look, lambda: f"{event!r} of {task_id} by agent {agent or 'any'}\n{self._logs()}")

    def open_gate(self, name: str) -> None:
        """Let the handlers that wait at this gate go on."""
        (self.folder / f"gate-{name}").touch()

    # --- what the table says

    def ended(self, task_id: str) -> Task:
        """Wait until a task has ended, and return it."""
        return self.reaches(task_id, lambda task: task.status.is_final, "ended")

    def reaches(self, task_id: str, is_there: Callable[[Task], bool], what: str) -> Task:
        """Wait until a task is as wanted, and return it."""

        def look() -> Task | None:
            task = self.queue.get(task_id)
            return task if is_there(task) else None

        return eventually(look, lambda: f"{task_id} {what}; it is {self.queue.get(task_id)}\n{self._logs()}")

    def all_ended(self, task_ids: Collection[str]) -> dict[str, Task]:
        """Wait until all have ended."""
        return {task_id: self.ended(task_id) for task_id in task_ids}

    def enqueue(self, task_type: str, count: int = 1, payload: Mapping[str, Any] | None = None, **options: Any) -> list[str]:
        """Enqueue some tasks of a type and return their ids."""
        return [self.queue.enqueue(payload, task_type=task_type, **options).task_id for _ in range(count)]

    def _logs(self) -> str:
        return "\n".join(f"--- {agent.pid}\n{agent.log[-3000:]}" for agent in self._agents)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


@contextmanager
def scene_at(endpoint: str, table: str, folder: Path) -> Iterator[Scene]:
    """A scene whose agents are ended with it, whatever the test did to them."""
    with Scene(endpoint, table, folder) as scene:
        yield scene


def is_running(task: Task) -> bool:
    return task.status is Status.RUNNING
