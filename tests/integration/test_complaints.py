"""What users of similar systems complained about, one test a complaint: the first table of COMPLAINTS.md, in its order.

Each is named by where the complaint stands. A complaint whose behaviour is shown elsewhere names that test, which must exist.
"""

from __future__ import annotations

import importlib
import signal
import time
from pathlib import Path

import pytest

from tests.faults.plan import DelayReply, Gate, Rule
from tests.faults.proxy import FaultProxy
from tests.integration import calls
from tests.integration.agents import Scene, eventually, is_running
from thunderagent import AgentSettings, RunningTask, Status, transitions
from thunderagent.store import Store
from thunderagent.task import Outcome, OutcomeKind
from thunderagent.testing import Harness
from thunderagent.transitions import Lease, Transition

pytestmark = pytest.mark.processes

PROCESSES = "tests.integration.test_agent_processes"
NETWORK = "tests.integration.test_agent_network"


@pytest.mark.parametrize(
    ("module", "test"),
    [
        pytest.param(
            PROCESSES,
            "test_a_handler_that_holds_the_interpreter_for_longer_than_its_lease_runs_once",
            id="dramatiq#692: a native call stops heartbeats",
        ),
        pytest.param(
            NETWORK,
            "test_a_call_that_fails_costs_no_task_anything",
            id="dynamolock#280, aws-sdk-java#2667: a lost reply is taken for a lost lock",
        ),
        pytest.param(
            PROCESSES,
            "test_a_paused_agent_that_comes_back_changes_nothing",
            id="amazon-dynamodb-lock-client#1: a paused holder resumes and writes",
        ),
        pytest.param(
            PROCESSES,
            "test_a_task_of_a_killed_agent_runs_again_and_its_old_process_is_gone",
            id="river#682: a task of a dead pod stays running for an hour",
        ),
        pytest.param(
            PROCESSES,
            "test_a_handler_that_ends_its_process_uses_its_retries_and_no_more",
            id="faktory#118: a task that kills its process comes back for ever",
        ),
        pytest.param(
            PROCESSES,
            "test_a_task_whose_agents_are_killed_each_time_ends_with_an_error_that_says_so",
            id="OasisPlatform#975: a task that kills its agent comes back for ever",
        ),
        pytest.param(
            PROCESSES,
            "test_a_stop_under_load_loses_nothing_and_charges_nothing",
            id="celery#10180: a warm stop keeps what was prefetched",
        ),
        pytest.param(
            NETWORK,
            "test_an_agent_that_starts_without_a_table_waits_for_it_and_says_so_once",
            id="PyQS#15, kombu#1143: one network failure ends the reader",
        ),
    ],
)
def test_a_complaint_that_is_answered_elsewhere(module: str, test: str) -> None:
    assert callable(getattr(importlib.import_module(module), test))


# --- celery#5935, kombu#337: a long or far-scheduled task is delivered again and again -----------------------------------


def test_celery_5935_a_task_longer_than_many_leases_is_run_once(scene: Scene) -> None:
    for name in "AB":
        scene.agent(name, lease=2, expired_look=0.3)
    scene.queue.enqueue({"gate": "x"}, task_id="t", task_type="hold")
    scene.wrote("start", "t")
    taken = scene.queue.get("t")
    lease_end = taken.lock_time or 0
    eventually(lambda: scene.queue.store.now() > lease_end + 3, "two leases' time")

    assert scene.queue.get("t").lock_token == taken.lock_token
    scene.open_gate("x")
    assert scene.ended("t").retry_count == 0
    assert len(scene.history("t", "start")) == 1


def test_kombu_337_a_task_scheduled_far_ahead_holds_no_lease() -> None:
    harness = Harness(lambda task: None)
    task = harness.queue.enqueue({}, task_id="t", delay=30 * 86400)
    harness.run_for(3600)

    assert harness.queue.get("t") == task
    assert task.lock_owner is None


