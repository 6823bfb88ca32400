"""TaskQueue as an application uses it, over the in-memory store, with its own time, sleep and chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import pytest

from tests.builders import DAY, LEASE, NOW, Time, claim, foreign_record, put_pending, statuses
from tests.unreliable import UnreliableStore
from thunderagent import transitions
from thunderagent.errors import (
    DependencyUnknown,
    EnqueueIncomplete,
    InvalidInput,
    InvalidValue,
    NotATask,
    StoreUnavailable,
    TaskChanged,
    TaskExists,
    TaskNotCancellable,
    TaskNotFound,
    TaskNotRedrivable,
    ValueTooLarge,
    WaitTimeout,
)
from thunderagent.queue import WRITE_TRIES, NewTask, TaskQueue
from thunderagent.settings import QueueSettings
from thunderagent.store import Cursor, Page
from thunderagent.store.memory import MemoryStore
from thunderagent.task import ErrorType, Outcome, OutcomeKind, Status, Task, TaskError

FAILED = Outcome(OutcomeKind.FAILED, error=TaskError("ValueError", "broken", NOW))


@dataclass
class World:
    """A queue, the table under it, and the time of both."""

    time: Time
    memory: MemoryStore
    store: UnreliableStore
    queue: TaskQueue
    told: list[str]

    def succeed(self, task_id: str) -> None:
        lease = claim(self.memory, task_id, now=self.memory.now(), token=f"T-{task_id}-{self.time.now}")
        done = transitions.complete(lease, Outcome(OutcomeKind.SUCCESS), now=self.memory.now(), expires_at=NOW + DAY)
        assert self.memory.apply(done).ok

    def fail(self, task_id: str) -> None:
        lease = claim(self.memory, task_id, now=self.memory.now(), token=f"T-{task_id}-{self.time.now}")
        assert self.memory.apply(transitions.fail(lease, FAILED, now=self.memory.now(), expires_at=NOW + DAY)).ok

    def abandon(self, task_id: str, because: str) -> None:
        error = TaskError(ErrorType.DEPENDENCY_FAILED, f"The dependency {because} failed.", NOW)
        write = transitions.abandon(self.queue.get(task_id), error, now=self.memory.now(), expires_at=NOW + DAY)
        assert self.memory.apply(write).ok


@pytest.fixture
def world() -> World:
    time = Time()
    memory = MemoryStore(time)
    store = UnreliableStore(memory)
    told: list[str] = []
    queue = TaskQueue(
        store=store,
        settings=QueueSettings(max_retry=2, keep_days=7, parallel=4),
        on_enqueued=told.append,
        rng=random.Random(7),
        sleep=time.sleep,
        monotonic=time,
    )
    return World(time, memory, store, queue, told)


# --- enqueue ------------------------------------------------------------------------------------------------------------


def test_enqueue_returns_the_task_as_the_table_has_it(world: World) -> None:
    task = world.queue.enqueue({"year": 2026}, task_id="report-1", task_type="report", max_retry=5)

    assert task == world.queue.get("report-1")
    assert (task.status, task.payload, task.task_type, task.max_retry) == (Status.PENDING, {"year": 2026}, "report", 5)
    assert task.lock_time == task.created_at == NOW
    assert world.told == ["report-1"]


def test_enqueue_without_options_takes_an_id_of_its_own_and_the_settings(world: World) -> None:
    first, second = world.queue.enqueue(), world.queue.enqueue()

    assert first.task_id != second.task_id
    assert (first.payload, first.max_retry, first.task_type) == ({}, 2, None)


@pytest.mark.parametrize(
    ("options", "runs_from"),
    [
        pytest.param({"delay": 90}, NOW + 90, id="a delay"),
        pytest.param({"delay": 0.2}, NOW + 1, id="a part of a second, never too early"),
        pytest.param({"delay": Decimal("1.5")}, NOW + 2, id="a decimal delay"),
        pytest.param({"delay": 0}, NOW, id="no delay"),
        pytest.param({"not_before": NOW + 500}, NOW + 500, id="a time"),
        pytest.param({"not_before": NOW + 499.1}, NOW + 500, id="a time with a fraction"),
        pytest.param({"not_before": 0}, NOW, id="a time that has passed"),
    ],
)
def test_enqueue_takes_when_a_task_may_run(world: World, options: dict[str, Any], runs_from: int) -> None:
    assert world.queue.enqueue(**options).lock_time == runs_from


def test_enqueue_of_a_taken_id_says_what_is_there(world: World) -> None:
    world.queue.enqueue({"first": True}, task_id="t")

    with pytest.raises(TaskExists, match="t exists: it is PENDING"):
        world.queue.enqueue({"second": True}, task_id="t")

    assert world.queue.get("t").payload == {"first": True}
    assert world.told == ["t"]


def test_enqueue_of_a_taken_id_returns_the_task_that_has_it_when_asked_to(world: World) -> None:
    world.queue.enqueue({"first": True}, task_id="t")
    world.succeed("t")

    task = world.queue.enqueue({"second": True}, task_id="t", if_exists="return")

    assert (task.payload, task.status) == ({"first": True}, Status.SUCCESS)


def test_enqueue_over_an_item_that_is_no_task_says_so(world: World) -> None:
    world.memory.put_record(foreign_record("t", status="ARCHIVED"))

    with pytest.raises(TaskExists, match="no task"):
        world.queue.enqueue(task_id="t")
    with pytest.raises(NotATask, match="ARCHIVED"):
        world.queue.enqueue(task_id="t", if_exists="return")


@pytest.mark.parametrize(
    ("lost_requests", "lost_replies"),
    [
        pytest.param(0, 1, id="the reply is lost"),
        pytest.param(0, WRITE_TRIES - 1, id="every reply but the last is lost"),
        pytest.param(2, 2, id="requests are lost and then replies"),
    ],
)
def test_enqueue_succeeds_exactly_once_however_often_the_network_fails(
    world: World, lost_requests: int, lost_replies: int
) -> None:
    world.store.lost_requests, world.store.lost_replies = lost_requests, lost_replies

    task = world.queue.enqueue({"n": 1}, task_id="t")

    assert task.payload == {"n": 1}
    assert len(world.memory.records()) == 1
    assert world.told == ["t"]
    assert len(world.time.slept) == lost_requests + lost_replies


def test_enqueue_gives_up_after_some_tries_and_may_be_repeated(world: World) -> None:
    world.store.lost_replies = WRITE_TRIES

    with pytest.raises(StoreUnavailable):
        world.queue.enqueue({"n": 1}, task_id="t")

    assert world.queue.enqueue({"n": 1}, task_id="t", if_exists="return").payload == {"n": 1}
    assert len(world.memory.records()) == 1


# --- wrong input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param({"payload": ["a"]}, "payload is a list", id="a payload that is a list"),
        pytest.param({"payload": ""}, "payload is a str", id="a payload that is an empty text"),
        pytest.param({"payload": {"at": object()}}, "payload.at is a object", id="a payload that cannot be kept"),
        pytest.param({"payload": {1: "a"}}, "payload has the key 1", id="a key that is a number"),
        pytest.param({"task_id": ""}, "task_id is ''", id="an empty id"),
        pytest.param({"task_id": 5}, "task_id is 5", id="an id that is a number"),
        pytest.param({"task_id": "ü" * 1025}, "task_id is longer than 2048 bytes", id="an id that is too long"),
        pytest.param({"task_id": "\ud800"}, "task_id has a lone surrogate", id="an id that is no Unicode text"),
        pytest.param({"task_type": ""}, "task_type is ''", id="an empty type"),
        pytest.param({"task_type": 5}, "task_type is 5", id="a type that is a number"),
        pytest.param({"max_retry": -1}, "max_retry is -1", id="fewer retries than none"),
        pytest.param({"max_retry": 1001}, "max_retry is 1001", id="too many retries"),
        pytest.param({"max_retry": 1.5}, "max_retry is 1.5", id="half a retry"),
        pytest.param({"max_retry": True}, "max_retry is True", id="retries that are true"),
        pytest.param({"max_retry": "3"}, "max_retry is '3'", id="retries as text"),
        pytest.param({"delay": -1}, "delay is -1", id="a delay into the past"),
        pytest.param({"delay": "60"}, "delay is '60'", id="a delay as text"),
        pytest.param({"delay": float("nan")}, "delay is nan", id="a delay that is no number"),
        pytest.param({"delay": Decimal("NaN")}, "delay is Decimal('NaN')", id="a delay that is no decimal number"),
        pytest.param({"delay": float("inf")}, "delay is inf", id="a delay for ever"),
        pytest.param({"not_before": -1}, "not_before is -1", id="a time before 1970"),
        pytest.param({"not_before": NOW * 1000}, f"not_before is {NOW * 1000}", id="a time in milliseconds"),
        pytest.param({"delay": 1, "not_before": NOW}, "delay and not_before", id="a delay and a time"),
        pytest.param({"depends_on": [1, 2]}, "in depends_on is 1", id="dependencies that are numbers"),
        pytest.param({"depends_on": ""}, "in depends_on is ''", id="a dependency without a name"),
        pytest.param({"depends_on": 7}, "depends_on is 7", id="a dependency that is a number"),
        pytest.param({"depends_on": iter(["a"])}, "depends_on is <list_iterator", id="dependencies to be read once"),
        pytest.param(
            {"payload": {"dependsOn": 7}}, "payload.dependsOn is 7", id="a dependency in the payload that is a number"
        ),
        pytest.param({"payload": {"dependsOn": "a"}, "depends_on": "b"}, "both given", id="dependencies in two places"),
        pytest.param({"task_id": "t", "depends_on": ["t"]}, "t depends on itself", id="a task that waits for itself"),
        pytest.param({"if_exists": "ignore"}, "if_exists is 'ignore'", id="an unknown wish for a taken id"),
    ],
)
def test_enqueue_refuses_what_it_cannot_mean_and_writes_nothing(world: World, options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.queue.enqueue(**options, check_dependencies=False)

    assert named in str(refused.value)
    assert world.memory.records() == {}


@pytest.mark.parametrize(
    ("call", "named"),
    [
        pytest.param(lambda queue: queue.get(""), "task_id is ''", id="get"),
        pytest.param(lambda queue: queue.get(None), "task_id is None", id="get of nothing"),
        pytest.param(lambda queue: queue.wait("t", -1), "timeout is -1", id="wait"),
        pytest.param(lambda queue: queue.wait("t", float("nan")), "timeout is nan", id="wait for no number of seconds"),
        pytest.param(lambda queue: queue.cancel(7), "task_id is 7", id="cancel"),
        pytest.param(lambda queue: queue.redrive(""), "task_id is ''", id="redrive"),
        pytest.param(lambda queue: queue.tasks("WAITING"), "status is 'WAITING'", id="tasks"),
        pytest.param(lambda queue: queue.stats(0), "limit is 0", id="stats"),
        pytest.param(lambda queue: queue.enqueue_many([{"n": 1}]), "given a dict", id="enqueue many"),
    ],
)
def test_every_other_door_refuses_what_it_cannot_mean(world: World, call: Callable[[TaskQueue], Any], named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        call(world.queue)

    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        pytest.param({"small": 1, "rows": ["x" * 1000] * 400}, "payload.rows", id="a list"),
        pytest.param({"text": "x" * 400_000}, "payload.text", id="a text"),
        pytest.param(
            {"dependsOn": ["x" * 1000 + str(number) for number in range(300)]}, "payload.dependsOn", id="dependencies"
        ),
    ],
)
def test_a_payload_that_leaves_no_room_for_a_run_is_refused_by_its_largest_field(
    world: World, payload: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValueTooLarge, match=f"the largest part is {field} with"):
        world.queue.enqueue(payload, check_dependencies=False)

    assert world.memory.records() == {}


def test_a_payload_that_just_fits_can_be_run_to_its_end(world: World) -> None:
    world.queue.enqueue({"text": "x" * 392_000}, task_id="t")
    error = TaskError("ValueError", "x" * 10_000, NOW)
    for number in range(6):
        world.memory.put_record(world.memory.records()["t"] | {"lockTime": 0, "status": "PENDING"})
        lease = claim(world.memory, "t", token=f"T{number}", owner="p" * 60 + "/" + "h" * 60 + "/" + "u" * 60)
        write = transitions.retry(lease, Outcome(OutcomeKind.RETRY, error=error), now=NOW, delay=0)
        assert world.memory.apply(write).ok


# --- dependencies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depends_on", ["a", ["a"], ("a", "a"), {"a"}, frozenset({"a"})], ids=repr)
def test_dependencies_are_given_as_an_id_or_several(world: World, depends_on: Any) -> None:
    world.queue.enqueue(task_id="a")

    task = world.queue.enqueue({"n": 1}, depends_on=depends_on)

    assert (task.payload, task.waiting_for, task.dependencies) == ({"n": 1, "dependsOn": ["a"]}, ("a",), ("a",))


def test_dependencies_in_the_payload_count_as_well(world: World) -> None:
    with pytest.raises(DependencyUnknown):
        world.queue.enqueue({"dependsOn": "a"})


def test_a_dependency_that_is_not_in_the_table_is_named_and_nothing_is_written(world: World) -> None:
    world.queue.enqueue(task_id="a")

    with pytest.raises(DependencyUnknown, match="names b, c, not in the table"):
        world.queue.enqueue(task_id="t", depends_on=["a", "b", "c"])
    with pytest.raises(DependencyUnknown, match=r"m-0, m-1, m-2, m-3, m-4 and others"):
        world.queue.enqueue(task_id="t", depends_on=[f"m-{number}" for number in range(9)])

    assert world.memory.records().keys() == {"a"}


def test_a_dependency_need_not_be_there_when_one_says_so(world: World) -> None:
    assert world.queue.enqueue(depends_on="later", check_dependencies=False).waiting_for == ("later",)


def test_a_dependency_that_could_not_be_read_is_not_called_missing(world: World) -> None:
    world.store.unknown = {"a"}

    assert world.queue.enqueue(depends_on="a").is_waiting


def test_a_task_that_is_there_may_be_enqueued_again_when_its_dependency_has_gone(world: World) -> None:
    world.queue.enqueue(task_id="t", depends_on="gone", check_dependencies=False)

    assert world.queue.enqueue(task_id="t", depends_on="gone", if_exists="return").is_waiting
    assert world.queue.enqueue_many([NewTask(task_id="t", depends_on="gone")]).existing == ("t",)
    with pytest.raises(DependencyUnknown, match="names gone, not in the table"):
        world.queue.enqueue_many([NewTask(task_id="t", depends_on="gone"), NewTask(task_id="new", depends_on="gone")])


def test_tasks_of_a_batch_may_depend_on_each_other_in_any_order(world: World) -> None:
    world.queue.enqueue(task_id="before")
    tasks = [NewTask(task_id="index", depends_on=["page", "before"]), NewTask(task_id="page")]

    report = world.queue.enqueue_many(tasks)

    assert set(report.enqueued) == {"index", "page"}
    assert world.store.asked == [{"before"}]


def test_a_batch_with_a_dependency_that_is_nowhere_is_not_begun(world: World) -> None:
    tasks = [NewTask(task_id=f"t{number}", depends_on="nowhere" if number == 250 else ()) for number in range(300)]

    with pytest.raises(DependencyUnknown, match="nowhere"):
        world.queue.enqueue_many(tasks)

    assert world.memory.records() == {}


# --- enqueue_many -------------------------------------------------------------------------------------------------------


def test_a_batch_of_any_size_is_put_into_the_table(world: World) -> None:
    report = world.queue.enqueue_many(NewTask({"n": number}, task_id=f"t{number}") for number in range(500))

    assert set(report.enqueued) == set(world.memory.records()) == set(world.told)
    assert report.existing == ()
    assert len(report.enqueued) == 500


def test_no_tasks_are_enqueued_without_complaint(world: World) -> None:
    report = world.queue.enqueue_many([])

    assert (report.enqueued, report.existing) == ((), ())


def test_a_batch_that_failed_in_part_says_which_and_can_be_run_again(world: World) -> None:
    tasks = [NewTask({"n": number}, task_id=f"t{number}") for number in range(20)]
    world.queue.enqueue({"mine": True}, task_id="t0")
    world.store.unreachable = {"t3", "t7"}
    world.store.lost_replies = 1

    with pytest.raises(EnqueueIncomplete, match="2 of 20 tasks are not in the table") as incomplete:
        world.queue.enqueue_many(tasks)

    assert incomplete.value.failed.keys() == {"t3", "t7"}
    assert all(isinstance(error, StoreUnavailable) for error in incomplete.value.failed.values())
    assert incomplete.value.existing == ["t0"]
    assert set(incomplete.value.enqueued) == set(world.memory.records()) - {"t0"}
    assert len(incomplete.value.enqueued) == 17

    world.store.unreachable = set()
    report = world.queue.enqueue_many(tasks)

    assert set(report.enqueued) == {"t3", "t7"}
    assert len(report.existing) == 18
    assert world.queue.get("t0").payload == {"mine": True}
    assert sorted(world.told) == sorted(world.memory.records())


def test_a_batch_with_a_task_that_cannot_be_kept_puts_in_the_others(world: World) -> None:
    tasks = [NewTask(task_id="good"), NewTask({"at": object()}, task_id="bad")]

    with pytest.raises(EnqueueIncomplete) as incomplete:
        world.queue.enqueue_many(tasks)

    assert isinstance(incomplete.value.failed["bad"], InvalidValue)
    assert world.memory.records().keys() == {"good"}


def test_a_batch_with_a_task_that_means_nothing_is_not_begun(world: World) -> None:
    with pytest.raises(InvalidInput, match="max_retry is -1"):
        world.queue.enqueue_many([NewTask(task_id="good"), NewTask(task_id="bad", max_retry=-1)])

    assert world.memory.records() == {}


def test_the_same_new_task_is_the_same_task(world: World) -> None:
    new = NewTask({"n": 1})
    first = world.queue.enqueue_many([new, new])
    second = world.queue.enqueue_many([new])

    assert (first.enqueued, first.existing) == ((new.task_id,), (new.task_id,))
    assert (second.enqueued, second.existing) == ((), (new.task_id,))


# --- look ---------------------------------------------------------------------------------------------------------------


def test_get_of_an_unknown_task_says_that_there_is_none(world: World) -> None:
    with pytest.raises(TaskNotFound, match="no task t"):
        world.queue.get("t")


@dataclass
class Sleeper:
    """Sleeps in the world's time, and lets something happen after a number of sleeps."""

    world: World
    after: int
    happens: Callable[[], object]

    def __call__(self, seconds: float) -> None:
        self.world.time.sleep(seconds)
        if len(self.world.time.slept) == self.after:
            self.happens()


