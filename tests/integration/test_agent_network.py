"""Real agents behind a network that fails, at every call that they make: no agent ends, no task is lost, doubled or charged."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.faults.plan import (
    INTERNAL_ERROR,
    THROTTLED,
    TOKEN_EXPIRED,
    UNAVAILABLE,
    Answer,
    DelayReply,
    DropReply,
    Fault,
    Gate,
    Hang,
    Reset,
    Rule,
    WrongChecksum,
)
from tests.faults.proxy import FaultProxy
from tests.integration import calls
from tests.integration.agents import Scene, eventually, is_alive, scene_at
from tests.standins.aws import client_for, create_task_table
from thunderagent import Status

pytestmark = pytest.mark.processes

HASTY = {"THUNDERAGENT_CONNECT_TIMEOUT": "0.5", "THUNDERAGENT_READ_TIMEOUT": "0.5", "THUNDERAGENT_ATTEMPTS": "1"}
"""Time-outs under which a hanging call is given up soon, and no second try inside boto3: the agent's own tries are tested."""

INVALID = Answer("ValidationException")

FAULTS: dict[str, Callable[[], Fault]] = {
    "is reset before it arrives": Reset,
    "is carried out and its reply lost": DropReply,
    "hangs": lambda: Hang(Gate()),
    "is answered with a wrong checksum": WrongChecksum,
    "is throttled": lambda: replace(THROTTLED),
    "meets an internal error": lambda: replace(INTERNAL_ERROR),
    "meets an unavailable service": lambda: replace(UNAVAILABLE),
    "meets an expired token": lambda: replace(TOKEN_EXPIRED),
    "is denied": lambda: Answer("AccessDeniedException"),
    "is called invalid": lambda: replace(INVALID),
}


class Shared:
    """One agent behind one proxy for all rows, which it must survive."""

    def __init__(self, scene: Scene, proxy: FaultProxy) -> None:
        self.scene = scene
        self.proxy = proxy
        self.agent = scene.agent("A", endpoint=proxy.endpoint, environ=HASTY, processes=3, lease=8)
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def met(self, fault: Fault) -> None:
        """Wait until a call has met this very fault."""
        if isinstance(fault, Hang):
            fault.gate.wait_for_call()
        else:
            eventually(lambda: any(call.fault is fault for call in self.proxy.calls), lambda: self.agent.log[-3000:])


