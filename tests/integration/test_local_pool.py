"""A pool on one machine, as ``thunderagent pool run`` runs it: real agents whose handlers write down what happened to them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.proxy import FaultProxy
from tests.integration.agents import HANDLERS, LEASE, PATIENCE, ROOT, SHORT, Scene, eventually, is_alive, is_running
from thunderagent import Status
from thunderagent.local.pool import LocalPool, PoolView
from thunderagent.pool.parse import parse_pool

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]

LONG = 90.0
"""Seconds of patience where several agents have to start one after the other."""


def pool_file(scene: Scene, **changes: Any) -> dict[str, Any]:
    """A pool as its file holds it: two tasks for an agent, quick agents and no waiting before it shrinks."""
    settings = SHORT | {"lease": changes.get("lease", 120)}
    quick = {f"THUNDERAGENT_{name.upper()}": str(value) for name, value in settings.items()}
    return {
        "apiVersion": "thunderagent.dev/v1alpha1",
        "kind": "ThunderAgentPool",
        "metadata": {"name": "crew", "annotations": changes.get("annotations", {})},
        "spec": {
            "queue": {"table": scene.settings.table, "endpoint": changes.get("endpoint", scene.endpoint)},
            "scaling": {
                "maxReplicas": 3,
                "tasksPerReplica": 2,
                "pollSeconds": 1,
                "cooldownSeconds": 0,
                "scaleDown": {"stabilizationWindowSeconds": 0},
            },
            "agent": {
                "handler": changes.get("handler", HANDLERS),
                "slots": {"processes": 2},
                "env": [{"name": name, "value": value} for name, value in quick.items()],
            },
        },
    }


class PoolProcess:
    """One ``thunderagent pool run``."""

    def __init__(self, scene: Scene, **changes: Any) -> None:
        file, self._log_file = scene.folder / "pool.json", scene.folder / "pool.log"
        file.write_text(json.dumps(pool_file(scene, **changes)))
        with self._log_file.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "thunderagent", "pool", "run", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=scene.folder,
                env=os.environ | {"PYTHONPATH": str(ROOT), "THUNDERAGENT_TEST_FOLDER": str(scene.folder)},
            )
        self.seen: set[int] = set()

    @property
    def log(self) -> str:
        return self._log_file.read_text(errors="replace")

    @property
    def decisions(self) -> list[str]:
        """The lines about the pool's size, in order."""
        return [line for line in self.log.splitlines() if " pool pool=crew " in line]

    def agents(self) -> set[int]:
        """The process ids of the agents that are there."""
        found = {pid for pid in _children(self._process.pid) if b"agent\0run" in _command(pid)}
        self.seen |= found
        return found

    def has(self, count: int) -> set[int]:
        """Wait until there are so many agents, and return them."""

        def look() -> set[int] | None:
            found = self.agents()
            return found if len(found) == count else None

        return eventually(look, lambda: f"{count} agents; there are {len(self.agents())}\n{self.log[-3000:]}", LONG)

    def is_empty(self) -> None:
        """Wait until there is no agent."""
        eventually(lambda: not self.agents(), lambda: f"no agent\n{self.log[-3000:]}", LONG)

    def says(self, text: str, count: int = 1) -> None:
        eventually(lambda: self.log.count(text) >= count, lambda: f"{text!r} {count} times\n{self.log[-3000:]}", LONG)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def exit_code(self) -> int:
        return self._process.wait(LONG)

    def end(self) -> None:
        """Kill what is left."""
        self.agents()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)
        for pid in self.seen:
            if is_alive(pid) and b"agent\0run" in _command(pid):
                os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> set[int]:
    try:
        tasks = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return {int(child) for text in tasks for child in text.split()}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