def waiting_queue(world: World, after: int, happens: Callable[[], object]) -> TaskQueue:
    return TaskQueue(store=world.store, sleep=Sleeper(world, after, happens), monotonic=world.time)


def test_wait_returns_the_task_once_it_has_ended(world: World) -> None:
    world.queue.enqueue(task_id="t")

    task = waiting_queue(world, 3, lambda: world.succeed("t")).wait("t", timeout=60)

    assert task.status is Status.SUCCESS
    assert len(world.time.slept) == 3


def test_wait_without_a_limit_looks_at_growing_intervals_of_at_most_five_seconds(world: World) -> None:
    world.queue.enqueue(task_id="t")

    waiting_queue(world, 30, lambda: world.fail("t")).wait("t")

    assert world.time.slept == sorted(world.time.slept)
    assert world.time.slept[0] == 0.1
    assert world.time.slept[-1] == 5.0


@pytest.mark.parametrize("timeout", [0, 0.05, 1, 7.5])
def test_wait_ends_at_its_limit_with_the_state_of_the_task(world: World, timeout: float) -> None:
    world.queue.enqueue(task_id="t")

    with pytest.raises(WaitTimeout, match=f"t is still PENDING after {timeout:g} s"):
        world.queue.wait("t", timeout)

    assert sum(world.time.slept) == pytest.approx(timeout)
    assert isinstance(WaitTimeout("x"), TimeoutError)


