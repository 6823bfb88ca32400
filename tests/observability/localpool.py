"""A local pool that serves metrics, started as a user starts it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from tests.integration.agents import HANDLERS, PATIENCE, ROOT, SHORT, Scene, eventually

DRAIN, LAST = 5.0, 30.0
"""Seconds that a pool may take to drain its agents, and to hurry them."""

PORTS = 8
"""Ports that a pool and its agents need in a row."""


class MeasuredPool:
    """One ``thunderagent pool run --port``. ``targets``: the pool's own address and those that its agents may have."""

    def __init__(self, scene: Scene, endpoint: str, **scaling: Any) -> None:
        self.port = free_ports(PORTS)
        self.targets = [f"127.0.0.1:{self.port + number}" for number in range(PORTS)]
        self._scene = scene
        self._log_file = scene.folder / "pool.log"
        self.samples = scene.folder / "samples.jsonl"
        file = scene.folder / "pool.json"
        file.write_text(json.dumps(_pool_file(scene, endpoint, scaling)))
        surroundings = {"PYTHONPATH": str(ROOT), "THUNDERAGENT_TEST_FOLDER": str(scene.folder)}
        with self._log_file.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "thunderagent",
                    "pool",
                    "run",
                    str(file),
                    f"--port={self.port}",
                    f"--samples={self.samples}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=scene.folder,
                env=os.environ | surroundings,
            )

    @property
    def log(self) -> str:
        return self._log_file.read_text(errors="replace")

    def scrape(self, number: int = 0, accept: str = "text/plain") -> str | None:
        """The metrics of the pool, or of the agent with that number; None where nobody listens."""
        request = urllib.request.Request(f"http://{self.targets[number]}/metrics", headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                text: str = reply.read().decode()
                return text
        except OSError:
            return None

    def has_agents(self, count: int) -> None:
        """Wait until so many agents serve metrics."""
        numbers = range(1, PORTS)
        eventually(lambda: sum(self.scrape(number) is not None for number in numbers) == count, lambda: self.log[-3000:])

    def kill_agent_of(self, task_id: str) -> None:
        """Kill the agent that runs a task, at once and without a word."""
        pid = int(self._scene.wrote("start", task_id).pid)
        agent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert b"agent\0run" in Path(f"/proc/{agent}/cmdline").read_bytes()
        os.kill(agent, signal.SIGKILL)

    def end(self) -> None:
        """Drain, hurry what still holds a task, and kill what is left."""
        try:
            for patience in (DRAIN, LAST):
                if self._process.poll() is None:
                    self._process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(patience)
        finally:
            self._process.kill()
            self._process.wait()


@contextmanager
def measured_pool(scene: Scene, endpoint: str = "", **scaling: Any) -> Iterator[MeasuredPool]:
    """A pool whose agents are gone when the test is over. ``endpoint``: its way to the table, where it is not the scene's."""
    pool = MeasuredPool(scene, endpoint or scene.endpoint, **scaling)
    try:
        yield pool
    finally:
        pool.end()


_candidates = iter(range(20_000 + os.getpid() % 300 * 40, 32_000))
"""Ports that this process has not given out yet: whoever was given some may not listen on them at once."""


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on now, and that were not given out before."""
    for first, *_ in iter(lambda: list(islice(_candidates, count)), []):
        with ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first
    raise AssertionError(f"No {count} free ports in a row.")


def _pool_file(scene: Scene, endpoint: str, scaling: Mapping[str, Any]) -> dict[str, Any]:
    quick = {f"THUNDERAGENT_{name.upper()}": str(value) for name, value in SHORT.items() if name != "port"}
    return {
        "apiVersion": "thunderagent.dev/v1alpha1",
        "kind": "ThunderAgentPool",
        "metadata": {"name": "crew"},
        "spec": {
            "queue": {"table": scene.settings.table, "endpoint": endpoint},
            "scaling": {
                "maxReplicas": 2,
                "tasksPerReplica": 2,
                "pollSeconds": 1,
                "targetAgeSeconds": 10,  # a sixtieth of the default, as all times of the hurried rules are
                "cooldownSeconds": 0,
                "scaleDown": {"stabilizationWindowSeconds": 0},
                **scaling,
            },
            "agent": {
                "handler": HANDLERS,
                "slots": {"processes": 1},
                "env": [{"name": name, "value": value} for name, value in quick.items()],
            },
        },
    }
