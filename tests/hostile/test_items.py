"""A table is shared: any attribute may have any type and size. An odd item stops nobody, and is told by its name."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from click.testing import CliRunner
from hypothesis import Phase, given, settings

from tests.builders import NOW
from tests.hostile.inputs import SEEDED, attributes, nested, tables
from tests.standins.aws import REGION, client_for, create_task_table
from tests.unit.cli_world import World
from thunderagent import AgentSettings, Router, Status, TaskQueue
from thunderagent.cli.main import main
from thunderagent.errors import ThunderAgentError
from thunderagent.poolcycle import counts_of
from thunderagent.scaling import Replica, ScalingRules, decide, initial_state, observe
from thunderagent.settings import TableSettings
from thunderagent.store.backlog import BacklogReader
from thunderagent.store.base import task_or_none
from thunderagent.store.dynamo import DynamoStore
from thunderagent.store.layout import dispatch_layout
from thunderagent.testing.harness import Harness
from thunderagent.transitions import refile
from thunderagent.values import as_stored, plain

Item = Mapping[str, Any]

QUICK = AgentSettings(dependency_timeout=120, dependency_missing=30, wait_idle=30, wait_quiet=20, retry_cap=30)
"""Under these every wait is over within the time that a test gives an agent."""

LOOK = 700.0
GOOD = ("good-0", "good-1", "good-2")

POISONOUS: Mapping[str, Item] = {
    "a token that is deeply nested, of a lost run without retries": {
        "status": "RUNNING",
        "lockToken": nested(20),
        "retryCount": Decimal(3),
    },
    "a token that looks like a tag of ours": {"status": "RUNNING", "lockToken": {"$decimal": "sNaN"}},
    "a count of retries that is deeply nested": {"status": "RUNNING", "retryCount": nested(31)},
    "an enqueueToken that is deeply nested, of one that waits": {
        "enqueueToken": nested(20),
        "payload": {"dependsOn": ["nobody"]},
    },
    "a time that is deeply nested": {"lockTime": nested(20)},
    "a dependency with an id that no item can have": {"payload": {"dependsOn": "x" * 3000}},
    "such ids in waitingFor": {"waitingFor": ["x" * 3000, "y" * 2049]},
    "an owner as long as an item may be": {"status": "RUNNING", "lockOwner": "x" * 300_000},
    "a history of such owners": {"history": [{"owner": "x" * 50_000, "outcome": "y" * 20_000}] * 5},
    "numbers that DynamoDB cannot add to": {"retryCount": "9" * 300, "maxRetry": "9" * 301, "updatedAt": "-1e300"},
}
"""Items that each stopped an agent, or harmed their own task, before somebody thought of them."""


def handle(task: Any) -> dict[str, Any]:
    """Look at all that a handler may look at."""
    return {"told": len(repr((task.payload, task.progress, task.retry_count, task.task_type)))}


@contextmanager
def a_table_with(items: Sequence[Item]) -> Iterator[Harness]:
    """An agent, a clock and a table in memory that has these items and some good tasks."""
    router = Router()
    router.default(handle)
    harness = Harness(router, settings=QUICK, start=NOW)
    for item in items:
        harness.store.put_item(item)
    for task_id in GOOD:
        harness.queue.enqueue({"n": 1}, task_id=task_id)
    yield harness


def ended_well(queue: TaskQueue) -> list[bool]:
    return [queue.get(task_id).status is Status.SUCCESS for task_id in GOOD]


@pytest.mark.parametrize("item", [pytest.param(item, id=name) for name, item in POISONOUS.items()])
def test_an_item_that_hurt_once_ends_and_stops_nobody(item: Item) -> None:
    with a_table_with([{"taskId": "p", "status": "PENDING", "createdAt": Decimal(NOW - 500), **item}]) as harness:
        harness.run_for(LOOK)

        assert ended_well(harness.queue) == [True] * len(GOOD)
        assert harness.queue.get("p").status.is_final


@settings(SEEDED, max_examples=25)
@given(tables(8))
def test_an_agent_does_its_work_beside_any_items(items: list[Item]) -> None:
    with a_table_with(items) as harness:
        harness.run_for(LOOK)

        assert ended_well(harness.queue) == [True] * len(GOOD)


@settings(SEEDED, max_examples=40)
@given(tables(8))
def test_a_pool_is_scaled_by_what_can_be_read_of_any_items(items: list[Item]) -> None:
    with a_table_with(items) as harness:
        backlog = BacklogReader(harness.store, random.Random(0)).read(100)
        seen = observe(pool="work", counts=counts_of(backlog), replicas=[Replica("work/host/1")], desired=1)

        assert backlog.ready >= len(GOOD)
        assert decide(ScalingRules(max_replicas=10), initial_state(1, 0.0), seen, 60.0).target >= 1


@settings(SEEDED, max_examples=25)
@given(tables(8))
def test_any_items_can_be_filed_for_the_other_layout_and_an_agent_does_its_work_there(items: list[Item]) -> None:
    with a_table_with(items) as harness:
        layout = dispatch_layout(shards=2)
        harness.store.change_layout(layout)
        for task_id in harness.store.records():
            task = task_or_none(harness.store.records()[task_id])
            if task is not None and not layout.is_filed(task):
                assert harness.store.apply(refile(task)).ok
                assert layout.is_filed(harness.queue.get(task_id))
        assert BacklogReader(harness.store, random.Random(0)).read(100).ready >= len(GOOD)
        harness.run_for(LOOK)
        assert ended_well(harness.queue) == [True] * len(GOOD)


@settings(SEEDED, max_examples=10)
@given(tables(8))
def test_people_can_look_at_any_items_and_change_them_or_are_told_which_one_cannot_be(items: list[Item]) -> None:
    with a_table_with(items) as harness:
        world = World()
        world.store = harness.store
        world.used = world.store
        for command in COMMANDS:
            assert runs(world.run(*command)), command
        for item in items:
            for command in OF_ONE:
                result = world.run(*command, item["taskId"])
                assert runs(result), command
                assert result.exit_code == 0 or item["taskId"] in result.stderr


COMMANDS = (
    ("stats",),
    ("stats", "-o", "json"),
    *(("task", "list", "--status", status, "-o", form) for status in Status for form in ("table", "json")),
    ("task", "redrive", "--all-failed"),
)
OF_ONE = (
    ("task", "get"),
    ("task", "show"),
    ("task", "show", "-o", "json"),
    ("task", "cancel"),
    ("task", "redrive", "--dependents"),
)


def runs(result: Any) -> bool:
    """Whether a command has ended as commands do; World lets through whatever no command expects."""
    return result.exit_code in {0, 1, 2}


@settings(SEEDED, max_examples=200)
@given(attributes)
def test_an_attribute_that_was_read_is_compared_as_it_stands(value: Any) -> None:
    serialize, deserialize = TypeSerializer().serialize, TypeDeserializer().deserialize
    stored = deserialize(serialize(value))

    assert deserialize(serialize(as_stored(plain(stored)))) == stored


# --- in a table of a DynamoDB stand-in ----------------------------------------------------------------------------------


@settings(SEEDED, max_examples=1, phases=[Phase.generate])  # to shrink an example takes thousands of tables
@given(tables(20))
def test_the_same_in_a_table_of_dynamodb(moto_endpoint: str, items: list[Item]) -> None:
    """Reading, every command, `table check` among them, and every write that an agent makes to such an item."""
    serialize = TypeSerializer().serialize
    with closing(client_for(moto_endpoint)) as client:
        table = create_task_table(client)
        for item in [
            *items,
            *({"taskId": name, "createdAt": Decimal(NOW), "status": "PENDING", **each} for name, each in POISONOUS.items()),
        ]:
            client.put_item(TableName=table, Item={name: serialize(value) for name, value in item.items()})
    with closing(DynamoStore(TableSettings(table=table, endpoint=moto_endpoint, region=REGION))) as store:
        assert BacklogReader(store, random.Random(0)).read(1000).units > 0
        queue = TaskQueue(store=store)
        for item in items:
            names_the_task(item["taskId"], queue.cancel)
            names_the_task(item["taskId"], partial(queue.redrive, dependents=True))
    for command in (*COMMANDS[::3], ("table", "check", "--scan", "100"), ("table", "check", "-o", "json")):
        result = CliRunner().invoke(main, [*command, "--table", table, "--endpoint", moto_endpoint], catch_exceptions=False)
        assert result.exit_code in {0, 1}, result.output


def names_the_task(task_id: str, change: Callable[[str], object]) -> None:
    """Make a change; where that cannot be done the error has to name the task."""
    problem = None
    try:
        change(task_id)
    except ThunderAgentError as error:
        problem = str(error)
    assert problem is None or task_id in problem