# --- dynamodb-lock-client#21: a heartbeat races a release and revives the lock --------------------------------------------


def test_dynamodb_lock_client_21_the_end_of_a_run_waits_for_a_renewal_that_is_under_way(
    scene: Scene, proxy: FaultProxy
) -> None:
    scene.agent("A", endpoint=proxy.endpoint)
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    renewal = Gate()
    proxy.script(Rule("UpdateItem", DelayReply(renewal), at={1}, where=calls.is_renewal_of("t")))
    renewal.wait_for_call()
    scene.open_gate("A")
    scene.wrote("end", "t")

    assert is_running(scene.queue.get("t"))
    renewal.release()
    assert scene.ended("t").lock_token is None
    writes = [call.body for call in proxy.calls if call.operation == "UpdateItem" and calls.task_id(call.body) == "t"]
    assert sum(calls.is_outcome_of("t")(body) for body in writes) == 1


# --- river#1302: the rescuer overwrites a task that had just completed -----------------------------------------------------


@pytest.mark.parametrize("write", ["take over", "bury"])
def test_river_1302_a_task_that_has_just_completed_is_neither_taken_over_nor_buried(any_scene: Scene, write: str) -> None:
    store = any_scene.queue.store
    lease = expired_lease(store, any_scene)
    rescue = take_over_or_bury(write, lease, store.now())
    completed = transitions.complete(lease, Outcome(OutcomeKind.SUCCESS, {"x": 1}), now=store.now(), expires_at=10**10)
    assert store.apply(completed).ok

    assert not store.apply(rescue).ok
    task = any_scene.queue.get("t")
    assert (task.status, task.result, task.retry_count) == (Status.SUCCESS, {"x": 1}, 0)


def expired_lease(store: Store, scene: Scene) -> Lease:
    """A lease on a task that ended at once."""
    task = scene.queue.enqueue({}, task_id="t")
    now = store.now()
    applied = store.apply(transitions.claim(task, now=now, lease_end=now, owner="a", token="T"), want_task=True)
    assert applied.task is not None
    return Lease(applied.task, "T", "a", now, (now,))


def take_over_or_bury(write: str, lease: Lease, now: int) -> Transition:
    if write == "bury":
        return transitions.bury(lease.task, now=now, expires_at=10**10)
    return transitions.take_over(lease.task, now=now, lease_end=now + 300, owner="b", token="T2")


# --- procrastinate#1408: what retries stalled tasks stalls itself ------------------------------------------------------------


def test_procrastinate_1408_any_agent_that_is_left_recovers_a_lost_task(scene: Scene) -> None:
    agents = {name: scene.agent(name) for name in "ABC"}
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    holder = scene.wrote("start", "t").agent
    survivor, other = sorted(agents.keys() - {holder})
    scene.open_gate(survivor)
    for name in (holder, other):
        agents[name].send(signal.SIGKILL)

    task = scene.ended("t")

    assert (task.result["agent"], task.retry_count) == (survivor, 1)


# --- vapor/queues-redis#15, pg-boss#756: delayed tasks at the head hide ready ones -------------------------------------------


def test_queues_redis_15_a_ready_task_behind_a_thousand_delayed_ones_is_found() -> None:
    ran: list[str] = []
    harness = Harness(lambda task: ran.append(task.task_id))
    for number in range(1000):
        harness.queue.enqueue({}, task_id=f"later-{number}", delay=86400)
    harness.clock.advance(1)
    harness.queue.enqueue({}, task_id="ready")
    for number in range(1000):
        harness.clock.advance(0.01)
        harness.queue.enqueue({}, task_id=f"later still-{number}", delay=86400)
    harness.run_for(120)

    assert ran == ["ready"]


# --- drs-tools#26: writing the status fails, since the error text passes the item limit --------------------------------------