def test_wait_looks_a_last_time_when_its_limit_has_come(world: World) -> None:
    world.queue.enqueue(task_id="t")

    assert waiting_queue(world, 1, lambda: world.succeed("t")).wait("t", 0.05).status is Status.SUCCESS


def test_wait_sits_out_a_table_that_cannot_be_reached(world: World) -> None:
    world.queue.enqueue(task_id="t")
    world.store.lost_reads = 2

    assert waiting_queue(world, 3, lambda: world.succeed("t")).wait("t", timeout=60).status is Status.SUCCESS
    world.store.lost_reads = 1000
    with pytest.raises(WaitTimeout, match="t is not known, since the table cannot be reached, after 5 s"):
        world.queue.wait("t", timeout=5)


def test_wait_for_an_unknown_task_says_that_there_is_none(world: World) -> None:
    with pytest.raises(TaskNotFound):
        world.queue.wait("t", 5)


@pytest.mark.parametrize("newest_first", [False, True])
def test_tasks_of_a_status_are_iterated_across_pages_by_age(world: World, newest_first: bool) -> None:
    names = [f"t{number:03}" for number in range(250)]
    put_pending(world.memory, *names)
    put_pending(world.memory, "other", status="FAILED")

    read = [task.task_id for task in world.queue.tasks(Status.PENDING, newest_first=newest_first)]

    assert read == (names[::-1] if newest_first else names)
    assert world.store.pages == 3


