"""Agents and readings on the dispatch layout: what is found, in which order, at what cost, and what is mended on the way."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.builders import NOW, Time, enqueue, put_pending, read
from tests.builders import claim as take
from thunderagent import transitions
from thunderagent.errors import StoreRejected
from thunderagent.store.backlog import BacklogReader
from thunderagent.store.base import Cursor, Page
from thunderagent.store.finder import Finder
from thunderagent.store.layout import CLASSIC, Layout, dispatch_layout
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Outcome, OutcomeKind, Status, Task

ONE = dispatch_layout(shards=1)
MANY = dispatch_layout(shards=8, queues=("mail",))


class Counting(MemoryStore):
    """A table that counts how often its index is read."""

    reads = 0

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        self.reads += 1
        return super().entries(partition, limit=limit, until=until, cursor=cursor)


def table(layout: Layout = MANY) -> Counting:
    return Counting(Time(), layout)


def finder(store: MemoryStore, queue: str = "default") -> Finder:
    return Finder(store, random.Random(0), queue)


def ids(tasks: tuple[Task, ...]) -> list[str]:
    return sorted(task.task_id for task in tasks)


def anything(task: Task) -> bool:
    return True


# --- polls --------------------------------------------------------------------------------------------------------------


def test_a_ready_task_behind_10_000_waiting_ones_is_found_with_the_first_page() -> None:
    store = table(ONE)
    for number in range(10_000):
        store.put_record(_waiting(f"w-{number}"))
    enqueue(store, "ready")
    found = finder(store).poll(10, anything, NOW)

    assert "ready" in ids(found.tasks)
    assert store.reads == 2, "one page of what is ready, one of what waits"


def _waiting(task_id: str) -> dict[str, object]:
    write = transitions.enqueue(task_id, {"dependsOn": "never"}, now=NOW, not_before=NOW + 500, token=task_id)
    return dict(ONE.filed(write).puts)


def test_all_shards_of_a_queue_are_searched_and_no_other_queue_is() -> None:
    store = table()
    for number in range(20):
        enqueue(store, f"t-{number}")
        enqueue(store, f"m-{number}", queue="mail")

    assert ids(finder(store).poll(100, anything, NOW).tasks) == sorted(f"t-{number}" for number in range(20))
    assert ids(finder(store, "mail").poll(100, anything, NOW).tasks) == sorted(f"m-{number}" for number in range(20))


def test_on_the_classic_layout_queues_are_kept_apart_too() -> None:
    store = table(replace(CLASSIC, queues=("default", "mail")))
    enqueue(store, "t")
    enqueue(store, "m", queue="mail")

    assert ids(finder(store).poll(100, anything, NOW).tasks) == ["t"]
    assert ids(finder(store, "mail").poll(100, anything, NOW).tasks) == ["m"]
    take(store, "m")
    assert ids(finder(store).expired(NOW + 1000).tasks) == []
    assert ids(finder(store, "mail").expired(NOW + 1000).tasks) == ["m"]


def test_a_queue_that_the_table_does_not_have_is_an_error_and_not_an_empty_one() -> None:
    with pytest.raises(StoreRejected, match="has no queue reports; it has default, mail"):
        finder(table(), "reports").poll(10, anything, NOW)
    with pytest.raises(StoreRejected, match="has no queue reports"):
        BacklogReader(table(), random.Random(0), queue="reports").read(10)


def test_waiting_tasks_get_their_look_however_many_are_ready() -> None:
    store = table()
    for number in range(500):
        enqueue(store, f"ready-{number}")
    waiting = [f"waits-{number}" for number in range(16)]
    for task_id in waiting:
        enqueue(store, task_id, {"dependsOn": "first"})
    looked: set[str] = set()
    agent = finder(store)
    for _ in range(200):
        looked |= {task.task_id for task in agent.poll(10, anything, NOW).tasks if task.is_waiting}

    assert looked == set(waiting)


def test_tasks_of_a_type_that_nobody_here_runs_hide_none_that_somebody_does() -> None:
    store = table(ONE)
    for number in range(300):
        enqueue(store, f"other-{number}", task_type="other")
    enqueue(store, "mine", task_type="mine", not_before=NOW + 1)
    agent = finder(store)
    polls = 0
    while not (found := agent.poll(10, lambda task: task.task_type == "mine", NOW + 1).tasks):
        polls += 1
        assert polls < 20

    assert ids(found) == ["mine"]


def test_a_waiting_task_is_found_whole_so_that_its_look_can_be_written() -> None:
    store = table()
    task = enqueue(store, "waits", {"dependsOn": "first"})
    (found,) = finder(store).poll(10, anything, NOW).tasks

    assert found == task
    assert store.apply(transitions.defer(found, now=NOW, wait=20, unmet=("first",))).ok
    assert finder(store).poll(10, anything, NOW + 19).tasks == ()
    assert ids(finder(store).poll(10, anything, NOW + 20).tasks) == ["waits"]


# --- leases -------------------------------------------------------------------------------------------------------------


def test_a_lease_that_has_ended_is_found_and_one_that_has_not_is_not() -> None:
    store = table()
    for task_id in ("dead", "alive"):
        enqueue(store, task_id)
    take(store, "dead", lease=10)
    take(store, "alive", lease=1000)

    found = finder(store).expired(NOW + 11)

    assert ids(found.tasks) == ["dead"]
    assert found.tasks[0].lock_token == read(store, "dead").lock_token, "whole, so that it can be taken over"


def test_a_lease_renewed_beyond_its_entry_is_looked_at_once_and_then_when_it_ends() -> None:
    store = table(ONE)
    enqueue(store, "t")
    lease = take(store, "t", lease=100)
    store.apply(transitions.renew(lease.trying(NOW + 400), lease_end=NOW + 400))

    assert finder(store).expired(NOW + 150).tasks == ()
    (entry,) = store.entries("default!0", limit=1).tasks
    assert entry.lock_time == NOW + 400
    assert ids(finder(store).expired(NOW + 400).tasks) == ["t"]


# --- what stands where it does not belong ---------------------------------------------------------------------------------


def test_a_task_that_a_program_without_layouts_has_claimed_is_watched_all_the_same() -> None:
    """It writes no keys, so the entry still says ready: whoever meets it files the lease where an ended one is looked for."""
    store = table(ONE)
    enqueue(store, "t")
    store.change_layout(CLASSIC)
    take(store, "t", lease=100)
    store.change_layout(ONE)

    assert finder(store).poll(10, anything, NOW).tasks == ()
    assert ids(finder(store).expired(NOW + 100).tasks) == ["t"]
    assert store.entries("default#0", limit=10).tasks == ()


def test_a_task_that_a_program_without_layouts_has_ended_leaves_the_index() -> None:
    store = table(ONE)
    enqueue(store, "t")
    lease = take(store, "t", lease=100)
    store.change_layout(CLASSIC)
    store.apply(transitions.complete(lease, Outcome(OutcomeKind.SUCCESS), now=NOW, expires_at=NOW + 1000))
    store.change_layout(ONE)

    assert finder(store).expired(NOW + 100).tasks == ()
    assert store.entries("default!0", limit=10).tasks == ()
    assert read(store, "t").status is Status.SUCCESS


# --- readings -------------------------------------------------------------------------------------------------------------


def test_a_reading_tells_apart_what_is_ready_waits_runs_and_has_lost_its_agent() -> None:
    store = table()
    for number in range(30):
        enqueue(store, f"ready-{number}")
    enqueue(store, "later", not_before=NOW + 60)
    for number in range(4):
        enqueue(store, f"waits-{number}", {"dependsOn": "first"})
    store.apply(transitions.defer(read(store, "waits-0"), now=NOW, wait=60, unmet=("first",)))
    take(store, "ready-0", owner="a", lease=1000)
    take(store, "ready-1", owner="a", lease=1000)
    take(store, "ready-2", owner="b", lease=-1)
    enqueue(store, "elsewhere", queue="mail")

    seen = BacklogReader(store, random.Random(0)).read(100)

    assert (seen.ready, seen.waiting, seen.waiting_due, seen.expired, seen.cut) == (27, 4, 3, 1, False)
    assert seen.running == {"a": 2}


def test_a_lease_renewed_beyond_its_entry_counts_as_running() -> None:
    store = table()
    enqueue(store, "t")
    lease = take(store, "t", owner="a", lease=-1)
    store.apply(transitions.renew(lease.trying(NOW + 400), lease_end=NOW + 400))

    seen = BacklogReader(store, random.Random(0)).read(100)

    assert (seen.running, seen.expired) == ({"a": 1}, 0)


def test_a_reading_counts_up_to_what_is_needed_and_says_that_there_is_more() -> None:
    store = table()
    for number in range(1000):
        enqueue(store, f"t-{number}")

    seen = BacklogReader(store, random.Random(0)).read(100)

    assert seen.cut
    assert 100 <= seen.ready <= 107, "the oldest of each further shard is read for its age"
    assert seen.units <= 4 + 0.5 * 8 * 3, "three kinds of partitions, of which two are empty"


def test_the_oldest_task_is_found_in_whatever_shard_it_is() -> None:
    for number in range(8):
        store = table()
        for other in range(200):
            enqueue(store, f"t-{number}-{other}")
        put_filed(store, f"old-{number}", created_at=NOW - 500)
        assert BacklogReader(store, random.Random(0)).read(50).oldest_ready_age == 500


def put_filed(store: MemoryStore, task_id: str, created_at: int) -> None:
    write = transitions.enqueue(task_id, {}, now=created_at, token=task_id)
    store.put_record(dict(MANY.filed(write).puts))


def test_a_change_of_layout_reaches_agents_and_readings_that_are_at_work() -> None:
    store = table(CLASSIC)
    put_pending(store, "t")
    agent, reader = finder(store), BacklogReader(store, random.Random(0))
    assert ids(agent.poll(10, anything, NOW).tasks) == ["t"]
    store.change_layout(ONE)

    assert (agent.poll(10, anything, NOW).tasks, reader.read(10).ready) == ((), 0)
    store.apply(transitions.refile(read(store, "t")))
    assert (ids(agent.poll(10, anything, NOW).tasks), reader.read(10).ready) == (["t"], 1)
