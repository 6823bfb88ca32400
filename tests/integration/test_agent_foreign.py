"""Items and agents made by others to the published format, on one table with ours."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

from tests.integration.agents import Scene, scene_at
from tests.standins.aws import INDEX, client_for, create_task_table
from thunderagent import Status, Task
from thunderagent.values import ITEM_BYTES, record_size

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.processes

_serialize = TypeSerializer().serialize


def item(task_id: str, **changes: Any) -> dict[str, Any]:
    """An item as another program puts it: the published attributes. A change to None leaves one out."""
    now = int(time.time())
    record = {
        "taskId": task_id,
        "status": "PENDING",
        "payload": {"n": 1},
        "retryCount": 0,
        "maxRetry": 3,
        "lockTime": now - 10,
        "createdAt": now - 10,
        "updatedAt": now - 10,
    } | changes
    return {name: _serialize(value) for name, value in record.items() if value is not None}


# --- items ----------------------------------------------------------------------------------------------------------------

READY: Mapping[str, dict[str, Any]] = {
    "with the eight attributes": {},
    "without lockTime": {"lockTime": None},
    "without retryCount and maxRetry": {"retryCount": None, "maxRetry": None},
    "without payload": {"payload": None},
    "without updatedAt": {"updatedAt": None},
    "with numbers as strings": {"retryCount": "0", "maxRetry": "3", "lockTime": "5", "updatedAt": "7"},
    "with text where numbers belong": {"retryCount": "none", "maxRetry": "many", "lockTime": "soon", "updatedAt": ""},
    "with a negative retryCount": {"retryCount": -4},
    "with truth values for numbers": {"retryCount": True, "maxRetry": False, "lockTime": True},
    "with a text as payload": {"payload": "text"},
    "with a list as payload": {"payload": [1, {"a": "b"}]},
    "with binary as payload": {"payload": b"\0\xff"},
    "with dependsOn of a number": {"payload": {"dependsOn": 5}},
    "with dependsOn of nothing": {"payload": {"dependsOn": ["", 1, {}]}},
    "with a taskType that is a number": {"taskType": 7},
    "with an unknown taskType": {"taskType": "of others"},
    "with history, progress and error that are texts": {"history": "x", "progress": "y", "error": "z"},
    "with progress that looks like a stored once": {"progress": {"$once": {}}},
    "with waitingFor that is a number": {"waitingFor": 3},
    "with an owner and a token while PENDING": {"lockOwner": "me", "lockToken": "t", "lastToken": 4},
    "with attributes that nobody knows": {"color": {"deep": [1, {"s": {"a", "b"}}]}, "x" * 200: "y"},
    "with expiresAt left from before": {"expiresAt": 1},
    "with a number of 38 digits": {"payload": {"n": 10**37 + 1}},
    "made in the year 5138": {"createdAt": 10**11},
}
"""Ready tasks; each must run once."""

LOST: Mapping[str, tuple[dict[str, Any], Status]] = {
    "without lockTime": ({"lockTime": None}, Status.SUCCESS),
    "with a lease that is a string": ({"lockTime": "5"}, Status.SUCCESS),
    "with retries as strings, one left": ({"retryCount": "0", "maxRetry": "1"}, Status.SUCCESS),
    "with retries as strings, none left": ({"retryCount": "1", "maxRetry": "1"}, Status.FAILED),
    "without an owner's token": ({"lockOwner": "someone"}, Status.SUCCESS),
    "with a history that is a number": ({"history": 5}, Status.SUCCESS),
}
"""RUNNING tasks whose lease has ended: one that has a retry left runs once."""

ODD: Mapping[str, dict[str, Any]] = {
    "a status that no task has": {"status": "PAUSED"},
    "a status in small letters": {"status": "pending"},
    "a time far away": {"lockTime": 10**10},
    "a time far away, as a string": {"lockTime": str(10**10)},
}
"""What is left alone."""


class Foreign:
    """A table with all of these items, and one agent that has to cope with them."""

    def __init__(self, scene: Scene, client: DynamoDBClient) -> None:
        self.scene = scene
        table = scene.settings.table
        for name, changes in READY.items():
            client.put_item(TableName=table, Item=item(f"ready {name}", **changes))
        for name, (changes, _) in LOST.items():
            client.put_item(TableName=table, Item=item(f"lost {name}", **({"status": "RUNNING"} | changes)))
        for name, changes in ODD.items():
            client.put_item(TableName=table, Item=item(f"odd {name}", **changes))
        self.agent = scene.agent("A", processes=2, batch=30)


@pytest.fixture(scope="module")
def foreign(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    client = client_for(moto_endpoint)
    with scene_at(moto_endpoint, create_task_table(client), tmp_path_factory.mktemp("foreign")) as scene:
        yield Foreign(scene, client)
    client.close()


@pytest.mark.parametrize("name", READY)
def test_a_ready_task_of_others_runs_once(foreign: Foreign, name: str) -> None:
    task = foreign.scene.ended(f"ready {name}")

    assert task.status is Status.SUCCESS
    assert len(foreign.scene.history(task.task_id, "start")) == 1
    assert foreign.agent.running


@pytest.mark.parametrize("name", LOST)
def test_a_lost_task_of_others_runs_again_or_ends(foreign: Foreign, name: str) -> None:
    task = foreign.scene.ended(f"lost {name}")

    assert task.status is LOST[name][1]
    assert len(foreign.scene.history(task.task_id, "start")) == (task.status is Status.SUCCESS)


@pytest.mark.parametrize("name", ODD)
def test_what_is_not_ready_is_left_alone(foreign: Foreign, name: str) -> None:
    for task_id in READY:
        foreign.scene.ended(f"ready {task_id}")

    found = client_for(foreign.scene.endpoint)
    stored = found.get_item(TableName=foreign.scene.settings.table, Key={"taskId": {"S": f"odd {name}"}})["Item"]
    found.close()

    assert stored["status"]["S"] == ODD[name].get("status", "PENDING")
    assert "lockToken" not in stored
    assert foreign.scene.history(f"odd {name}") == []


def test_items_too_full_to_be_written_to_do_not_stop_the_others(
    dynalite_endpoint: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither one that no claim fits into, nor one that no outcome fits into, nor a lost one that cannot be buried."""
    client = client_for(dynalite_endpoint)
    table = create_task_table(client)
    lost = {"status": "RUNNING", "retryCount": 3}
    now = int(time.time())
    fits = ITEM_BYTES - item_size(item("claimed", payload={"x": ""}))
    for put in (
        item("full and lost", payload={"x": "x" * fits}, createdAt=now - 1000, **lost),
        item("full", payload={"x": "x" * fits}, createdAt=now - 1000),
        item("claimed", payload={"x": "x" * (fits - 200)}, createdAt=now - 1000),
        item("lost", **lost),
        item("ready"),
    ):
        client.put_item(TableName=table, Item=put)
    with scene_at(dynalite_endpoint, table, tmp_path_factory.mktemp("full")) as scene:
        agent = scene.agent("A", wait_idle=1, wait_quiet=1)

        assert scene.ended("ready").status is Status.SUCCESS
        assert scene.ended("lost").status is Status.FAILED
        agent.says("claiming the task full fails")
        agent.says("claiming the task full and lost fails")
        agent.says("no outcome can be written")
        assert len(scene.history("claimed", "start")) == 1
        scene.queue.enqueue({}, task_id="next", task_type="plain")
        assert scene.ended("next").status is Status.SUCCESS
    client.close()


