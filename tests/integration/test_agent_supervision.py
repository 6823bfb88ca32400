"""What supervisors see of an agent: health over HTTP, metrics, and systemd's protocol."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.plan import Gate, Hang, Rule
from tests.faults.proxy import FaultProxy
from tests.integration.agents import PATIENCE, ROOT, AgentProcess, Scene, eventually

pytestmark = pytest.mark.processes

UNIT = ROOT / "examples" / "systemd" / "thunderagent@.service"


def get(agent: AgentProcess, path: str) -> tuple[int, str]:
    """Status and text of one of the agent's pages."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{agent.port}{path}", timeout=PATIENCE) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket at which systemd would listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(PATIENCE)
        yield listening


def test_health_fails_while_the_loop_does_not_turn_and_readiness_does_not(scene: Scene, proxy: FaultProxy) -> None:
    """A poll that hangs for longer than the stall time stands in for a loop that is stuck."""
    agent = scene.agent("A", endpoint=proxy.endpoint, port=0, host="127.0.0.1", stall=2)
    eventually(lambda: get(agent, "/healthz") == (200, "ok\n"), "health")
    gate = Gate()
    proxy.script(Rule("Query", Hang(gate)))

    eventually(lambda: get(agent, "/healthz")[0] == 503, "the failure of health")
    assert "loop has not turned for" in get(agent, "/healthz")[1]
    assert get(agent, "/readyz") == (200, "ok\n")

    proxy.script()
    gate.release()
    eventually(lambda: get(agent, "/healthz")[0] == 200, "health again")


def test_metrics_count_what_the_agent_has_done(scene: Scene) -> None:
    agent = scene.agent("A", port=0, host="127.0.0.1", pool="reports")
    for task_id in scene.enqueue("plain", 3):
        scene.ended(task_id)

    eventually(
        lambda: 'thunderagent_tasks_total{namespace="",outcome="success",pool="reports"} 3.0' in get(agent, "/metrics")[1],
        "the count",
    )
    text = get(agent, "/metrics")[1]
    assert 'thunderagent_slots{namespace="",pool="reports"}' in text
    assert 'thunderagent_dynamodb_calls_total{namespace="",operation="UpdateItem",pool="reports",result="ok"}' in text
    assert "task_id" not in text
    assert get(agent, "/nothing")[0] == 404


def test_a_taken_port_ends_the_agent_with_a_clear_line(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        agent = scene.agent("A", port=port, host="127.0.0.1", wait=False)

        assert agent.exit_code() == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in agent.log
    assert "Traceback" not in agent.log


def test_systemd_is_told_of_start_life_and_stop_even_without_a_table(
    scene: Scene, proxy: FaultProxy, supervisor: socket.socket
) -> None:
    with proxy.refusing():
        agent = scene.agent(
            "A",
            endpoint=proxy.endpoint,
            environ={"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "200000"},
            wait=False,
        )
        said = [supervisor.recv(100)]
        while said.count(b"WATCHDOG=1") < 3 or b"READY=1" not in said:
            said.append(supervisor.recv(100))
        agent.send(signal.SIGTERM)
        while b"STOPPING=1" not in said:
            said.append(supervisor.recv(100))
        assert agent.exit_code() == 0

    assert set(said) == {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"}


def test_systemd_finds_no_fault_in_the_example_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        _skip_or_fail("systemd-analyze is not installed (Debian: the package systemd)")
    unit = tmp_path / UNIT.name
    # The program of the unit is not on this machine; everything else is verified as it stands.
    unit.write_text(UNIT.read_text().replace("/opt/thunderagent/venv/bin/thunderagent", "/bin/true"))

    done = subprocess.run(
        [str(verify), "verify", "--man=no", str(tmp_path / "thunderagent@reports.service")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, [line for line in done.stderr.splitlines() if "thunderagent@" in line]) == (0, [])


def test_the_example_unit_gives_a_drain_its_time() -> None:
    settings = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#"))

    assert (settings["Type"], settings["KillMode"], settings["Restart"]) == ("notify", "mixed", "always")
    assert int(settings["TimeoutStopSec"]) > 600
    assert int(settings["WatchdogSec"]) > 0


def _skip_or_fail(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
