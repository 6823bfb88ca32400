"""What each transition leaves of a task: the table of DESIGN.md, section 3.1, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import DAY, LEASE, NOW, Time, claim, enqueue, foreign_record, read, record
from thunderagent import transitions
from thunderagent.store.memory import MemoryStore
from thunderagent.task import ERROR_BYTES, HISTORY_ERROR_CHARS, ErrorType, Outcome, OutcomeKind, Status, Task, TaskError
from thunderagent.transitions import Lease, Transition

KEPT = NOW + 14 * DAY
END = NOW + LEASE

OK = Outcome(OutcomeKind.SUCCESS, result={"rows": 3})
BROKEN = Outcome(OutcomeKind.FAILED, error=TaskError("ValueError", "no such column", NOW))
RETRIED = Outcome(OutcomeKind.RETRY, error=TaskError("OSError", "connection reset", NOW))
RELEASED = Outcome(OutcomeKind.RELEASED)

THE_ERROR = {"type": "ValueError", "message": "no such column", "at": NOW}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(Time())


def apply(store: MemoryStore, write: Transition) -> Task:
    """Carry out a write that must go through, and return the task."""
    applied = store.apply(write, want_task=True)
    assert applied.ok
    assert not applied.repeated
    assert applied.task is not None
    return applied.task


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Attributes that differ, as they stand afterwards; None: gone."""
    names = before.keys() | after.keys()
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


# --- the rows of the table ----------------------------------------------------------------------------------------------


def test_enqueue_writes_the_published_attributes_whole(store: MemoryStore) -> None:
    apply(store, transitions.enqueue("t", {"n": 1}, now=NOW, token="E1"))

    assert record(store) == {
        "taskId": "t",
        "status": "PENDING",
        "payload": {"n": 1},
        "retryCount": 0,
        "maxRetry": 3,
        "lockTime": NOW,
        "createdAt": NOW,
        "updatedAt": NOW,
        "enqueueToken": "E1",
        "waitingFor": [],
    }


@pytest.mark.parametrize(
    ("not_before", "lock_time"),
    [
        pytest.param(NOW + 60, NOW + 60, id="later"),
        pytest.param(NOW - 60, NOW, id="in the past, which is now"),
    ],
)
def test_enqueue_writes_when_the_task_may_run(store: MemoryStore, not_before: int, lock_time: int) -> None:
    assert enqueue(store, not_before=not_before).lock_time == lock_time


def test_enqueue_writes_what_the_task_waits_for_and_since_when(store: MemoryStore) -> None:
    task = enqueue(store, payload={"dependsOn": ["x", "y", "x"]})

    assert (task.waiting_for, task.waiting_since, task.is_waiting) == (("x", "y"), NOW, True)


def held(store: MemoryStore, **options: Any) -> Lease:
    """A lease on a task that has been through everything before: a retry, a release, an error and progress."""
    store.put_record(
        foreign_record(
            "t",
            retryCount=1,
            releaseCount=2,
            lastToken="T0",
            error=THE_ERROR,
            progress={"row": 5},
            waitingFor=[],
            enqueueToken="E1",
            lockTime=NOW,
        )
    )
    return claim(store, **options)


def ran(outcome: str, error: str = "") -> list[dict[str, Any]]:
    run: dict[str, Any] = {"owner": "a", "began": NOW, "ended": NOW + 9, "outcome": outcome}
    return [run | {"error": error}] if error else [run]


def test_claim_takes_the_lease_and_changes_nothing_else(store: MemoryStore) -> None:
    before = foreign_record("t", retryCount=1, waitingFor=["x"], waitingSince=NOW - 50)
    store.put_record(before)
    claim(store)

    assert changed(before, dict(record(store))) == {
        "status": "RUNNING",
        "lockTime": END,
        "lockOwner": "a",
        "lockToken": "T1",
        "waitingFor": [],
        "waitingSince": None,
        "updatedAt": NOW,
    }


def test_claim_frees_a_task_that_was_set_back_by_hand_from_its_time_to_live(store: MemoryStore) -> None:
    store.put_record(foreign_record("t", expiresAt=KEPT))

    assert claim(store).task.expires_at is None