def test_tasks_are_read_page_by_page_as_they_are_wanted(world: World) -> None:
    put_pending(world.memory, *(f"t{number}" for number in range(500)))

    tasks = world.queue.tasks(Status.PENDING)
    assert world.store.pages == 0
    next(tasks)

    assert world.store.pages == 1


def test_a_status_may_be_given_as_text(world: World) -> None:
    world.queue.enqueue(task_id="t")

    assert [task.task_id for task in world.queue.tasks(cast("Status", "PENDING"))] == ["t"]


def test_stats_count_every_status_and_flag_what_was_cut(world: World) -> None:
    put_pending(world.memory, *(f"p{number}" for number in range(30)))
    put_pending(world.memory, *(f"f{number}" for number in range(4)), status="FAILED")
    put_pending(world.memory, "r", status="RUNNING", lockTime=NOW + 60, lockOwner="a")

    stats = world.queue.stats(limit=10)

    assert stats.counts == {
        Status.PENDING: 10,
        Status.RUNNING: 1,
        Status.SUCCESS: 0,
        Status.DONE: 0,
        Status.FAILED: 4,
    }
    assert stats.cut == {Status.PENDING}
    assert (stats.backlog.ready, stats.backlog.cut, stats.backlog.running) == (10, True, {"a": 1})


