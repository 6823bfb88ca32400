"""The agents of a local pool as processes: started, known to be ready, told to drain, and noticed when they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from thunderagent.agent.lifeline import ORPHANED
from thunderagent.agent.process import SUPERVISOR
from thunderagent.agent.tally import Tally, from_state
from thunderagent.scaling import Candidate, Phase, Replica, ReplicaState, deletion_cost

NOTIFY_BYTES = 65536

NO_PORT = -1
"""What an agent without /healthz and /metrics has for a port."""


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """What every agent of a pool is started with.

    ``output`` takes what the agents write to stdout and stderr; None is this process's own. ``orphaned`` is the signal that
    an agent gets when the pool's process dies without having ended it.
    """

    handler: str
    environ: Mapping[str, str]
    output: BinaryIO | None = None
    orphaned: signal.Signals = ORPHANED

    def arguments(self) -> Sequence[str]:
        return (sys.executable, "-m", "thunderagent", "agent", "run", self.handler)


class AgentReplica:
    """One agent process. It says that it is ready by systemd's protocol, as it would to a service manager."""

    def __init__(
        self,
        pool: str,
        process: asyncio.subprocess.Process,
        listener: socket.socket,
        wall: Callable[[], float],
        port: int = NO_PORT,
    ) -> None:
        self.port = port
        self.pid = process.pid
        self.owner = f"{pool}/{socket.gethostname()}/{process.pid}"
        self.started = wall()
        self.ready_since: float | None = None
        self.terminating = False
        self.tally = Tally()
        self._process = process
        self._listener = listener
        self._wall = wall
        asyncio.get_running_loop().add_reader(listener, self._on_notify)

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    @property
    def state(self) -> ReplicaState:
        if self.terminating:
            return ReplicaState.TERMINATING
        return ReplicaState.STARTING if self.ready_since is None else ReplicaState.READY

    def as_replica(self) -> Replica:
        """As scaling sees it; what it runs is found in the table."""
        return Replica(self.owner, self.state)

    def as_candidate(self, running: int) -> Candidate:
        """As a possible victim of a scale-down."""
        ready = self.ready_since is not None
        return Candidate(
            name=self.owner,
            running=running,
            cost=deletion_cost(running),  # settled by definition: nobody but the pool itself goes by it
            phase=Phase.RUNNING if ready else Phase.PENDING,
            ready=ready,
            ready_since=self.ready_since,
            created=self.started,
            uid=str(self.pid),
        )

    def drain(self) -> None:
        """SIGTERM: the agent drains. A second one hurries it."""
        self.terminating = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = await self._process.wait()
        asyncio.get_running_loop().remove_reader(self._listener)
        self._on_notify()  # what it said last
        self._listener.close()
        return code

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _on_notify(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self._heard(self._listener.recv(NOTIFY_BYTES).decode(errors="replace").splitlines())

    def _heard(self, lines: Sequence[str]) -> None:
        if "READY=1" in lines and self.ready_since is None:
            self.ready_since = self._wall()
        if "STOPPING=1" in lines:
            self.terminating = True
        for tally in filter(None, map(from_state, lines)):
            self.tally = tally


class AgentPorts:
    """Ports for the /metrics of agents, counted from ``first`` upwards. Without a first one no agent has any.

    An agent has the lowest free one, so that whoever scrapes them can be told beforehand where they will be.
    """

    def __init__(self, host: str, first: int | None) -> None:
        self._host = host
        self._first = first
        self._taken: set[int] = set()

    def take(self) -> int:
        """A port that neither an agent of the pool nor anybody else listens on now."""
        if self._first is None:
            return NO_PORT
        port = next(port for port in range(self._first, 65536) if port not in self._taken and self._is_free(port))
        self._taken.add(port)
        return port

    def give_back(self, port: int) -> None:
        self._taken.discard(port)

    def environment(self, port: int) -> dict[str, str]:
        """For the agent that has the port. Nothing, where none has one: the pool's own environment says so."""
        return {} if port == NO_PORT else {"THUNDERAGENT_HOST": self._host, "THUNDERAGENT_PORT": str(port)}

    def _is_free(self, port: int) -> bool:
        try:
            socket.create_server((self._host, port)).close()
        except OSError:
            return False
        return True


class Starter:
    """Starts agents of one pool. Each gets a socket of its own to say READY on, and a port where ``ports`` has some."""

    def __init__(self, pool: str, command: AgentCommand, wall: Callable[[], float], ports: AgentPorts) -> None:
        self._ports = ports
        self._pool = pool
        self._command = command
        self._wall = wall
        self._folder = tempfile.TemporaryDirectory(prefix="thunderagent-pool-")
        self._count = 0

    async def start(self) -> AgentReplica:
        self._count += 1
        path = Path(self._folder.name) / f"notify-{self._count}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.setblocking(False)
        listener.bind(str(path))
        port = self._ports.take()
        process = await asyncio.create_subprocess_exec(
            *self._command.arguments(),
            env=self._environment(path) | self._ports.environment(port),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._command.output,
            stderr=self._command.output,
            start_new_session=True,  # Ctrl-C in the terminal is the pool's to hear, which then drains its agents
        )
        return AgentReplica(self._pool, process, listener, self._wall, port)

    def ended(self, replica: AgentReplica) -> None:
        """The agent has ended: another one may have its port."""
        self._ports.give_back(replica.port)

    def _environment(self, notify: Path) -> dict[str, str]:
        supervisor = f"{os.getpid()}:{self._command.orphaned.name}"
        return {**self._command.environ, "NOTIFY_SOCKET": str(notify), SUPERVISOR: supervisor}

    def close(self) -> None:
        self._folder.cleanup()