@pytest.fixture(scope="module")
def shared(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    client = client_for(moto_endpoint)
    folder = tmp_path_factory.mktemp("network")
    with FaultProxy(moto_endpoint) as proxy, scene_at(moto_endpoint, create_task_table(client), folder) as scene:
        yield Shared(scene, proxy)
    client.close()


# --- one fault at each call ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """How the task of a row ends: its runs are counted by its handler."""

    status: Status = Status.SUCCESS
    retry_count: int = 0
    runs: int = 1


class Row:
    """A call that meets the fault, on the way of one task from ready to ended."""

    operation = "UpdateItem"
    expected = Expected()
    refused: Expected | None = None
    """Where that differs when DynamoDB calls the write invalid: to repeat it would not help."""

    def __init__(self, shared: Shared, task_id: str) -> None:
        self.scene = shared.scene
        self.task_id = task_id

    def picks(self) -> calls.Picks:
        raise NotImplementedError

    def begin(self) -> None:
        self.scene.queue.enqueue({}, task_id=self.task_id, task_type="plain")

    def go_on(self) -> None:
        """Once the fault has been met."""


class Poll(Row):
    operation = "Query"

    def picks(self) -> calls.Picks:
        return calls.is_query_of("PENDING")


class Claim(Row):
    def picks(self) -> calls.Picks:
        return calls.is_claim_of(self.task_id)


class Renewal(Row):
    def picks(self) -> calls.Picks:
        return calls.is_renewal_of(self.task_id)

    def begin(self) -> None:
        self.scene.queue.enqueue({"gate": self.task_id}, task_id=self.task_id, task_type="hold")

    def go_on(self) -> None:
        self.scene.open_gate(self.task_id)


class Completion(Row):
    refused = Expected(Status.FAILED)

    def picks(self) -> calls.Picks:
        return calls.is_outcome_of(self.task_id)


class Retry(Completion):
    expected = Expected(Status.FAILED, retry_count=1, runs=2)

    def begin(self) -> None:
        self.scene.queue.enqueue({"kind": "ValueError"}, task_id=self.task_id, task_type="raises", max_retry=1)


class ExpiredLook(Row):
    operation = "Query"
    expected = Expected(retry_count=1)

    def picks(self) -> calls.Picks:
        return calls.is_query_of("RUNNING")

    def begin(self) -> None:
        self.put_expired(retry_count=0)

    def put_expired(self, retry_count: int) -> None:
        now = int(time.time())
        item: dict[str, Any] = {
            "taskId": {"S": self.task_id},
            "status": {"S": "RUNNING"},
            "payload": {"M": {}},
            "taskType": {"S": "plain"},
            "lockTime": {"N": str(now - 100)},
        }
        numbers = {"retryCount": retry_count, "maxRetry": 3, "createdAt": now - 200, "updatedAt": now - 200}
        client = client_for(self.scene.endpoint)
        client.put_item(
            TableName=self.scene.settings.table, Item=item | {name: {"N": str(value)} for name, value in numbers.items()}
        )
        client.close()


class TakeOver(ExpiredLook):
    operation = "UpdateItem"

    def picks(self) -> calls.Picks:
        return calls.is_claim_of(self.task_id)


class Bury(ExpiredLook):
    operation = "UpdateItem"
    expected = Expected(Status.FAILED, retry_count=3, runs=0)

    def picks(self) -> calls.Picks:
        return calls.is_end_of(self.task_id)

    def begin(self) -> None:
        self.put_expired(retry_count=3)


class DependencyRead(Row):
    operation = "BatchGetItem"

    @property
    def needed(self) -> str:
        return f"{self.task_id}-needed"

    def picks(self) -> calls.Picks:
        return calls.is_batch_with(self.needed)

    def begin(self) -> None:
        self.scene.queue.enqueue({"gate": self.needed}, task_id=self.needed, task_type="hold")
        self.scene.queue.enqueue({}, task_id=self.task_id, task_type="plain", depends_on=self.needed)

    def go_on(self) -> None:
        self.scene.open_gate(self.needed)


class Defer(DependencyRead):
    operation = "UpdateItem"

    def picks(self) -> calls.Picks:
        return calls.is_wait_of(self.task_id)


class Abandon(Row):
    expected = Expected(Status.FAILED, runs=0)

    def picks(self) -> calls.Picks:
        return calls.is_end_of(self.task_id)

    def begin(self) -> None:
        needed = self.scene.queue.enqueue({}, delay=3600).task_id
        self.scene.queue.cancel(needed)
        self.scene.queue.enqueue({}, task_id=self.task_id, task_type="plain", depends_on=needed)


ROWS: dict[str, type[Row]] = {
    "a poll": Poll,
    "a claim": Claim,
    "a renewal": Renewal,
    "the write of a result": Completion,
    "the write of a retry": Retry,
    "a look for expired leases": ExpiredLook,
    "a take-over": TakeOver,
    "the burial of a task": Bury,
    "a read of dependencies": DependencyRead,
    "the write of a wait": Defer,
    "the end of a task whose dependency failed": Abandon,
}


@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in FAULTS.items()])
@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in ROWS.items()])
def test_a_call_that_fails_costs_no_task_anything(
    shared: Shared, row: Callable[[Shared, str], Row], fault: Callable[[], Fault]
) -> None:
    what_fails = fault()
    scenario = row(shared, shared.fresh())
    shared.proxy.script(Rule(scenario.operation, what_fails, at={1}, where=scenario.picks()))
    scenario.begin()
    shared.met(what_fails)
    scenario.go_on()

    task = shared.scene.ended(scenario.task_id)

    expected = scenario.refused if what_fails == INVALID and scenario.refused else scenario.expected
    runs = shared.scene.history(scenario.task_id, "start")
    assert (task.status, task.retry_count, len(runs)) == (expected.status, expected.retry_count, expected.runs)
    assert task.release_count <= 1
    assert shared.agent.running
    if isinstance(what_fails, Hang):
        what_fails.gate.release()


