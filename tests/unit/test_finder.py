"""Finding work on the classic layout: nothing ready stays hidden, however much waits before it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.builders import NOW, Time, claim, foreign_record, put_pending
from tests.unreliable import UnreliableStore
from thunderagent.store.classic import EXPIRED_PAGE, EXPIRED_PAGES, ROVING_MAX, ClassicFinder
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Status, Task

LATER = NOW + 3600


def everything(task: Task) -> bool:
    return True


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(Time())


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number:05}" for number in range(count)]


def put_waiting(store: MemoryStore, count: int, created_at: int = NOW - 100_000, prefix: str = "w") -> None:
    """Put tasks for later into the table, older than those that :func:`put_pending` makes."""
    put_pending(store, *names(prefix, count), created_at=created_at, lockTime=LATER)


def polls_until(found: Callable[[], bool], limit: int) -> int:
    for number in range(1, limit + 1):
        if found():
            return number
    raise AssertionError(f"not found in {limit} polls")


# --- the head -----------------------------------------------------------------------------------------------------------


def test_a_poll_finds_the_oldest_ready_tasks(store: MemoryStore) -> None:
    put_pending(store, *names("t", 30))

    found = ClassicFinder(store, random.Random(0)).poll(10, everything, NOW)

    assert [task.task_id for task in found.tasks] == names("t", 10)


def test_a_poll_of_a_table_with_little_in_it_reads_one_page(store: MemoryStore) -> None:
    counting = UnreliableStore(store)
    finder = ClassicFinder(counting, random.Random(0))
    put_pending(store, "a")
    put_waiting(store, 5)

    assert [task.task_id for task in finder.poll(10, everything, NOW).tasks] == ["a"]
    assert counting.pages == 1


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        pytest.param({"lockTime": NOW}, True, id="due this second"),
        pytest.param({"lockTime": NOW + 1}, False, id="due in a second"),
        pytest.param({}, True, id="of another program, without lockTime"),
        pytest.param({"lockTime": str(NOW)}, True, id="of another program, due by a time of text"),
        pytest.param({"lockTime": str(LATER)}, False, id="of another program, for later by a time of text"),
        pytest.param({"waitingFor": ["x"], "lockTime": NOW}, True, id="waiting for another task and due for a look"),
        pytest.param({"waitingFor": ["x"], "lockTime": LATER}, False, id="waiting for another task"),
        pytest.param({"status": "RUNNING"}, False, id="running"),
    ],
)
def test_a_poll_finds_what_is_due(store: MemoryStore, changes: dict[str, object], found: bool) -> None:
    store.put_record(foreign_record("t", **changes))

    assert bool(ClassicFinder(store, random.Random(0)).poll(10, everything, NOW).tasks) is found


def test_a_poll_finds_only_the_types_that_are_wanted(store: MemoryStore) -> None:
    put_pending(store, *names("a", 50), taskType="a")
    put_pending(store, "b", taskType="b", created_at=NOW)
    finder = ClassicFinder(store, random.Random(1))

    def poll() -> bool:
        return [task.task_id for task in finder.poll(5, lambda task: task.task_type == "b", NOW).tasks] == ["b"]

    assert polls_until(poll, 20) > 0


# --- what waits before it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("place", [0, 2_500, 4_999], ids=["before all", "among", "behind all"])
def test_a_ready_task_is_found_however_many_wait_and_wherever_it_stands(store: MemoryStore, place: int, seed: int) -> None:
    put_waiting(store, 5_000)
    put_pending(store, "ready", created_at=NOW - 100_000 + place)
    finder = ClassicFinder(store, random.Random(seed))

    def poll() -> bool:
        return any(task.task_id == "ready" for task in finder.poll(10, everything, NOW).tasks)

    assert polls_until(poll, 30) <= 20  # pages of 10, 20, 40 … 1000: a whole sweep and the rest of one before it


def test_every_ready_task_behind_those_that_wait_is_claimed_in_the_end(store: MemoryStore) -> None:
    put_waiting(store, 500)
    put_pending(store, *names("r", 60))
    put_waiting(store, 500, created_at=NOW, prefix="x")
    finder = ClassicFinder(store, random.Random(3))
    claimed: set[str] = set()

    def poll() -> bool:
        for task in finder.poll(10, everything, NOW).tasks:
            claim(store, task.task_id, token=f"T-{task.task_id}")
            claimed.add(task.task_id)
        return len(claimed) == 60

    polls_until(poll, 60)
    assert claimed == set(names("r", 60))


def test_the_roving_page_grows_while_nothing_is_found_and_shrinks_when_something_is(store: MemoryStore) -> None:
    put_waiting(store, 4_000)
    finder = ClassicFinder(store, random.Random(0))
    empty = [finder.poll(10, everything, NOW).units for _ in range(12)]

    assert empty[:7] == sorted(empty[:7])
    assert max(empty) > 10 * empty[0]
    put_pending(store, *names("r", 1))
    polls_until(lambda: bool(finder.poll(10, everything, NOW).tasks), 20)
    assert finder.poll(10, everything, NOW).units <= 2 * empty[0]


def test_a_poll_never_reads_more_than_its_bound(store: MemoryStore) -> None:
    put_waiting(store, 2_500)
    finder = ClassicFinder(store, random.Random(0))
    of_a_page = store.page(Status.PENDING, limit=ROVING_MAX).units

    assert all(finder.poll(10, everything, NOW).units <= of_a_page + 2 for _ in range(12))


def test_agents_rove_from_both_ends(store: MemoryStore) -> None:
    put_waiting(store, 300)
    put_pending(store, "young", created_at=NOW)

    first_finds = {seed: bool(ClassicFinder(store, random.Random(seed)).poll(10, everything, NOW).tasks) for seed in range(20)}

    assert set(first_finds.values()) == {True, False}


def test_a_task_that_the_head_and_the_roving_page_both_show_is_found_once(store: MemoryStore) -> None:
    put_pending(store, *names("t", 3))
    put_waiting(store, 30, created_at=NOW)
    finder = ClassicFinder(store, random.Random(0))

    for _ in range(10):
        found = [task.task_id for task in finder.poll(10, everything, NOW).tasks]
        assert sorted(found) == names("t", 3)


# --- leases that have ended ---------------------------------------------------------------------------------------------


def put_running(store: MemoryStore, prefix: str, count: int, created_at: int = NOW - 100_000, lock_time: int = LATER) -> None:
    put_pending(store, *names(prefix, count), created_at=created_at, status="RUNNING", lockTime=lock_time, lockToken="T1")


@pytest.mark.parametrize("seed", range(4))
def test_leases_that_have_ended_are_found_across_pages(store: MemoryStore, seed: int) -> None:
    put_running(store, "live", 450)
    put_running(store, "lost", 3, created_at=NOW - 99_800, lock_time=NOW)

    found = ClassicFinder(store, random.Random(seed)).expired(NOW)

    assert sorted(task.task_id for task in found.tasks) == names("lost", 3)


def test_a_look_for_leases_is_bounded_and_the_next_goes_on(store: MemoryStore) -> None:
    put_running(store, "live", EXPIRED_PAGE * EXPIRED_PAGES + 500)
    put_running(store, "lost", 1, created_at=NOW - 99_000, lock_time=NOW)
    counting = UnreliableStore(store)
    finder = ClassicFinder(counting, random.Random(2))
    looks = []
    for _ in range(2):
        before = counting.pages
        looks.append([task.task_id for task in finder.expired(NOW).tasks])
        assert counting.pages - before <= EXPIRED_PAGES

    assert sorted(task_id for look in looks for task_id in look) == ["lost00000"]


def test_a_run_of_another_program_without_a_lease_counts_as_lost(store: MemoryStore) -> None:
    store.put_record(foreign_record("t", status="RUNNING"))

    assert [task.task_id for task in ClassicFinder(store, random.Random(0)).expired(NOW).tasks] == ["t"]