def test_stats_read_a_bounded_number_of_pages_however_many_tasks_there_are(world: World) -> None:
    put_pending(world.memory, *(f"p{number}" for number in range(3000)))
    put_pending(world.memory, *(f"r{number}" for number in range(3000)), status="RUNNING", lockTime=NOW + 60)

    world.queue.stats(limit=10)

    assert world.store.pages <= 20


# --- cancel -------------------------------------------------------------------------------------------------------------


def test_cancel_ends_a_task_that_has_not_begun(world: World) -> None:
    world.queue.enqueue(task_id="t")

    task = world.queue.cancel("t", reason="Not needed.")

    assert task == world.queue.get("t")
    assert task.status is Status.FAILED
    assert task.error == TaskError("Cancelled", "Not needed.", NOW)
    assert task.expires_at == NOW + 7 * DAY


def test_cancel_ends_a_task_that_runs_and_its_agent_can_write_no_more(world: World) -> None:
    world.queue.enqueue(task_id="t")
    lease = claim(world.memory)

    task = world.queue.cancel("t")

    assert (task.status, task.lock_time, task.lock_token) == (Status.FAILED, NOW + LEASE, None)
    renewal = transitions.renew(lease.trying(NOW + 400), lease_end=NOW + 400)
    assert not world.memory.apply(renewal).ok


