"""The contract of :class:`thunderagent.store.Store`, over the in-memory store and DynamoDB's stand-ins."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from tests.builders import NOW, claim, enqueue, read
from tests.contract.cases import CASES, EXPIRED, GONE, PENDING, RUNNING, Case, Item, lease_of, n, s
from tests.contract.conftest import (
    BOOL_EQUALITY,
    INDEX_KEY_TYPES,
    LIMIT_CURSOR,
    MAP_EQUALITY,
    READ_UNITS,
    REFUSED_UNCHANGED,
    SERVER_TIME,
    TABLES,
    Table,
)
from thunderagent import transitions
from thunderagent.errors import IndexMissing, NotATask, StoreRejected, TableMissing
from thunderagent.store import Applied, Store
from thunderagent.task import Outcome, OutcomeKind, Status, Task
from thunderagent.transitions import Transition

RACERS = 6
ROUNDS = 15


def cases() -> list[Any]:
    return [pytest.param(case, id=case.name.replace(" ", "-")) for case in CASES]


def spoiled_cases() -> list[Any]:
    return [
        pytest.param(case, change, id=f"{case.name} where {why}".replace(" ", "-"))
        for case in CASES
        for why, change in case.spoilers.items()
    ]


def after(transition: Transition, before: Task) -> dict[str, Any]:
    """The attributes that a write leaves, by the definition of a transition."""
    kept = {name: value for name, value in before.record.items() if name not in transition.drops}
    return kept | {str(name): value for name, value in transition.puts.items()}


# --- writes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases())
def test_a_write_whose_condition_holds_changes_what_it_says_and_nothing_else(table: Table, case: Case) -> None:
    table.put(case.item)
    before = table.read()
    write = case.build(before)

    applied = table.store.apply(write, want_task=True)

    assert applied == Applied(True, table.read())
    assert table.record == after(table.store.layout().filed(write), before)


@pytest.mark.parametrize(("case", "change"), spoiled_cases())
def test_a_write_is_refused_where_its_condition_no_longer_holds(table: Table, case: Case, change: Item) -> None:
    table.put(case.item)
    write = case.build(table.read())
    table.put(case.item, change)
    before = table.read()

    applied = table.store.apply(write, want_task=True)

    assert applied == Applied(False, before)
    assert table.record == before.record


@pytest.mark.parametrize("case", cases())
def test_a_write_whose_reply_was_lost_is_recognised_when_it_is_tried_again(table: Table, case: Case) -> None:
    table.put(case.item)
    write = case.build(table.read())
    table.store.apply(write)
    before = table.read()

    again = table.store.apply(write, want_task=True)

    assert again == Applied(True, before, repeated=case.again == "repeated")
    assert table.record == before.record


@pytest.mark.parametrize("case", cases())
def test_a_write_to_a_task_that_is_gone_is_refused_and_makes_none(table: Table, case: Case) -> None:
    table.put(case.item)
    write = case.build(table.read())
    gone = replace(write, task_id="gone")

    assert table.store.apply(gone) == Applied(False, None)
    assert table.store.get("gone") is None


def test_an_enqueue_makes_the_item_and_returns_it(table: Table) -> None:
    write = transitions.enqueue(table.task_id, {"n": 1, "text": ""}, now=NOW, token="E1", task_type="report")

    applied = table.store.apply(write, want_task=True)

    assert applied == Applied(True, table.read())
    assert table.record == {str(name): value for name, value in table.store.layout().filed(write).puts.items()}


def test_an_enqueue_whose_reply_was_lost_is_recognised_even_when_the_task_runs_already(table: Table) -> None:
    write = transitions.enqueue(table.task_id, {}, now=NOW, token="E1")
    table.store.apply(write)
    table.claim()

    again = table.store.apply(write)

    assert (again.ok, again.repeated) == (True, True)
    assert again.task == table.read()


def test_an_enqueue_of_an_id_that_is_taken_is_refused_and_shows_the_task_that_has_it(table: Table) -> None:
    enqueue(table.store, table.task_id, {"first": True})

    applied = table.store.apply(transitions.enqueue(table.task_id, {"second": True}, now=NOW, token="E2"))

    assert (applied.ok, applied.repeated) == (False, False)
    assert applied.task is not None
    assert applied.task.payload == {"first": True}


def test_a_write_without_a_wish_for_the_task_sends_none_back(table: Table) -> None:
    assert table.store.apply(transitions.enqueue(table.task_id, {}, now=NOW, token="E1")) == Applied(True)


def test_a_claim_is_not_proven_by_another_agents_token(table: Table) -> None:
    enqueue(table.store, table.task_id)
    mine = transitions.claim(table.read(), now=NOW, lease_end=NOW + 300, owner="a", token="T1")
    table.claim(owner="b", token="T2")

    applied = table.store.apply(mine)

    assert (applied.ok, applied.repeated) == (False, False)
    assert applied.task is not None
    assert applied.task.lock_owner == "b"


def test_a_claim_is_not_proven_by_a_task_that_somebody_has_ended_since(table: Table) -> None:
    table.put(PENDING)
    mine = transitions.claim(table.read(), now=NOW, lease_end=NOW + 300, owner="a", token="T1")
    table.put(RUNNING, {"status": s("SUCCESS")})  # a program that leaves our token where it was

    assert not table.store.apply(mine).ok


# --- items of others ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        pytest.param({}, {"retry_count": 1, "max_retry": 3, "lock_time": NOW}, id="as published"),
        pytest.param({"lockTime": GONE}, {"lock_time": None}, id="without lockTime"),
        pytest.param({"lockTime": s(str(NOW))}, {"lock_time": NOW}, id="with lockTime as text"),
        pytest.param({"lockTime": {"NULL": True}}, {"lock_time": None}, id="with lockTime NULL"),
        pytest.param({"lockTime": {"BOOL": True}}, {"lock_time": None}, id="with lockTime true"),
        pytest.param({"lockTime": n(NOW - 0.25)}, {"lock_time": NOW - 0.25}, id="with lockTime in fractions"),
        pytest.param({"retryCount": s("2")}, {"retry_count": 2}, id="with retryCount as text"),
        pytest.param({"retryCount": GONE, "maxRetry": GONE}, {"retry_count": 0, "max_retry": 3}, id="without retries"),
        pytest.param({"retryCount": {"NULL": True}}, {"retry_count": 0}, id="with retryCount NULL"),
        pytest.param({"retryCount": {"BOOL": True}}, {"retry_count": 0}, id="with retryCount true"),
        pytest.param({"retryCount": {"M": {"n": n(1)}}}, {"retry_count": 0}, id="with retryCount a map"),
        pytest.param({"retryCount": n(-5)}, {"retry_count": 0}, id="with a negative retryCount"),
        pytest.param({"maxRetry": s("many")}, {"max_retry": 3}, id="with maxRetry as words"),
        pytest.param({"updatedAt": s("2026-01-01")}, {"updated_at": 0}, id="with updatedAt as a date"),
        pytest.param({"updatedAt": n(1)} | {"payload": GONE}, {"payload": None}, id="without payload"),
        pytest.param({"payload": s("{}")}, {"payload": "{}", "dependencies": ()}, id="with a payload of text"),
        pytest.param({"history": s("none")}, {"history": ()}, id="with a history of text"),
        pytest.param({"error": s("broke")}, {"error.message": "broke"}, id="with an error of text"),
    ],
)
def test_an_item_of_another_program_is_read_claimed_and_completed(table: Table, change: Item, seen: dict[str, Any]) -> None:
    published = {name: value for name, value in PENDING.items() if not name.startswith(("waiting", "last"))}
    table.put(published, change)

    task = table.read()
    assert {path: _attribute(task, path) for path in seen} == seen

    lease = table.claim()
    done = transitions.complete(lease, Outcome(OutcomeKind.SUCCESS), now=NOW + 1, expires_at=NOW + 99)
    assert table.store.apply(done).ok
    assert table.read().status is Status.SUCCESS


def _attribute(task: Any, path: str) -> Any:
    for name in path.split("."):
        task = getattr(task, name)
    return task


@pytest.mark.parametrize(
    "change", [{"retryCount": s("2")}, {"retryCount": {"NULL": True}}, {"lockToken": GONE}, {"lockTime": GONE}]
)
def test_a_run_that_another_program_lost_is_taken_over(table: Table, change: Item) -> None:
    table.put(EXPIRED, change)
    task = table.read()

    applied = table.store.apply(
        transitions.take_over(task, now=NOW, lease_end=NOW + 300, owner="b", token="T9"), want_task=True
    )

    assert applied.ok
    assert applied.task is not None
    assert applied.task.retry_count == task.retry_count + 1


def test_a_task_with_a_map_for_its_time_is_claimed_as_it_was_seen(table: Table) -> None:
    table.needs(MAP_EQUALITY)
    table.put(PENDING, {"lockTime": {"M": {"at": n(5)}}})

    assert table.claim().ends == NOW + 300


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"lockTime": s(str(NOW + 60))}, id="text for a later time"),
        pytest.param({"lockTime": n(NOW + 60)}, id="a later time"),
    ],
)
def test_a_task_for_later_is_not_claimed(table: Table, change: Item) -> None:
    table.put(PENDING, change)
    write = transitions.claim(table.read(), now=NOW, lease_end=NOW + 300, owner="a", token="T1")

    assert not table.store.apply(write).ok


def test_a_time_of_text_that_changed_since_it_was_read_is_not_claimed(table: Table) -> None:
    table.put(PENDING, {"lockTime": s("0")})
    write = transitions.claim(table.read(), now=NOW, lease_end=NOW + 300, owner="a", token="T1")
    table.put(PENDING, {"lockTime": s("1")})

    assert not table.store.apply(write).ok


def test_true_is_not_taken_for_the_number_one_that_was_seen(table: Table) -> None:
    table.needs(BOOL_EQUALITY)
    table.put(EXPIRED)
    write = transitions.take_over(table.read(), now=NOW, lease_end=NOW + 300, owner="b", token="T9")
    table.put(EXPIRED, {"retryCount": {"BOOL": True}})

    assert not table.store.apply(write).ok


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda task: transitions.cancel(task, now=NOW, expires_at=NOW + 9), id="cancel"),
        pytest.param(lambda task: transitions.unblock(task, now=NOW), id="unblock"),
    ],
)
def test_times_of_more_digits_than_a_float_has_are_compared_as_they_stand(
    table: Table, build: Callable[[Task], Transition]
) -> None:
    nanoseconds = {"N": f"{NOW - 50}.123456789"}
    table.put(PENDING, {"updatedAt": nanoseconds, "lockTime": nanoseconds})

    assert table.store.apply(build(table.read())).ok


def test_an_item_with_a_status_of_another_program_is_left_alone(table: Table) -> None:
    table.put(PENDING)
    write = transitions.claim(table.read(), now=NOW, lease_end=NOW + 300, owner="a", token="T1")
    table.put(PENDING, {"status": s("ARCHIVED")})

    assert table.store.apply(write, want_task=True) == Applied(False, None)
    assert table.store.get_many([table.task_id]).unknown == {table.task_id}
    with pytest.raises(NotATask, match="ARCHIVED"):
        table.store.get(table.task_id)


# --- reading by key -----------------------------------------------------------------------------------------------------


def test_any_number_of_tasks_is_read_at_once_and_a_missing_one_is_neither_found_nor_unknown(table: Table) -> None:
    here = [f"here-{number}" for number in range(0, 250, 2)]
    for task_id in here:
        enqueue(table.store, task_id)
    gone = [f"gone-{number}" for number in range(1, 250, 2)]

    batch = table.store.get_many([*here, *gone, here[0]])

    assert batch.found.keys() == set(here)
    assert all(batch.found[task_id].task_id == task_id for task_id in here)
    assert batch.unknown == frozenset()


def test_an_id_that_no_item_can_have_is_missing_and_does_not_keep_the_others_from_being_read(table: Table) -> None:
    """A dependency may name anything, and DynamoDB refuses a whole batch for one such key."""
    enqueue(table.store, "here")

    batch = table.store.get_many(["here", "", "x" * 2049])

    assert batch.found.keys() == {"here"}
    assert batch.unknown == frozenset()


def test_no_tasks_are_read_without_asking(table: Table) -> None:
    assert table.store.get_many([]).found == {}


# --- pages --------------------------------------------------------------------------------------------------------------


def pages(store: Store, limit: int, newest_first: bool = False) -> Iterator[tuple[str, ...]]:
    cursor = None
    while True:
        page = store.page(Status.PENDING, limit=limit, cursor=cursor, newest_first=newest_first)
        yield tuple(task.task_id for task in page.tasks)
        cursor = page.cursor
        if cursor is None:
            return


def put_in_pairs_of_one_age(empty_table: Table, count: int) -> None:
    for number in range(count):
        empty_table.put(PENDING, {"createdAt": n(NOW + number // 2)}, task_id=f"task-{number:02}")


def test_pages_show_every_task_of_a_status_once_and_by_age(empty_table: Table) -> None:
    put_in_pairs_of_one_age(empty_table, 25)
    empty_table.put(RUNNING, task_id="running")

    for limit, newest_first in itertools.product((1, 10, 25, 100), (False, True)):
        read = list(pages(empty_table.store, limit, newest_first))

        shown = [task_id for page in read for task_id in page]
        ages = [int(task_id.removeprefix("task-")) // 2 for task_id in shown]
        assert sorted(shown) == [f"task-{number:02}" for number in range(25)]
        assert ages == sorted(ages, reverse=newest_first)
        assert all(len(page) <= limit for page in read)


def test_the_next_page_goes_on_after_the_last_task_even_when_that_has_left_the_status(empty_table: Table) -> None:
    put_in_pairs_of_one_age(empty_table, 6)
    first = empty_table.store.page(Status.PENDING, limit=3)
    for task in first.tasks:
        claim(empty_table.store, task.task_id, now=NOW, token=f"T-{task.task_id}")

    second = empty_table.store.page(Status.PENDING, limit=100, cursor=first.cursor)

    assert {task.task_id for task in (*first.tasks, *second.tasks)} == {f"task-{number:02}" for number in range(6)}
    assert len(second.tasks) == 3


def test_a_page_of_a_status_that_no_task_has_is_empty_and_the_last(empty_table: Table) -> None:
    page = empty_table.store.page(Status.DONE, limit=10)

    assert (page.tasks, page.cursor) == ((), None)


def test_a_page_that_the_limit_ended_has_a_cursor_though_nothing_may_follow(empty_table: Table) -> None:
    empty_table.needs(LIMIT_CURSOR)
    put_in_pairs_of_one_age(empty_table, 4)

    page = empty_table.store.page(Status.PENDING, limit=4)

    assert page.cursor is not None
    assert empty_table.store.page(Status.PENDING, limit=4, cursor=page.cursor).tasks == ()


def test_a_page_ends_at_a_megabyte_and_the_next_goes_on(empty_table: Table) -> None:
    for number in range(14):
        filler = {"payload": {"M": {"text": s("x" * 100_000)}}}
        empty_table.put(PENDING, filler, {"createdAt": n(NOW + number)}, task_id=f"task-{number:02}")

    read = list(pages(empty_table.store, 100))

    assert 9 <= len(read[0]) <= 11
    assert [task_id for page in read for task_id in page] == [f"task-{number:02}" for number in range(14)]


def test_a_page_of_no_items_is_refused(empty_table: Table) -> None:
    with pytest.raises(StoreRejected):
        empty_table.store.page(Status.PENDING, limit=0)


def test_an_item_without_a_time_of_creation_is_in_no_page(empty_table: Table) -> None:
    empty_table.put(PENDING, {"createdAt": GONE})

    assert list(pages(empty_table.store, 10)) == [()]
    assert empty_table.read().created_at == 0


def test_the_index_takes_keys_of_its_own_types_alone(empty_table: Table) -> None:
    empty_table.needs(INDEX_KEY_TYPES)
    with pytest.raises(Exception, match="Type mismatch for Index Key createdAt"):
        empty_table.put(PENDING, {"createdAt": s("yesterday")})


def test_a_page_says_what_it_cost(empty_table: Table) -> None:
    empty_table.needs(READ_UNITS)
    for number in range(20):
        empty_table.put(PENDING, {"payload": {"M": {"text": s("x" * 3_600)}}}, task_id=f"task-{number:02}")

    page = empty_table.store.page(Status.PENDING, limit=10)

    assert page.units in {5.0, 5.5}  # ten items of just under 4 KB, half a unit each; the adapters count numbers differently


# --- sizes --------------------------------------------------------------------------------------------------------------


def test_an_item_of_more_than_400_kilobytes_is_refused_and_not_made(table: Table) -> None:
    with pytest.raises(StoreRejected, match="size"):
        table.store.apply(transitions.enqueue(table.task_id, {"text": "x" * 410_000}, now=NOW, token="E1"))

    assert table.store.get(table.task_id) is None


def test_a_result_that_makes_the_item_too_large_is_refused_and_changes_nothing(table: Table) -> None:
    table.needs(REFUSED_UNCHANGED)
    table.put(RUNNING, {"payload": {"M": {"text": s("x" * 200_000)}}})
    before = table.read()
    large = Outcome(OutcomeKind.SUCCESS, result={"text": "x" * 210_000})

    with pytest.raises(StoreRejected, match="size"):
        table.store.apply(transitions.complete(lease_of(before), large, now=NOW, expires_at=NOW + 9))

    assert table.record == before.record


@pytest.mark.parametrize("task_id", ["", "x" * 2049], ids=["empty", "of more than 2,048 bytes"])
def test_a_key_that_dynamodb_does_not_take_is_refused(table: Table, task_id: str) -> None:
    with pytest.raises(StoreRejected):
        table.store.apply(transitions.enqueue(task_id, {}, now=NOW, token="E1"))


# --- what is missing ----------------------------------------------------------------------------------------------------


def test_without_the_table_every_call_says_that_it_is_missing(table: Table) -> None:
    table.needs(TABLES)
    calls: list[Callable[[Store], Any]] = [
        lambda store: store.get("t"),
        lambda store: store.get_many(["t"]),
        lambda store: store.apply(transitions.enqueue("t", {}, now=NOW, token="E1")),
        lambda store: store.page(Status.PENDING, limit=1),
    ]
    with closing(table.other(table="no-such-table")) as store:
        for call in calls:
            with pytest.raises(TableMissing, match="no-such-table"):
                call(store)


def test_without_the_index_a_page_says_that_it_is_missing(table: Table) -> None:
    table.needs(TABLES)
    with closing(table.other(index="no-such-index")) as store, pytest.raises(IndexMissing, match="no-such-index"):
        store.page(Status.PENDING, limit=1)


# --- races --------------------------------------------------------------------------------------------------------------


def race(pool: ThreadPoolExecutor, store: Store, writes: list[Transition]) -> list[Applied]:
    start = threading.Barrier(len(writes))

    def run(write: Transition) -> Applied:
        start.wait()
        return store.apply(write)

    return list(pool.map(run, writes))


def test_of_agents_that_race_for_a_task_exactly_one_wins(table: Table) -> None:
    def claims(task: Task) -> list[Transition]:
        return [
            transitions.claim(task, now=NOW, lease_end=NOW + 300, owner=f"agent-{number}", token=f"T{number}")
            for number in range(RACERS)
        ]

    with ThreadPoolExecutor(RACERS) as pool:
        for round_number in range(ROUNDS):
            task = enqueue(table.store, f"race-{table.task_id}-{round_number}")
            outcomes = race(pool, table.store, claims(task))
            winner = read(table.store, task.task_id).lock_owner
            assert [f"agent-{number}" for number in range(RACERS) if outcomes[number].ok] == [winner]


def test_of_programs_that_race_to_enqueue_an_id_exactly_one_wins(table: Table) -> None:
    with ThreadPoolExecutor(RACERS) as pool:
        for round_number in range(ROUNDS):
            writes = [
                transitions.enqueue(f"race-{table.task_id}-{round_number}", {"by": number}, now=NOW, token=f"E{number}")
                for number in range(RACERS)
            ]
            outcomes = race(pool, table.store, writes)
            winner = read(table.store, f"race-{table.task_id}-{round_number}").payload["by"]
            assert [number for number in range(RACERS) if outcomes[number].ok] == [winner]


# --- time ---------------------------------------------------------------------------------------------------------------


def test_the_time_is_the_servers_never_ahead_of_it_and_a_lease_is_never_shorter_than_asked(table: Table) -> None:
    table.needs(SERVER_TIME)
    before = server_date(table)
    now, lease_end = table.store.now(), table.store.lease_end(10)
    after = server_date(table)

    assert now <= after
    assert lease_end >= before + 10


def server_date(table: Table) -> int:
    assert table.client is not None
    headers = table.client.list_tables()["ResponseMetadata"]["HTTPHeaders"]
    return int(parsedate_to_datetime(headers["date"]).timestamp())