@pytest.mark.parametrize(
    ("build", "effect"),
    [
        pytest.param(
            lambda lease: transitions.renew(lease.trying(NOW + 400), lease_end=NOW + 400),
            {"lockTime": NOW + 400},
            id="renew moves the end of the lease alone",
        ),
        pytest.param(
            lambda lease: transitions.renew(lease.trying(NOW + 400), lease_end=NOW + 400, progress={"row": 7}),
            {"lockTime": NOW + 400, "progress": {"row": 7}},
            id="renew saves the progress that there is",
        ),
        pytest.param(
            lambda lease: transitions.complete(lease, OK, now=NOW + 9, expires_at=KEPT),
            {
                "status": "SUCCESS",
                "result": {"rows": 3},
                "error": None,
                "progress": None,
                "expiresAt": KEPT,
                "history": ran("success"),
            },
            id="complete writes the result and removes error and progress",
        ),
        pytest.param(
            lambda lease: transitions.complete(lease, Outcome(OutcomeKind.DONE), now=NOW + 9, expires_at=KEPT),
            {"status": "DONE", "error": None, "progress": None, "expiresAt": KEPT, "history": ran("done")},
            id="complete is DONE when the handler says so",
        ),
        pytest.param(
            lambda lease: transitions.retry(lease, RETRIED, now=NOW + 9, delay=8.2),
            {
                "status": "PENDING",
                "retryCount": 2,
                "lockTime": NOW + 18,
                "error": {"type": "OSError", "message": "connection reset", "at": NOW},
                "history": ran("retry", "OSError: connection reset"),
            },
            id="retry charges a retry and waits, rounded up",
        ),
        pytest.param(
            lambda lease: transitions.fail(lease, BROKEN, now=NOW + 9, expires_at=KEPT, progress={"row": 8}),
            {
                "status": "FAILED",
                "error": THE_ERROR,
                "progress": {"row": 8},
                "expiresAt": KEPT,
                "history": ran("failed", "ValueError: no such column"),
            },
            id="fail keeps the progress for a redrive",
        ),
        pytest.param(
            lambda lease: transitions.release(lease, RELEASED, now=NOW + 9, delay=0),
            {"status": "PENDING", "releaseCount": 3, "lockTime": NOW + 9, "history": ran("released")},
            id="release charges nothing and is counted",
        ),
    ],
)
def test_a_write_under_a_lease_has_the_effect_of_its_row(
    store: MemoryStore, build: Callable[[Lease], Transition], effect: dict[str, Any]
) -> None:
    lease = held(store)
    before = dict(record(store))
    apply(store, build(lease))

    left: dict[str, Any] = {}
    if "status" in effect:
        left = {"lockTime": None, "lockOwner": None, "lockToken": None, "lastToken": "T1", "updatedAt": NOW + 9}
    expected = {name: value for name, value in (left | effect).items() if value != before.get(name)}
    assert changed(before, dict(record(store))) == expected


def test_take_over_charges_the_lost_run_and_tells_of_it(store: MemoryStore) -> None:
    held(store)
    before = dict(record(store))
    write = transitions.take_over(read(store), now=END, lease_end=END + 300, owner="b", token="T2")
    apply(store, write)

    assert changed(before, dict(record(store))) == {
        "lockTime": END + 300,
        "lockOwner": "b",
        "lockToken": "T2",
        "retryCount": 2,
        "updatedAt": END,
        "history": [{"owner": "a", "began": NOW, "ended": END, "outcome": "lost", "error": "LeaseExpired"}],
    }


def test_take_over_removes_what_a_program_that_does_not_know_it_left_behind(store: MemoryStore) -> None:
    store.put_record(foreign_record("t", status="RUNNING", waitingFor=["x"], waitingSince=NOW - 50, expiresAt=KEPT))
    task = apply(store, transitions.take_over(read(store), now=NOW, lease_end=END, owner="b", token="T2"))

    assert (task.waiting_for, task.waiting_since, task.expires_at) == ((), None, None)


def test_bury_ends_a_lost_run_that_had_no_retry_left_and_says_who_lost_it(store: MemoryStore) -> None:
    enqueue(store, max_retry=0)
    claim(store, owner="pool/host-1/4711")
    task = apply(store, transitions.bury(read(store), now=END, expires_at=KEPT))

    assert task.status is Status.FAILED
    assert task.error is not None
    assert task.error.type == "LeaseExpired"
    assert "pool/host-1/4711" in task.error.message
    assert "0 of 0" in task.error.message
    assert (task.last_token, task.lock_token, task.lock_owner, task.lock_time) == ("T1", None, None, None)
    assert (task.retry_count, task.expires_at) == (0, KEPT)
    assert [run.outcome for run in task.history] == ["lost"]