def item_size(record: Mapping[str, Any]) -> int:
    """As DynamoDB counts an item."""
    return record_size({name: TypeDeserializer().deserialize(value) for name, value in record.items()})


# --- agents -----------------------------------------------------------------------------------------------------------------


class PlainLoop:
    """An agent of others: it knows eight attributes and one condition, and writes final states without any."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self.ran: list[str] = []
        self._client = client
        self._table = table
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="plain-loop")

    def __enter__(self) -> PlainLoop:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._stop.is_set():
            reply = self._client.query(
                TableName=self._table,
                IndexName=INDEX,
                KeyConditionExpression="#s = :pending",
                ExpressionAttributeNames={"#s": "status"},
                ExpressionAttributeValues={":pending": {"S": "PENDING"}},
                Limit=10,
            )
            for found in reply["Items"]:
                task_id = found["taskId"]["S"]
                if self._claimed(task_id):
                    self.ran.append(task_id)
                    self._write(task_id, "SUCCESS", int(time.time()))
            self._stop.wait(0.05)

    def _claimed(self, task_id: str) -> bool:
        now = int(time.time())
        try:
            self._write(
                task_id,
                "RUNNING",
                now + 300,
                ConditionExpression="#s = :pending AND lockTime < :now",
                extra={":pending": {"S": "PENDING"}, ":now": {"N": str(now)}},
            )
        except ClientError:
            return False
        return True

    def _write(
        self, task_id: str, status: str, lock_time: int, extra: Mapping[str, Any] | None = None, **condition: Any
    ) -> None:
        values = {":s": {"S": status}, ":l": {"N": str(lock_time)}, ":u": {"N": str(int(time.time()))}}
        self._client.update_item(
            TableName=self._table,
            Key={"taskId": {"S": task_id}},
            UpdateExpression="SET #s = :s, lockTime = :l, updatedAt = :u",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues=values | dict(extra or {}),
            **condition,
        )


def test_a_plain_loop_and_our_agent_share_a_table_and_each_task_runs_once(any_scene: Scene) -> None:
    any_scene.agent("A", processes=2)
    client = client_for(any_scene.endpoint)
    with PlainLoop(client, any_scene.settings.table) as theirs:
        ids = any_scene.enqueue("short", 40)
        ended: dict[str, Task] = any_scene.all_ended(ids)
    client.close()

    ours = [each.task_id for each in any_scene.history(event="start")]
    assert {task.status for task in ended.values()} == {Status.SUCCESS}
    assert Counter(ours + theirs.ran) == dict.fromkeys(ids, 1)
    assert ours
    assert theirs.ran