def test_cancel_of_a_task_that_has_ended_says_how(world: World) -> None:
    world.queue.enqueue(task_id="t")
    world.succeed("t")

    with pytest.raises(TaskNotCancellable, match="ended as SUCCESS"):
        world.queue.cancel("t")
    with pytest.raises(TaskNotFound):
        world.queue.cancel("unknown")


def test_cancel_whose_reply_was_lost_is_done(world: World) -> None:
    world.memory.put_record(foreign_record("t"))
    world.store.lost_replies = 2

    assert world.queue.cancel("t").status is Status.FAILED


@dataclass
class Racing(UnreliableStore):
    """Somebody else is faster: what they do happens between a read and the write that follows it."""

    moves: int = 0
    move: Callable[[], object] = lambda: None

    def get(self, task_id: str) -> Task | None:
        task = self.inner.get(task_id)
        if self.moves > 0:
            self.moves -= 1
            self.move()
        return task


def racing_queue(world: World, moves: int, move: Callable[[], object]) -> TaskQueue:
    return TaskQueue(store=Racing(world.memory, moves=moves, move=move), rng=random.Random(1), sleep=world.time.sleep)


def test_cancel_of_a_task_that_is_claimed_meanwhile_cancels_the_run(world: World) -> None:
    world.queue.enqueue(task_id="t")

    task = racing_queue(world, 1, lambda: claim(world.memory)).cancel("t")

    assert (task.status, task.last_token) == (Status.FAILED, "T1")
    assert [run.outcome for run in task.history] == ["cancelled"]