def test_defer_looks_again_later_for_what_is_unmet_and_keeps_since_when_it_waits(store: MemoryStore) -> None:
    before = dict(enqueue(store, payload={"dependsOn": ["x", "y"]}).record)
    apply(store, transitions.defer(read(store), now=NOW + 5, wait=2.5, unmet=["y"]))

    assert changed(before, dict(record(store))) == {"lockTime": NOW + 8, "waitingFor": ["y"], "updatedAt": NOW + 5}


def test_defer_of_a_task_of_another_program_begins_its_wait(store: MemoryStore) -> None:
    store.put_record(foreign_record("t", payload={"dependsOn": "x"}))

    task = apply(store, transitions.defer(read(store), now=NOW, wait=1, unmet=["x"]))

    assert (task.waiting_for, task.waiting_since) == (("x",), NOW)


def test_unblock_makes_the_task_ready_for_any_agent(store: MemoryStore) -> None:
    before = dict(enqueue(store, payload={"dependsOn": "x"}).record)
    task = apply(store, transitions.unblock(read(store), now=NOW + 5))

    assert not task.is_waiting
    assert changed(before, dict(record(store))) == {
        "lockTime": NOW + 5,
        "waitingFor": [],
        "waitingSince": None,
        "updatedAt": NOW + 5,
    }


def test_abandon_ends_a_waiting_task_and_says_why(store: MemoryStore) -> None:
    before = dict(enqueue(store, payload={"dependsOn": "x"}).record)
    apply(
        store,
        transitions.abandon(read(store), TaskError(ErrorType.DEPENDENCY_FAILED, "x failed", NOW), now=NOW, expires_at=KEPT),
    )

    assert changed(before, dict(record(store))) == {
        "status": "FAILED",
        "error": {"type": "DependencyFailed", "message": "x failed", "at": NOW},
        "expiresAt": KEPT,
        "lockTime": None,
        "waitingSince": None,
    }


def test_cancel_of_a_running_task_keeps_the_time_at_which_its_lease_ends(store: MemoryStore) -> None:
    held(store)
    before = dict(record(store))
    apply(store, transitions.cancel(read(store), now=NOW + 9, expires_at=KEPT, reason="Wrong input."))

    assert changed(before, dict(record(store))) == {
        "status": "FAILED",
        "error": {"type": "Cancelled", "message": "Wrong input.", "at": NOW + 9},
        "expiresAt": KEPT,
        "lockOwner": None,
        "lockToken": None,
        "lastToken": "T1",
        "updatedAt": NOW + 9,
        "history": ran("cancelled"),
    }


def test_cancel_of_a_ready_task_leaves_no_time(store: MemoryStore) -> None:
    enqueue(store, payload={"dependsOn": "x"})
    task = apply(store, transitions.cancel(read(store), now=NOW, expires_at=KEPT))

    assert (task.status, task.lock_time, task.waiting_since, task.last_token) == (Status.FAILED, None, None, None)


def cancelled(store: MemoryStore, now: int) -> Task:
    return apply(store, transitions.cancel(read(store), now=now, expires_at=KEPT))


def redriven(store: MemoryStore, now: int, token: str = "E2") -> Task:
    return apply(store, transitions.redrive(read(store), now=now, token=token))


def test_redrive_gives_all_retries_again_and_removes_the_outcome_but_not_the_progress(store: MemoryStore) -> None:
    apply(store, transitions.fail(held(store), BROKEN, now=NOW + 9, expires_at=KEPT))
    before = dict(record(store))
    redriven(store, NOW + 20)

    assert changed(before, dict(record(store))) == {
        "status": "PENDING",
        "retryCount": 0,
        "lockTime": NOW + 20,
        "updatedAt": NOW + 20,
        "enqueueToken": "E2",
        "error": None,
        "expiresAt": None,
    }
    assert record(store)["progress"] == {"row": 5}


def test_redrive_waits_for_the_lease_that_a_cancel_left(store: MemoryStore) -> None:
    held(store)
    cancelled(store, NOW + 9)

    assert redriven(store, NOW + 10).lock_time == END


def test_redrive_waits_for_that_lease_also_after_a_second_cancel(store: MemoryStore) -> None:
    held(store)
    cancelled(store, NOW + 9)
    redriven(store, NOW + 10)
    cancelled(store, NOW + 11)

    assert redriven(store, NOW + 12, "E3").lock_time == END


def test_redrive_does_not_wait_for_a_lease_that_is_over(store: MemoryStore) -> None:
    held(store)
    cancelled(store, NOW + 9)

    assert redriven(store, END + 50).lock_time == END + 50


