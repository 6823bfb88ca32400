"""Real agents on a table of the dispatch layout: what they promise does not depend on how work is found."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.agents import Scene, eventually, is_alive, scene_at
from thunderagent.settings import TableSettings
from thunderagent.store.admin import create_table, wait_until_active, write_layout
from thunderagent.store.dynamo import DynamoStore
from thunderagent.store.layout import dispatch_layout
from thunderagent.task import OutcomeKind, Status

pytestmark = pytest.mark.processes


@pytest.fixture
def scene(standin_endpoint: str, tmp_path: Path) -> Iterator[Scene]:
    """A table of each stand-in, made for dispatch: two shards, and a queue beside the default one."""
    settings = TableSettings(table=f"dispatch-{tmp_path.name}", endpoint=standin_endpoint)
    layout = dispatch_layout(shards=2, queues=("mail",))
    with closing(DynamoStore(settings)) as store:
        create_table(store, layout=layout)
        wait_until_active(store, lambda seconds: None, tries=2000)
        write_layout(store, layout)
    with scene_at(standin_endpoint, settings.table, tmp_path) as scene:
        yield scene


def test_tasks_of_all_kinds_are_run_and_leave_nothing_in_the_index(scene: Scene) -> None:
    scene.agent("A")
    for number in range(6):
        scene.queue.enqueue({}, task_id=f"t-{number}", task_type="plain")
    scene.queue.enqueue({}, task_id="after", task_type="plain", depends_on=[f"t-{number}" for number in range(6)])
    scene.queue.enqueue({}, task_id="later", task_type="plain", delay=1)
    scene.queue.enqueue({}, task_id="chain", task_type="enqueues")

    for task_id in (*(f"t-{number}" for number in range(6)), "after", "later", "chain-next"):
        assert scene.ended(task_id).status is Status.SUCCESS

    layout = scene.queue.store.layout()
    partitions = [f"{queue}{mark}{shard}" for queue in layout.queues for mark in "#?!" for shard in range(layout.shards)]
    eventually(lambda: not any(scene.queue.store.entries(each, limit=1).tasks for each in partitions), "the index to be empty")


def test_a_long_run_is_renewed_and_no_other_agent_takes_it(scene: Scene) -> None:
    scene.agent("A")
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    scene.wrote("start", "t")
    scene.agent("B")
    first = scene.queue.get("t").lock_time or 0
    eventually(lambda: (scene.queue.get("t").lock_time or 0) > first + 5, "several leases to have passed")
    scene.open_gate("A")

    task = scene.ended("t")

    assert (task.status, task.retry_count, task.result["agent"]) == (Status.SUCCESS, 0, "A")
    assert len(scene.history("t", "start")) == 1


def test_a_task_of_a_killed_agent_is_found_by_its_ended_lease(scene: Scene) -> None:
    killed = scene.agent("A")
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    lost = scene.wrote("start", "t")
    scene.open_gate("B")

    killed.send(signal.SIGKILL)
    scene.agent("B")
    task = scene.ended("t")

    assert (task.status, task.retry_count, task.result["agent"]) == (Status.SUCCESS, 1, "B")
    assert [run.outcome for run in task.history] == [OutcomeKind.LOST, OutcomeKind.SUCCESS]
    assert not is_alive(lost.pid)


def test_an_agent_takes_the_tasks_of_its_own_queue_alone(scene: Scene) -> None:
    scene.queue.enqueue({}, task_id="theirs", task_type="plain")
    scene.agent("A", queue="mail")
    scene.queue.enqueue({}, task_id="mine", task_type="plain", queue="mail")

    assert scene.ended("mine").status is Status.SUCCESS
    assert scene.queue.get("theirs").status is Status.PENDING


def test_an_agent_of_a_queue_that_there_is_not_says_so(scene: Scene) -> None:
    agent = scene.agent("A", queue="male")
    agent.says("The table has no queue male; it has default, mail.")
