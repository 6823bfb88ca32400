"""Real processes are scraped, and their log lines read: an agent, and a pool on this machine with its agents."""

from __future__ import annotations

import json
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from tests.integration.agents import PATIENCE, AgentProcess, Scene, eventually
from tests.observability.declared import differences, scraped_names
from tests.observability.localpool import measured_pool

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]

MARKER = "s3cret-in-the-payload"


def scrape(agent: AgentProcess, accept: str = "text/plain") -> str:
    port = eventually(lambda: listening_port(agent), "the port")
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        text: str = reply.read().decode()
        return text


def listening_port(agent: AgentProcess) -> int | None:
    """The port, from a log of either form."""
    for line in agent.log.splitlines():
        if line.startswith("{") and (told := json.loads(line))["event"] == "listening":
            return int(told["port"])
        if " listening " in line:
            return int(line.rpartition("port=")[2])
    return None


def test_an_agent_serves_what_is_declared_and_nothing_else(scene: Scene) -> None:
    agent = scene.agent("A", port=0, host="127.0.0.1", pool="team.reports")
    scene.all_ended(scene.enqueue("plain", 3) + scene.enqueue("raises", payload={"kind": "fail"}))

    eventually(lambda: "thunderagent_task_errors_total{" in scrape(agent), "the error")
    text = scrape(agent)
    assert differences(text) == []
    assert {"thunderagent_clock_offset_seconds", "process_cpu_seconds_total", "thunderagent_build_info"} <= scraped_names(text)
    assert 'thunderagent_tasks_total{namespace="team",outcome="success",pool="reports"} 3.0' in text
    assert 'error="Fail",namespace="team",outcome="failed",pool="reports",task_type="raises"} 1.0' in text
    assert not [task_id for task_id in scene.queue.stats().backlog.running if task_id in text]


def test_who_asks_for_openmetrics_gets_it(scene: Scene) -> None:
    agent = scene.agent("A", port=0, host="127.0.0.1")
    text = scrape(agent, accept="application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    assert "thunderagent_tasks" in {family.name for family in parse_openmetrics(text)}  # type: ignore[no-untyped-call]


def test_a_pool_on_this_machine_serves_what_the_operator_does_and_its_agents_have_the_ports_after_it(scene: Scene) -> None:
    task_ids = scene.enqueue("hold", 3, {"gate": "go"})
    with measured_pool(scene) as pool:
        pool.has_agents(2)
        pool_text, agent_text = pool.scrape(), pool.scrape(1)
        assert pool_text is not None
        assert agent_text is not None
        assert differences(pool_text) == differences(agent_text) == []
        assert 'thunderagent_pool_desired_replicas{namespace="",pool="crew"} 2.0' in pool_text
        assert 'thunderagent_pool_scalings_total{direction="up",namespace="",pool="crew",result="ok"} 1.0' in pool_text
        assert 'thunderagent_pool_max_replicas{namespace="",pool="crew"} 2.0' in pool_text
        assert 'thunderagent_slots{namespace="",pool="crew"}' in agent_text
        ready = 'thunderagent_pool_condition{namespace="",pool="crew",type="Ready"} 1.0'
        eventually(lambda: ready in str(pool.scrape()), "the condition")
        scene.open_gate("go")
        scene.all_ended(task_ids)
        eventually(lambda: 'thunderagent_pool_desired_replicas{namespace="",pool="crew"} 0.0' in str(pool.scrape()), "the end")


def test_the_log_of_a_real_agent_is_json_and_tells_no_payload(scene: Scene) -> None:
    agent = scene.agent("A", port=0, host="127.0.0.1", pool="team.reports", environ={"THUNDERAGENT_LOG_FORMAT": "json"})
    secret = {"kind": "ValueError", "password": MARKER}
    (failing,) = scene.enqueue("raises", payload=secret, max_retry=1)
    (ending,) = scene.enqueue("plain", payload=secret)
    scene.all_ended([failing, ending])
    eventually(lambda: agent.log.count('"task ended"') == 1 and agent.log.count('"task failed"') == 1, lambda: agent.log)

    lines = [json.loads(line) for line in agent.log.splitlines()]
    told = [(line["event"], line["status"], line.get("retry")) for line in lines if line.get("task_id") == failing]
    assert told == [
        ("task claimed", "RUNNING", None),
        ("task goes back for a retry", "PENDING", None),
        ("task claimed", "RUNNING", 1),
        ("task failed", "FAILED", 1),
    ]
    assert MARKER not in agent.log