def test_redrive_looks_at_the_dependencies_anew(store: MemoryStore) -> None:
    enqueue(store, payload={"dependsOn": ["x", "y"]})
    apply(store, transitions.defer(read(store), now=NOW, wait=1, unmet=["y"]))
    failed = TaskError(ErrorType.DEPENDENCY_FAILED, "y failed", NOW)
    apply(store, transitions.abandon(read(store), failed, now=NOW + 5, expires_at=KEPT))

    task = redriven(store, NOW + 20)

    assert (task.waiting_for, task.waiting_since) == (("x", "y"), NOW + 20)


def test_redrive_removes_the_lease_that_another_program_left_when_it_failed_the_task(store: MemoryStore) -> None:
    lease = held(store)
    store.put_record({**lease.task.record, "status": "FAILED"})

    task = redriven(store, NOW + 5)

    assert (task.lock_owner, task.lock_token, task.lock_time) == (None, None, END)


# --- leases -------------------------------------------------------------------------------------------------------------


def test_a_renewal_of_unknown_outcome_leaves_either_end_as_ones_own(store: MemoryStore) -> None:
    lease = held(store)
    trying = lease.trying(NOW + 400)
    apply(store, transitions.renew(trying, lease_end=NOW + 400))

    # The reply was lost: neither the next renewal nor the outcome may depend on which end is in the table.
    apply(store, transitions.renew(trying.trying(NOW + 500), lease_end=NOW + 500))
    assert trying.ends == END
    assert trying.renewed(NOW + 500).ends == NOW + 500
    assert trying.trying(NOW + 400) == trying


def test_a_renewal_that_never_arrived_leaves_the_acknowledged_end_as_ones_own(store: MemoryStore) -> None:
    lease = held(store).trying(NOW + 400)

    apply(store, transitions.complete(lease, OK, now=NOW + 9, expires_at=KEPT))


# --- what others have done to an attribute ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retries", "counted"),
    [
        pytest.param("2", 2, id="text"),
        pytest.param(None, 0, id="absent"),
        pytest.param(True, 0, id="true"),
        pytest.param(1.5, 1, id="a fraction"),
    ],
)
def test_retries_of_any_type_are_counted_on_as_a_number(store: MemoryStore, retries: Any, counted: int) -> None:
    store.put_record(foreign_record("t", retryCount=retries))

    apply(store, transitions.retry(claim(store), RETRIED, now=NOW, delay=0))

    assert record(store)["retryCount"] == counted + 1


# --- bounds -------------------------------------------------------------------------------------------------------------


def test_the_last_five_runs_are_kept(store: MemoryStore) -> None:
    enqueue(store)
    for number in range(7):
        lease = claim(store, token=f"T{number}", owner=f"agent-{number}")
        apply(store, transitions.release(lease, RELEASED, now=NOW, delay=0))

    assert [run.owner for run in read(store).history] == [f"agent-{number}" for number in range(2, 7)]


def test_a_long_error_is_cut_and_still_readable(store: MemoryStore) -> None:
    enqueue(store)
    error = TaskError("ValueError", "ü" * 10_000 + "\ud800", NOW)
    apply(store, transitions.fail(claim(store), Outcome(OutcomeKind.FAILED, error=error), now=NOW, expires_at=KEPT))

    task = read(store)
    assert task.error is not None
    assert len(task.error.message.encode()) <= ERROR_BYTES
    assert task.error.message.startswith("üüü")
    assert task.error.message.endswith("…")
    assert len(task.history[0].error) <= HISTORY_ERROR_CHARS


# --- proofs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda lease: transitions.retry(lease, RETRIED, now=NOW + 9, delay=0), id="retry"),
        pytest.param(lambda lease: transitions.release(lease, RELEASED, now=NOW + 9, delay=0), id="release"),
        pytest.param(lambda lease: transitions.fail(lease, BROKEN, now=NOW + 9, expires_at=KEPT), id="fail"),
        pytest.param(lambda lease: transitions.complete(lease, OK, now=NOW + 9, expires_at=KEPT), id="complete"),
    ],
)
def test_a_cancel_and_a_redrive_are_not_taken_for_ones_own_outcome(
    store: MemoryStore, build: Callable[[Lease], Transition]
) -> None:
    lease = held(store)
    cancelled(store, NOW + 9)
    assert not store.apply(build(lease)).ok
    redriven(store, NOW + 10)

    assert not store.apply(build(lease)).ok
