"""The declarations themselves, and what the operator serves after cycles against a cluster in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.tell import tell
from tests.builders import NOW, Time, foreign_record
from tests.controller.world import World, spec
from tests.observability.declared import declared, differences
from tests.observability.tools import promtool
from thunderagent.agent.dependencies import Dependencies
from thunderagent.agent.events import Events
from thunderagent.agent.table import Contact, Table
from thunderagent.errors import StoreUnavailable
from thunderagent.metrics import ERRORS_KEPT, AgentMetrics, ControllerMetrics, add_process_metrics
from thunderagent.settings import AgentSettings
from thunderagent.store.memory import MemoryStore
from thunderagent.task import OutcomeKind


class Operator:
    """A world whose cycles are told to metrics, as the operator's process does."""

    def __init__(self) -> None:
        self.world = World()
        self.registry = CollectorRegistry()
        self.metrics = ControllerMetrics(self.registry)

    def cycle(self) -> None:
        resource = self.world.cluster.pool_object()
        tell(self.metrics, resource, self.world.cycle(), 0.1, wall=self.world.clock.now)

    def value(self, name: str, **labels: str) -> float | None:
        """Of a series of the pool; None where there is no such series."""
        return self.registry.get_sample_value(f"thunderagent_pool_{name}", {"namespace": "team", "pool": "reports", **labels})


@pytest.fixture
def operator() -> Operator:
    return Operator()


def test_names_have_the_prefix_and_every_metric_a_sentence_that_explains_it() -> None:
    ours = {name: about for name, about in declared().items() if not name.startswith(("process_", "python_"))}
    assert all(name.startswith("thunderagent_") for name in ours)
    assert all(about.text.endswith(".") and len(about.text) > 12 for about in ours.values())
    assert not {label for about in ours.values() for label in about.labels} & {"task_id", "pod", "owner"}


def test_every_outcome_of_a_run_begins_at_zero() -> None:
    registry = CollectorRegistry()
    AgentMetrics(registry, "team.reports")
    for kind in OutcomeKind:
        labels = {"namespace": "team", "pool": "reports", "outcome": str(kind)}
        assert registry.get_sample_value("thunderagent_tasks_total", labels) == 0


def test_a_pool_without_a_namespace_keeps_its_whole_name() -> None:
    registry = CollectorRegistry()
    AgentMetrics(registry, "crew").slots.set(4)
    assert registry.get_sample_value("thunderagent_slots", {"namespace": "", "pool": "crew"}) == 4


def test_errors_that_users_name_cannot_make_any_number_of_series() -> None:
    registry = CollectorRegistry()
    metrics = AgentMetrics(registry, "crew")
    for number in range(ERRORS_KEPT + 50):
        metrics.error(f"type {number}", "ValueError", "failed")
    errors = {"namespace": "", "pool": "crew", "outcome": "failed"}
    other = registry.get_sample_value("thunderagent_task_errors_total", {**errors, "task_type": "other", "error": "other"})
    first = registry.get_sample_value(
        "thunderagent_task_errors_total", {**errors, "task_type": "type 0", "error": "ValueError"}
    )
    assert (first, other) == (1, 50)


def test_what_the_operator_serves_is_as_declared(operator: Operator) -> None:
    operator.world.cluster.create_pool(spec())
    operator.world.enqueue(3)
    for _ in range(3):
        operator.cycle()
    add_process_metrics(operator.registry)
    assert differences(generate_latest(operator.registry).decode()) == []


def test_promtool_finds_no_fault_with_names_units_and_helps(operator: Operator) -> None:
    AgentMetrics(agent := CollectorRegistry(), "team.reports").build.info({"version": "1"})
    operator.world.cluster.create_pool(spec())
    operator.cycle()
    for registry in (agent, operator.registry):
        add_process_metrics(registry)
        assert promtool("check", "metrics", stdin=generate_latest(registry).decode()) == ""


def test_a_scale_up_is_told_in_numbers(operator: Operator) -> None:
    operator.world.cluster.create_pool(spec(maxReplicas=10))
    operator.world.enqueue(3)
    for _ in range(3):
        operator.cycle()
    told = {name: operator.value(name) for name in ("ready_tasks", "wanted_replicas", "desired_replicas", "max_replicas")}
    assert told == {"ready_tasks": 3, "wanted_replicas": 3, "desired_replicas": 3, "max_replicas": 10}
    assert operator.value("replicas", state="available") == 3
    assert operator.value("scalings_total", direction="up", result="ok") == 1
    assert operator.value("condition", type="Ready") == 1
    assert operator.value("reads_total", result="ok") == 3


def test_a_reading_that_fails_counts_by_its_reason_and_leaves_the_last_numbers(operator: Operator) -> None:
    operator.world.cluster.create_pool(spec())
    operator.world.enqueue(2)
    operator.cycle()
    read_at = operator.value("last_read_timestamp_seconds")
    assert read_at == NOW
    operator.world.table.error = StoreUnavailable("no route")
    operator.cycle()
    assert operator.value("reads_total", result="TableUnreachable") == 1
    assert operator.value("ready_tasks") == 2
    assert operator.value("last_read_timestamp_seconds") == read_at
    assert operator.value("condition", type="Ready") == 0


def test_a_pool_that_may_not_name_its_table_is_not_counted_as_a_reading_that_failed(operator: Operator) -> None:
    pool = spec()
    pool["queue"]["endpoint"] = "http://169.254.169.254/"
    operator.world.cluster.create_pool(pool)
    operator.cycle()
    results = [key for key in operator.metrics.reads._metrics if key[:2] == ("team", "reports")]
    assert results == [("team", "reports", "ok")]
    assert operator.value("reads_total", result="ok") == 0


def test_a_pool_that_is_made_again_begins_at_zero_again(operator: Operator) -> None:
    operator.world.cluster.create_pool(spec())
    operator.cycle()
    operator.metrics.forget("team", "reports")
    assert operator.value("reads_total", result="ok") is None
    operator.metrics.begin(("team", "reports"))
    assert operator.value("reads_total", result="ok") == 0


def test_of_agents_that_give_up_the_same_task_in_the_same_second_one_counts_it() -> None:
    clock = Time()
    store = MemoryStore(clock)
    store.put_record(foreign_record("gone", status="FAILED", error={"type": "Fail", "message": "no", "at": NOW}))
    waits = {"payload": {"dependsOn": "gone"}, "lockTime": NOW - 1, "waitingFor": ["gone"]}
    store.put_record(foreign_record("waits", **waits))
    (waiting,) = store.get_many(["waits"]).found.values()

    async def inline(function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    counts = []
    for name in ("A", "B"):
        metrics = AgentMetrics(CollectorRegistry(), "crew")
        events = Events(metrics, f"crew/{name}/1", clock)
        table = Table(store, store, inline, inline, Contact(clock, 60.0))
        agent = Dependencies(AgentSettings(), table, events, lambda: None, lambda task: None)
        asyncio.run(agent.look([waiting], room=1, takes=lambda task: True, now=NOW))
        counts.append(_looks(metrics)["abandoned"])
    assert store.records()["waits"]["status"] == "FAILED"
    assert counts == [1, 0]


def _looks(metrics: AgentMetrics) -> dict[str, float]:
    return {labels["result"]: value for labels, value in metrics.samples("thunderagent_dependency_looks_total")}