class Pools:
    """Starts pools on a scene, and ends them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._started: list[PoolProcess] = []

    def start(self, **changes: Any) -> PoolProcess:
        self._started.append(PoolProcess(self._scene, **changes))
        return self._started[-1]

    def end(self) -> None:
        for pool in self._started:
            pool.end()


@pytest.fixture
def pools(scene: Scene) -> Iterator[Pools]:
    pools = Pools(scene)
    yield pools
    pools.end()


def hold(scene: Scene, *task_ids: str, gate: str = "go") -> None:
    """Enqueue tasks that run until the gate opens."""
    for task_id in task_ids:
        scene.queue.enqueue({"gate": gate}, task_id=task_id, task_type="hold")


# --- up and down --------------------------------------------------------------------------------------------------------


def test_a_pool_goes_from_zero_to_what_is_needed_in_one_step_and_back_without_interrupting_a_task(
    scene: Scene, pools: Pools
) -> None:
    early, late = [f"early-{number}" for number in range(4)], "late"
    hold(scene, *early)
    hold(scene, late, gate="later")
    pool = pools.start()
    started = pool.has(3)
    pool.says(" pool pool=crew ")
    assert "replicas=3 why='From 0 to 3: 5 ready ask for 3.'" in pool.decisions[0]
    for task_id in (*early, late):
        scene.wrote("start", task_id)

    scene.open_gate("go")
    scene.all_ended(early)
    kept = pool.has(1)

    assert kept < started
    assert {int(scene.queue.get(late).lock_owner.split("/")[2].split("-")[0])} == kept  # type: ignore[union-attr]
    scene.open_gate("later")
    assert scene.ended(late).status is Status.SUCCESS
    pool.is_empty()
    for task_id in (*early, late):
        task = scene.queue.get(task_id)
        assert [each.event for each in scene.history(task_id)] == ["start", "end"]
        assert (task.retry_count, task.release_count) == (0, 0)


def test_an_agent_that_is_killed_is_replaced_and_its_task_runs_again(scene: Scene, pools: Pools) -> None:
    hold(scene, "t")
    pool = pools.start(lease=LEASE)
    (killed,) = pool.has(1)
    scene.wrote("start", "t")

    os.kill(killed, signal.SIGKILL)
    pool.says("an agent ended by itself pool=crew")
    scene.wrote("start", "t", count=2)
    (other,) = pool.has(1)
    scene.open_gate("go")

    task = scene.ended("t")
    assert other != killed
    assert (task.status, task.retry_count) == (Status.SUCCESS, 1)
    assert f"pid={killed} exit_code=-9 was_ready=True" in pool.log


# --- the end ------------------------------------------------------------------------------------------------------------


def test_ctrl_c_lets_running_tasks_finish_and_starts_no_others(scene: Scene, pools: Pools) -> None:
    hold(scene, "running")
    pool = pools.start()
    scene.wrote("start", "running")
    pool.send(signal.SIGINT)
    pool.says("draining owner=crew/")
    hold(scene, "next")
    scene.open_gate("go")
    assert pool.exit_code() == 0
    assert scene.queue.get("running").status is Status.SUCCESS
    assert scene.queue.get("next").status is Status.PENDING
    assert not any(is_alive(pid) for pid in pool.seen)


def test_a_second_ctrl_c_stops_the_tasks_and_gives_them_back_uncharged(scene: Scene, pools: Pools) -> None:
    hold(scene, "t")
    pool = pools.start()
    scene.wrote("start", "t")
    pool.send(signal.SIGINT)
    pool.says("draining owner=crew/")
    pool.send(signal.SIGINT)
    assert pool.exit_code() == 0
    task = scene.queue.get("t")
    assert (task.status, task.retry_count, task.release_count) == (Status.PENDING, 0, 1)
    assert [each.event for each in scene.history("t")] == ["start", "stopped"]


def test_the_agents_of_a_killed_pool_finish_what_they_run_and_end(scene: Scene, pools: Pools) -> None:
    hold(scene, "t")
    pool = pools.start()
    (agent,) = pool.has(1)
    scene.wrote("start", "t")
    pool.send(signal.SIGKILL)
    pool.exit_code()
    pool.says("draining owner=crew/")
    assert is_running(scene.queue.get("t"))
    scene.open_gate("go")
    assert scene.ended("t").status is Status.SUCCESS
    eventually(lambda: not is_alive(agent), "the end of the agent")


# --- what is wrong, and what is wanted so --------------------------------------------------------------------------------


def test_a_table_that_cannot_be_reached_changes_no_replicas(scene: Scene, pools: Pools, proxy: FaultProxy) -> None:
    hold(scene, "one", "two", "three")
    pool = pools.start(endpoint=proxy.endpoint)
    agents = pool.has(2)
    for task_id in ("one", "two", "three"):
        scene.wrote("start", task_id)
    with proxy.refusing():
        pool.says("the backlog could not be read (StoreUnavailable, once")
        scene.open_gate("go")
        for task_id in ("one", "two", "three"):
            scene.wrote("end", task_id)  # no work is left that the pool could know of
        assert pool.agents() == agents
    assert {task.status for task in scene.all_ended(["one", "two", "three"]).values()} == {Status.SUCCESS}
    pool.is_empty()
    assert "Stays at 2: the backlog could not be read" in pool.log


@pytest.mark.parametrize(
    ("annotations", "sentence", "agents"),
    [
        pytest.param({"paused": "true"}, "Stays at 0: 3 ready ask for 2; scaling is paused.", 0, id="paused: stays at zero"),
        pytest.param({"paused-out": "true"}, "Stays at 0: 3 ready ask for 2; scaling out is paused.", 0, id="no growing"),
        pytest.param({"paused-at-replicas": "1"}, "From 0 to 1: 3 ready ask for 2; paused at 1 replicas.", 1, id="held at one"),
    ],
)
def test_a_pause_annotation_holds_the_pool(
    scene: Scene, pools: Pools, annotations: dict[str, str], sentence: str, agents: int
) -> None:
    hold(scene, "one", "two", "three")
    pool = pools.start(annotations={f"thunderagent.dev/{name}": value for name, value in annotations.items()})
    pool.says(sentence)
    if agents:
        eventually(lambda: scene.history(event="start"), "a task that is started")
    assert len(pool.agents()) == agents
    pool.send(signal.SIGTERM)
    scene.open_gate("go")
    assert pool.exit_code() == 0


class Latest(random.Random):
    """Every jittered wait is as long as it may become."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_agents_that_cannot_start_are_told_and_tried_again_ever_later(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    hold(scene, "t")
    views: list[PoolView] = []

    def on_cycle(view: PoolView) -> None:
        views.append(view)
        if view.failures == 2:
            local.stop()

    pool = parse_pool(pool_file(scene, handler="tests.integration.nothing:here"))
    with (scene.folder / "agents.log").open("wb") as log, caplog.at_level(logging.INFO, "thunderagent.pool"):
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        local = LocalPool(pool, scene.queue.store, environ, on_cycle=on_cycle, agent_output=log, rng=Latest(0))
        asyncio.run(local.run())

    ended = [record.__dict__["fields"] for record in caplog.records if "ended by itself" in record.getMessage()]
    assert [(each["exit_code"], each["was_ready"], each["again_in_s"]) for each in ended] == [(1, False, 2), (1, False, 4)]
    assert all(sum(view.replicas.values()) <= 1 for view in views)
    told = "error: The handler's module tests.integration.nothing cannot be imported"
    assert (scene.folder / "agents.log").read_text().count(told) == 2
    assert scene.queue.get("t").status is Status.PENDING
