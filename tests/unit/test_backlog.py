"""The backlog as scaling reads it: exact where it is not cut, flagged where it is, and bounded in cost."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.builders import NOW, Time, claim, foreign_record, put_pending
from tests.unreliable import UnreliableStore
from thunderagent.errors import StoreUnavailable
from thunderagent.store import Cursor, Page
from thunderagent.store.backlog import RUNNING_PAGES, Backlog, BacklogReader
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status
from thunderagent.values import encode, record_size

LATER = NOW + 3600


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(Time())


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number:05}" for number in range(count)]


def reader(store: Any, seed: int = 0, **options: Any) -> BacklogReader:
    return BacklogReader(store, random.Random(seed), **options)


# --- what is counted ----------------------------------------------------------------------------------------------------


def test_an_empty_table_has_no_backlog(store: MemoryStore) -> None:
    assert reader(store).read(100) == Backlog(at=NOW, units=1.0)


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        pytest.param({"lockTime": NOW}, {"ready": 1}, id="due"),
        pytest.param({}, {"ready": 1}, id="of another program, without lockTime"),
        pytest.param({"lockTime": str(NOW)}, {"ready": 1}, id="of another program, with a time of text"),
        pytest.param({"lockTime": LATER}, {"scheduled": 1}, id="for later"),
        pytest.param({"lockTime": LATER, "waitingFor": ["x"]}, {"waiting": 1}, id="waiting for another task"),
        pytest.param({"lockTime": NOW, "waitingFor": ["x"]}, {"waiting": 1, "waiting_due": 1}, id="waiting and due for a look"),
        pytest.param({"payload": {"dependsOn": "x"}}, {"waiting": 1, "waiting_due": 1}, id="waiting, never looked at"),
        pytest.param({"payload": {"dependsOn": "x"}, "waitingFor": []}, {"ready": 1}, id="with dependencies that are met"),
        pytest.param({"status": "RUNNING", "lockTime": LATER, "lockOwner": "a"}, {"running": {"a": 1}}, id="running"),
        pytest.param({"status": "RUNNING", "lockTime": LATER}, {"running": {"": 1}}, id="run by another program"),
        pytest.param({"status": "RUNNING", "lockTime": NOW, "lockOwner": "a"}, {"expired": 1}, id="running past its lease"),
        pytest.param({"status": "RUNNING"}, {"expired": 1}, id="run by another program without a lease"),
        pytest.param({"status": "FAILED"}, {}, id="failed"),
        pytest.param({"status": "SUCCESS"}, {}, id="done"),
    ],
)
def test_each_task_counts_as_what_it_is(store: MemoryStore, changes: dict[str, Any], counted: dict[str, Any]) -> None:
    store.put_record(foreign_record("t", **changes))

    backlog = reader(store).read(100)

    zeros = {"ready": 0, "waiting": 0, "waiting_due": 0, "scheduled": 0, "running": {}, "expired": 0, "cut": False}
    assert {name: getattr(backlog, name) for name in zeros} == zeros | counted


def test_running_tasks_count_for_their_owner(store: MemoryStore) -> None:
    put_pending(store, *names("a", 3), status="RUNNING", lockTime=LATER, lockOwner="pool/pod-1/x")
    put_pending(store, *names("b", 2), status="RUNNING", lockTime=LATER, lockOwner="pool/pod-2/y")

    assert reader(store).read(100).running == {"pool/pod-1/x": 3, "pool/pod-2/y": 2}


def test_only_the_tasks_of_the_pools_types_count(store: MemoryStore) -> None:
    for task_type, count in {"report": 4, "import": 7}.items():
        put_pending(store, *names(task_type, count), taskType=task_type)
        put_pending(
            store, *names(f"run-{task_type}", count), taskType=task_type, status="RUNNING", lockTime=LATER, lockOwner="a"
        )
        put_pending(store, *names(f"lost-{task_type}", count), taskType=task_type, status="RUNNING")

    backlog = reader(store, wanted=lambda task: task.task_type == "report").read(100)

    assert (backlog.ready, backlog.running, backlog.expired) == (4, {"a": 4}, 4)


def test_the_oldest_ready_task_gives_its_age_from_when_it_could_run(store: MemoryStore) -> None:
    store.put_record(foreign_record("scheduled", createdAt=NOW - 900, lockTime=LATER))
    store.put_record(foreign_record("retried", createdAt=NOW - 800, lockTime=NOW - 20))
    store.put_record(foreign_record("theirs", createdAt=NOW - 70))
    store.put_record(foreign_record("waiting", createdAt=NOW - 600, waitingFor=["x"]))

    assert reader(store).read(100).oldest_ready_age == 70


# --- where it is cut ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("ready", "waiting", "scheduled", "running"),
    [
        (0, 0, 0, 0),
        (1, 0, 0, 0),
        (19, 0, 0, 50),
        (8, 8, 3, 199),
        (60, 0, 0, 5),
        (0, 80, 0, 0),
        (6, 60, 60, 400),
        (1, 0, 0, 400),
    ],
)
def test_a_count_that_is_not_cut_is_exact_and_one_that_is_cut_is_at_most_what_is_there(
    store: MemoryStore, ready: int, waiting: int, scheduled: int, running: int, seed: int
) -> None:
    kinds: list[dict[str, Any]] = [{}] * ready + [{"lockTime": LATER, "waitingFor": ["x"]}] * waiting
    kinds += [{"lockTime": LATER}] * scheduled + [{"status": "RUNNING", "lockTime": LATER, "lockOwner": "a"}] * running
    random.Random(seed).shuffle(kinds)
    for number, changes in enumerate(kinds):
        store.put_record(foreign_record(f"t{number:05}", createdAt=NOW - 5000 + number, **changes))
    backlogs = reader(store, seed)

    for _ in range(12):
        backlog = backlogs.read(20)
        seen = (backlog.ready, backlog.waiting, backlog.scheduled, sum(backlog.running.values()))
        there = (ready, waiting, scheduled, running)
        assert all(count <= real for count, real in zip(seen, there, strict=True))
        assert backlog.cut or seen == there
        assert backlog.cut == (ready + waiting + scheduled >= 20 or running >= 20 * RUNNING_PAGES)


@pytest.mark.parametrize("seed", range(2))
def test_ready_tasks_behind_thousands_that_wait_are_all_counted_within_a_sweep(store: MemoryStore, seed: int) -> None:
    put_pending(store, *names("w", 3_000), created_at=NOW - 100_000, lockTime=LATER)
    put_pending(store, *names("r", 60), created_at=NOW - 98_000)
    backlogs = reader(store, seed)

    counts = [backlogs.read(100).ready for _ in range(45)]

    assert max(counts[:31]) == 60
    assert counts[31:] == [60] * 14, "what a whole sweep found counts until the next one ends"


def test_what_a_sweep_found_is_forgotten_when_the_next_one_does_not_find_it(store: MemoryStore) -> None:
    put_pending(store, *names("w", 1_000), created_at=NOW - 100_000, lockTime=LATER)
    put_pending(store, *names("r", 20), created_at=NOW - 99_500)
    backlogs = reader(store)
    for _ in range(11):
        backlogs.read(100)
    for task_id in names("r", 20):
        claim(store, task_id, token=f"T-{task_id}")

    assert [backlogs.read(100).ready for _ in range(22)][-1] == 0


def test_ready_tasks_in_the_head_are_known_at_once(store: MemoryStore) -> None:
    put_pending(store, *names("r", 100), created_at=NOW - 100_000)
    put_pending(store, *names("w", 1_000), lockTime=LATER)

    backlog = reader(store).read(100)

    assert (backlog.ready, backlog.cut) == (100, True)


def test_a_ready_count_never_passes_what_was_asked_for(store: MemoryStore) -> None:
    put_pending(store, *names("w", 150), created_at=NOW - 100_000, lockTime=LATER)
    put_pending(store, *names("r", 900))
    backlogs = reader(store)

    assert max(backlogs.read(100).ready for _ in range(20)) == 100


def test_a_pool_that_needs_nothing_still_learns_whether_there_is_work(store: MemoryStore) -> None:
    put_pending(store, "t")

    assert reader(store).read(0).ready == 1


# --- what it costs ------------------------------------------------------------------------------------------------------


def put_kilobytes(store: MemoryStore, prefix: str, count: int, **changes: Any) -> None:
    """Put tasks of 1 KB each into the table."""
    for number, task_id in enumerate(names(prefix, count)):
        record = foreign_record(task_id, payload={"text": ""}, createdAt=NOW - count + number, **changes)
        size = record_size({name: encode(value) for name, value in record.items()})
        store.put_record(record | {"payload": {"text": "x" * (1024 - size)}})


@pytest.mark.parametrize(
    ("pending", "running", "units"),
    [
        pytest.param(0, 0, 1.0, id="nothing"),
        pytest.param(100, 0, 13.0, id="100 ready"),
        pytest.param(10_000, 0, 13.0, id="10,000 ready"),
        pytest.param(100, 99, 25.0, id="100 ready and 99 running"),
        pytest.param(100, 100, 25.5, id="100 ready and 100 running"),
    ],
)
def test_a_reading_costs_the_same_however_much_there_is(store: MemoryStore, pending: int, running: int, units: float) -> None:
    put_kilobytes(store, "p", pending)
    put_kilobytes(store, "r", running, status="RUNNING", lockTime=LATER)

    assert reader(store).read(100).units == units


def test_a_reading_among_tasks_that_wait_costs_two_pages(store: MemoryStore) -> None:
    put_kilobytes(store, "w", 2_000, lockTime=LATER)
    backlogs = reader(store)

    assert max(backlogs.read(100).units for _ in range(25)) == 25.5


# --- when it cannot be read ---------------------------------------------------------------------------------------------


class BrokenIndex(UnreliableStore):
    """The index of RUNNING tasks cannot be read."""

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        if status is Status.RUNNING:
            raise StoreUnavailable("Query got no reply.", operation="Query")
        return super().page(status, limit=limit, cursor=cursor, newest_first=newest_first)


def test_a_backlog_that_could_not_be_read_is_an_error_and_not_a_zero(store: MemoryStore) -> None:
    put_pending(store, "t")

    with pytest.raises(StoreUnavailable):
        reader(BrokenIndex(store)).read(100)