def test_cancel_of_a_task_that_ends_meanwhile_says_how(world: World) -> None:
    world.queue.enqueue(task_id="t")

    with pytest.raises(TaskNotCancellable, match="SUCCESS"):
        racing_queue(world, 1, lambda: world.succeed("t")).cancel("t")


def test_cancel_of_a_task_that_never_stays_as_it_is_gives_up(world: World) -> None:
    world.queue.enqueue(task_id="t")

    def touch() -> None:
        world.memory.put_record(world.memory.records()["t"] | {"updatedAt": world.memory.records()["t"]["updatedAt"] + 1})

    with pytest.raises(TaskChanged, match="t changed 10 times"):
        racing_queue(world, 99, touch).cancel("t")


# --- redrive ------------------------------------------------------------------------------------------------------------


def test_redrive_makes_a_failed_task_pending_again(world: World) -> None:
    world.queue.enqueue(task_id="t")
    world.fail("t")
    world.time.now += 50

    task = world.queue.redrive("t")

    assert (task.status, task.retry_count, task.lock_time, task.error, task.expires_at) == (
        Status.PENDING,
        0,
        NOW + 50,
        None,
        None,
    )
    assert task == world.queue.get("t")


def test_redrive_of_a_task_that_has_not_failed_says_so(world: World) -> None:
    world.queue.enqueue(task_id="t")

    with pytest.raises(TaskNotRedrivable, match="t is PENDING"):
        world.queue.redrive("t")
    with pytest.raises(TaskNotFound):
        world.queue.redrive("unknown")


def test_of_two_that_redrive_a_task_one_is_told_that_it_was_done(world: World) -> None:
    world.queue.enqueue(task_id="t")
    world.fail("t")

    with pytest.raises(TaskNotRedrivable):
        racing_queue(world, 1, lambda: world.queue.redrive("t")).redrive("t")


def test_redrive_whose_reply_was_lost_is_done_even_when_the_task_runs_already(world: World) -> None:
    world.queue.enqueue(task_id="t")
    world.fail("t")
    world.store.tries.clear()
    world.store.lost_replies = 1
    queue = TaskQueue(store=world.store, sleep=lambda seconds: cast("None", claim(world.memory, token="T2")))

    assert queue.redrive("t").status is Status.RUNNING