def test_drs_tools_26_a_huge_error_on_a_task_that_fills_its_item_is_cut_and_the_task_ends(scene: Scene) -> None:
    scene.agent("A")
    payload = {"kind": "huge text", "filler": "x" * 392_000}
    scene.queue.enqueue(payload, task_id="t", task_type="raises", max_retry=2)

    task = scene.ended("t")

    assert (task.status, task.retry_count) == (Status.FAILED, 2)
    assert str(task.error).startswith("ValueError: xxx")
    assert len(task.history) == 3


# --- bullmq#2464, machinery#525: a parent waits for ever ---------------------------------------------------------------------


def fail(task: RunningTask) -> None:
    if task.task_id == "failing":
        raise ValueError("boom")


@pytest.mark.parametrize(
    ("needs", "error"),
    [
        pytest.param("failing", "DependencyFailed: The dependency failing failed: ValueError: boom", id="of one that fails"),
        pytest.param("gone", "DependencyMissing: The dependency gone is not in the table.", id="of one that is gone"),
        pytest.param("waits too", "DependencyTimeout: Waited", id="of one that waits for it in turn"),
    ],
)
def test_bullmq_2464_a_task_whose_dependency_does_not_come_ends(needs: str, error: str) -> None:
    harness = Harness(fail, settings=AgentSettings(dependency_missing=60, dependency_timeout=300))
    harness.queue.enqueue({}, task_id="failing", max_retry=0)
    harness.queue.enqueue({}, task_id="t", depends_on=needs, check_dependencies=False)
    harness.queue.enqueue({}, task_id="waits too", depends_on="t")
    harness.run_until_idle()

    task = harness.queue.get("t")
    assert task.status is Status.FAILED
    assert str(task.error).startswith(error)
    assert harness.queue.get("waits too").status is Status.FAILED


# --- payload#16318: every agent retries at the same moment -------------------------------------------------------------------


def test_payload_16318_tasks_that_failed_together_are_retried_apart() -> None:
    began: dict[str, list[float]] = {}

    def failing(task: RunningTask) -> None:
        began.setdefault(task.task_id, []).append(harness.clock.now())
        raise ValueError

    settings = AgentSettings(retry_base=60, retry_cap=600, batch=100, processes=40, wait_quiet=1, wait_idle=1)
    harness = Harness(failing, settings=settings)
    for number in range(40):
        harness.queue.enqueue({}, task_id=str(number), max_retry=1)
    harness.run_until_idle()

    second = sorted(runs[1] for runs in began.values())
    assert second[-1] - second[0] > 30
    assert len({round(each) for each in second}) > 20


# --- MailFathom#1989: a machine with a fast clock steals leases --------------------------------------------------------------


FAST = """
import time
_real = time.time
time.time = lambda: _real() + 3600
"""


def test_mailfathom_1989_a_machine_whose_clock_is_an_hour_fast_takes_nothing_over(scene: Scene) -> None:
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    scene.agent("A")
    scene.wrote("start", "t")
    token = scene.queue.get("t").lock_token
    (scene.folder / "sitecustomize.py").write_text(FAST)
    fast = scene.agent(
        "B",
        expired_look=0.1,
        environ={"PYTHONPATH": f"{scene.folder}:{Path(__file__).parents[2]}"},
    )
    (seen,) = scene.enqueue("plain", delay=2)

    result = scene.ended(seen).result
    assert result["agent"] == "B"
    assert result["clock"] > time.time() + 3000
    assert scene.queue.get("t").lock_token == token
    assert fast.running


# --- boto3#665: float payloads raise TypeError or Inexact --------------------------------------------------------------------


def test_boto3_665_floats_come_back_as_they_went_in(any_scene: Scene) -> None:
    payload = {"x": 0.1, "y": 1e-200, "z": [1 / 3, 1e300], "inf": float("inf")}
    any_scene.queue.enqueue(payload, task_id="t")

    assert any_scene.queue.get("t").payload == payload