def test_an_outcome_that_dynamodb_calls_invalid_becomes_a_short_error(shared: Shared) -> None:
    (task_id,) = shared.scene.enqueue("plain", delay=1)
    shared.proxy.script(Rule("UpdateItem", INVALID, at={1}, where=calls.is_outcome_of(task_id)))

    task = shared.scene.ended(task_id)

    assert str(task.error) == "OutcomeRefused: The item could not take: success."


def test_a_claim_whose_reply_is_lost_is_read_again_and_released_uncharged(shared: Shared) -> None:
    (task_id,) = shared.scene.enqueue("plain", delay=1)
    shared.proxy.script(Rule("UpdateItem", DropReply(), at={1}, where=calls.is_claim_of(task_id)))

    task = shared.scene.ended(task_id)

    assert (task.status, task.retry_count, task.release_count) == (Status.SUCCESS, 0, 1)
    assert [run.outcome for run in task.history] == ["released", "success"]


# --- starting and stopping without a table -----------------------------------------------------------------------------------


def test_an_agent_that_starts_without_a_table_waits_for_it_and_says_so_once(scene: Scene, proxy: FaultProxy) -> None:
    scene.queue.enqueue({}, task_id="t", task_type="plain")
    with proxy.refusing():
        agent = scene.agent("A", endpoint=proxy.endpoint, environ=HASTY, wait=False)
        agent.says("reaching the table fails")

    assert scene.ended("t").status is Status.SUCCESS
    assert agent.log.count("reaching the table fails") == 1
    assert agent.log.count("reaching the table works again") == 1


@pytest.mark.parametrize(
    "fault",
    [pytest.param(FAULTS[name], id=name) for name in ("hangs", "is carried out and its reply lost", "meets an expired token")],
)
def test_an_agent_whose_first_question_for_the_time_fails_asks_again(
    scene: Scene, proxy: FaultProxy, fault: Callable[[], Fault]
) -> None:
    proxy.script(Rule("GetItem", fault(), at={1}))

    agent = scene.agent("A", endpoint=proxy.endpoint, environ=HASTY)

    assert agent.running


# --- outages -------------------------------------------------------------------------------------------------------------


def test_an_outage_longer_than_a_lease_is_no_mass_theft(scene: Scene, proxy: FaultProxy) -> None:
    agents = [scene.agent(name, endpoint=proxy.endpoint, environ=HASTY, processes=2) for name in "AB"]
    ids = scene.enqueue("watches lease", 4)
    for task_id in ids:
        scene.wrote("start", task_id)

    with proxy.refusing():
        for task_id in ids:
            scene.wrote("lease lost", task_id)
    for task_id in ids:
        scene.wrote("lease back", task_id)
    scene.open_gate("lease")

    for task in scene.all_ended(ids).values():
        assert (task.status, task.retry_count, task.release_count) == (Status.SUCCESS, 0, 0)
        assert len(scene.history(task.task_id, "start")) == 1
    assert all(agent.running for agent in agents)


def test_a_lease_that_was_lost_in_an_outage_and_taken_is_not_fought_for(scene: Scene, proxy: FaultProxy) -> None:
    cut_off = scene.agent("A", endpoint=proxy.endpoint, environ=HASTY)
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    first = scene.wrote("start", "t")
    scene.open_gate("B")

    with proxy.refusing():
        scene.agent("B")
        task = scene.ended("t")
    cut_off.says("task is not ours any more")
    scene.wrote("stopped", "t", agent="A")

    assert (task.result["agent"], task.retry_count) == ("B", 1)
    assert scene.queue.get("t") == task
    assert cut_off.running
    assert is_alive(first.pid)


def test_a_second_signal_stops_the_handler_before_its_task_is_released(scene: Scene, proxy: FaultProxy) -> None:
    agent = scene.agent("A", endpoint=proxy.endpoint)
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    scene.wrote("start", "t")
    gate = Gate()
    proxy.script(Rule("UpdateItem", DelayReply(gate), where=calls.is_outcome_of("t")))

    agent.send(signal.SIGTERM)
    agent.says("draining")
    agent.send(signal.SIGTERM)
    gate.wait_for_call()

    assert [each.event for each in scene.history("t")] == ["start", "stopped"]
    gate.release()
    assert agent.exit_code() == 0
    assert scene.queue.get("t").status is Status.PENDING