def failed_family(world: World) -> None:
    """``a`` failed and with it all that depend on it: b, c, and d on its own and through both. ``e`` has another cause."""
    for task_id, depends_on in {"a": [], "x": [], "b": ["a"], "c": ["a"], "d": ["a", "b", "c"], "e": ["x"]}.items():
        world.queue.enqueue(task_id=task_id, depends_on=depends_on)
    world.fail("a")
    world.fail("x")
    for task_id, because in {"b": "a", "c": "a", "d": "b", "e": "x"}.items():
        world.abandon(task_id, because)


def test_redrive_alone_leaves_those_that_failed_because_of_the_task(world: World) -> None:
    failed_family(world)
    world.queue.redrive("a")

    assert statuses(world.memory)["b"] is Status.FAILED


def test_redrive_with_dependents_redrives_everything_that_failed_because_of_the_task(world: World) -> None:
    failed_family(world)
    world.queue.redrive("a", dependents=True)

    pending = {task_id for task_id, status in statuses(world.memory).items() if status is Status.PENDING}
    assert pending == {"a", "b", "c", "d"}
    assert world.queue.get("d").waiting_for == ("a", "b", "c")


@dataclass
class LaggingIndex(UnreliableStore):
    """The index shows what was FAILED when the store was made."""

    shown: tuple[Task, ...] = ()

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        return Page(self.shown, None)


def test_redrive_with_dependents_passes_over_those_that_the_index_still_shows_as_failed(world: World) -> None:
    failed_family(world)
    shown = tuple(world.queue.tasks(Status.FAILED))
    world.queue.redrive("b")

    TaskQueue(store=LaggingIndex(world.memory, shown=shown)).redrive("a", dependents=True)

    assert [task_id for task_id, status in statuses(world.memory).items() if status is Status.FAILED] == ["x", "e"]


def test_redrive_with_dependents_follows_a_long_chain_in_any_order_of_age(world: World) -> None:
    ages = list(range(200))
    random.Random(3).shuffle(ages)
    ages[:50], ages[50:100] = sorted(ages[:50]), sorted(ages[50:100], reverse=True)
    for number, age in enumerate(ages):
        payload = {"dependsOn": f"t{number - 1}"} if number else {}
        error = {"type": "DependencyFailed" if number else "ValueError", "message": "", "at": NOW}
        record = foreign_record(f"t{number}", status="FAILED", payload=payload, error=error, createdAt=NOW - age)
        world.memory.put_record(record)

    world.queue.redrive("t0", dependents=True)

    assert set(statuses(world.memory).values()) == {Status.PENDING}


def test_redrive_of_all_that_failed_streams_what_it_does(world: World) -> None:
    put_pending(world.memory, *(f"f{number:03}" for number in range(250)), status="FAILED")
    put_pending(world.memory, "good", status="SUCCESS")

    redriving = world.queue.redrive_failed()
    assert world.store.pages == 0
    first = next(redriving)

    assert isinstance(first, Task)
    assert len([each for each in statuses(world.memory).values() if each is Status.FAILED]) > 200
    rest = list(redriving)
    assert {task.task_id for task in (first, *rest) if isinstance(task, Task)} == {f"f{number:03}" for number in range(250)}
    assert statuses(world.memory)["good"] is Status.SUCCESS


def test_redrive_of_all_that_failed_can_be_of_one_type(world: World) -> None:
    put_pending(world.memory, "a", "b", status="FAILED", taskType="report")
    put_pending(world.memory, "c", status="FAILED")

    assert len(list(world.queue.redrive_failed(task_type="report"))) == 2
    assert statuses(world.memory)["c"] is Status.FAILED


def test_redrive_of_all_that_failed_yields_the_error_of_those_that_could_not_be(world: World) -> None:
    put_pending(world.memory, "a", "b", "c", status="FAILED")
    world.store.unreachable = {"b"}

    done = list(world.queue.redrive_failed())

    assert sorted(each.task_id for each in done if isinstance(each, Task)) == ["a", "c"]
    assert [type(each) for each in done if not isinstance(each, Task)] == [StoreUnavailable]
