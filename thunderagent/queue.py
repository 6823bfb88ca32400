"""TaskQueue: what an application calls to enqueue tasks, look at them, cancel them and redrive them."""

from __future__ import annotations

import itertools
import math
import os
import random
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from thunderagent import transitions
from thunderagent.backoff import full_jitter
from thunderagent.errors import (
    DependencyUnknown,
    EnqueueIncomplete,
    InvalidInput,
    StoreUnavailable,
    TaskChanged,
    TaskExists,
    TaskNotCancellable,
    TaskNotFound,
    TaskNotRedrivable,
    ThunderAgentError,
    ValueTooLarge,
    WaitTimeout,
)
from thunderagent.settings import QueueSettings, TableSettings, from_environment
from thunderagent.store.backlog import Backlog, BacklogReader
from thunderagent.store.base import Applied, BatchRead, Store
from thunderagent.store.dynamo import DynamoStore
from thunderagent.store.layout import RESERVED_IDS
from thunderagent.task import (
    DEFAULT_QUEUE,
    DEPENDS_ON,
    TASK_ID_BYTES,
    Attr,
    ErrorType,
    Status,
    Task,
    as_number,
    as_str,
    dependency_ids,
    is_plain_number,
)
from thunderagent.transitions import Transition
from thunderagent.values import ITEM_BYTES, RUN_BYTES, encode, record_size, size_of

DAY = 86400
WRITE_TRIES = 5
"""Tries of one write that got no reply, beyond those inside boto3. The same token makes them one write."""

MAX_RETRY_LIMIT = 1000
SECONDS_LIMIT = 10**11
"""Above any epoch time in seconds that is meant, and below one in milliseconds, as of 1973."""

CHANGED_TRIES = 10
WAIT_FIRST, WAIT_LONGEST = 0.1, 5.0
STATS_LIMIT = 1000
SCAN_PAGES = 10
"""Pages read for a count of ended tasks where only a scan finds them."""

PAGE = 100

IfExists = Literal["raise", "return"]


def new_token() -> str:
    """A fresh identifier for one write, or for a task that was given none."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to enqueue. Its id is fixed when it is made, so that enqueueing the same object again adds nothing."""

    payload: Mapping[str, Any] = field(default_factory=dict)
    task_id: str = field(default_factory=new_token)
    task_type: str | None = None
    max_retry: int | None = None
    delay: float | None = None
    not_before: float | None = None
    depends_on: str | Collection[str] = ()
    queue: str = DEFAULT_QUEUE


@dataclass(frozen=True, slots=True)
class EnqueueReport:
    """What an ``enqueue_many`` did: ids that it wrote, and ids that were in the table before."""

    enqueued: tuple[str, ...]
    existing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """Tasks by status, each counted up to a limit; ``cut`` names the statuses of which there are more."""

    counts: Mapping[Status, int]
    cut: frozenset[Status]
    backlog: Backlog


class TaskQueue:
    """The task table as an application sees it. Safe to share between threads.

    ``table`` is a table's name, whole TableSettings, or None for what the environment says. A ``store`` given instead (the
    in-memory one, in tests) is used as it is. ``on_enqueued`` is told the ids that this object has enqueued.
    """

    def __init__(
        self,
        table: str | TableSettings | None = None,
        *,
        store: Store | None = None,
        settings: QueueSettings | None = None,
        on_enqueued: Callable[[str], None] | None = None,
        rng: random.Random | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store or DynamoStore(_table_settings(table))
        self._settings = settings or QueueSettings()
        self._on_enqueued = on_enqueued
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._monotonic = monotonic

    # --- enqueue --------------------------------------------------------------------------------------------------------

    def enqueue(
        self,
        payload: Mapping[str, Any] | None = None,
        *,
        task_id: str | None = None,
        task_type: str | None = None,
        max_retry: int | None = None,
        delay: float | None = None,
        not_before: float | None = None,
        depends_on: str | Collection[str] = (),
        queue: str = DEFAULT_QUEUE,
        check_dependencies: bool = True,
        if_exists: IfExists = "raise",
    ) -> Task:
        """Put a task into the table and return it.

        ``task_id`` is the task's identity: enqueueing it twice runs it once. ``delay`` (seconds) or ``not_before`` (epoch
        seconds) keep it from running earlier; ``depends_on`` names tasks that must have ended well first. ``queue`` is one of
        those that the table has.

        Raises TaskExists for an id that is taken (``if_exists="return"`` gives back the task that has it), InvalidInput for an
        argument that is not what it has to be, DependencyUnknown for a dependency that is not in the table, InvalidValue or
        ValueTooLarge for a payload that cannot be kept, and StoreError when the table could not be reached; then enqueueing the
        same ``task_id`` again is safe.
        """
        if if_exists not in get_args(IfExists):
            raise InvalidInput(f"if_exists is {if_exists!r}; it must be 'raise' or 'return'.")
        payload = {} if payload is None else payload
        task_id = new_token() if task_id is None else task_id
        new = NewTask(payload, task_id, task_type, max_retry, delay, not_before, depends_on, queue)
        self._check_all([new], check_dependencies)
        applied = self._enqueue(new)
        if applied.ok or if_exists == "return":
            return self._present(applied, new.task_id)
        raise TaskExists(
            f"A task with the id {new.task_id} exists: {_status_of(applied)}. Use another id, or ask for the one that exists "
            "(if_exists='return', --if-exists return)."
        )

    def enqueue_many(self, tasks: Iterable[NewTask], *, check_dependencies: bool = True) -> EnqueueReport:
        """Put any number of tasks into the table, several at once. A task whose id is taken counts as existing.

        Raises EnqueueIncomplete, with what is in the table and what is not, where some could not be written; enqueueing the
        same NewTask objects again adds only those. Tasks may depend on each other in any order. Raises InvalidInput or
        DependencyUnknown, and writes nothing, where a task is not what it has to be.
        """
        todo = list(tasks)
        self._check_all(todo, check_dependencies)
        enqueued: list[str] = []
        existing: list[str] = []
        failed: dict[str, ThunderAgentError] = {}
        for new, outcome in self._in_parallel(self._enqueue, todo):
            if isinstance(outcome, ThunderAgentError):
                failed[new.task_id] = outcome
            else:
                (enqueued if outcome.ok else existing).append(new.task_id)
        if failed:
            raise EnqueueIncomplete(enqueued, existing, failed)
        return EnqueueReport(tuple(enqueued), tuple(existing))

    # --- look -----------------------------------------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """The task as it stands. Raises TaskNotFound."""
        task = self.store.get(_checked_id(task_id))
        if task is None:
            raise TaskNotFound(
                f"There is no task {task_id}. It was never enqueued, or it ended and its time in the table is over."
            )
        return task

    def wait(self, task_id: str, timeout: float | None = None) -> Task:
        """The task once it has ended. Looks at growing intervals; ``timeout`` in seconds, None for no limit.

        A table that cannot be reached is waited for too. Raises WaitTimeout, TaskNotFound.
        """
        deadline = math.inf if timeout is None else self._monotonic() + _checked_seconds(timeout, "timeout")
        pause = WAIT_FIRST
        while (task := self._reachable(task_id)) is None or not task.status.is_final:
            left = deadline - self._monotonic()
            if left <= 0:
                state = "not known, since the table cannot be reached," if task is None else f"still {task.status}"
                raise WaitTimeout(f"The task {task_id} is {state} after {timeout:g} s. It goes on; wait again.")
            self._sleep(min(pause, left))
            pause = min(WAIT_LONGEST, pause * 1.5)
        return task

    def _reachable(self, task_id: str) -> Task | None:
        try:
            return self.get(task_id)
        except StoreUnavailable:
            return None

    def tasks(self, status: Status, *, newest_first: bool = False) -> Iterator[Task]:
        """All tasks of a status by age, page by page, as the index shows them (it may lag behind the table by a moment)."""
        if status not in set(Status):
            raise InvalidInput(f"status is {status!r}; it must be one of {', '.join(Status)}.")
        return self._tasks(Status(status), newest_first)

    def _tasks(self, status: Status, newest_first: bool = False) -> Iterator[Task]:
        cursor = None
        while True:
            page = self.store.page(status, limit=PAGE, cursor=cursor, newest_first=newest_first)
            yield from (task for task in page.tasks if task.status is status)
            cursor = page.cursor
            if cursor is None:
                return

    def stats(self, limit: int = STATS_LIMIT) -> Stats:
        """How many tasks have each status, counting at most ``limit`` of each: the cost is bounded for a table of any size."""
        if limit < 1:
            raise InvalidInput(f"limit is {limit}; it must be at least 1.")
        counts: dict[Status, int] = {}
        cut = set()
        for status in Status:
            counts[status], more = self._count(status, limit)
            if more:
                cut.add(status)
        return Stats(counts, frozenset(cut), BacklogReader(self.store, self._rng).read(limit))

    # --- change ---------------------------------------------------------------------------------------------------------

    def cancel(self, task_id: str, *, reason: str = "") -> Task:
        """End a task that has not ended: it becomes FAILED with the error Cancelled.

        The handler of a running one is stopped by its agent at the next renewal. Raises TaskNotFound, TaskNotCancellable where
        it has ended, TaskChanged.
        """

        def build(task: Task) -> Transition:
            if task.status.is_final:
                raise TaskNotCancellable(f"The task {task_id} has ended as {task.status}; there is nothing left to cancel.")
            now = self.store.now()
            return transitions.cancel(task, now=now, expires_at=self._expires_at(now), reason=reason)

        return self._change(task_id, build)

    def redrive(self, task_id: str, *, dependents: bool = False) -> Task:
        """Give a FAILED task all its retries again; it goes on from the progress it had saved.

        ``dependents`` also redrives the tasks that failed because this one did, and those that failed because of them. Raises
        TaskNotFound, TaskNotRedrivable where it is not FAILED, TaskChanged.
        """
        token = new_token()

        def build(task: Task) -> Transition:
            if task.status is not Status.FAILED:
                raise TaskNotRedrivable(f"The task {task_id} is {task.status}; only a FAILED task can be redriven.")
            return transitions.redrive(task, now=self.store.now(), token=token)

        task = self._change(task_id, build)
        if dependents:
            self._redrive_dependents(task_id)
        return task

    def redrive_failed(self, *, task_type: str | None = None) -> Iterator[Task | ThunderAgentError]:
        """Redrive all FAILED tasks (of one type, if given), several at once, and yield each as it is done.

        What is yielded is the task, or the error that kept it from being redriven; one that somebody else just redrove is left
        out. Nothing happens until it is iterated.
        """
        wanted = (task for task in self._tasks(Status.FAILED) if task_type is None or task.task_type == task_type)
        for _, outcome in self._in_parallel(lambda task: self.redrive(task.task_id), wanted):
            if not isinstance(outcome, TaskNotRedrivable):
                yield outcome

    # --- inside ---------------------------------------------------------------------------------------------------------

    def _enqueue(self, new: NewTask) -> Applied:
        now = self.store.now()
        transition = transitions.enqueue(
            new.task_id,
            _with_dependencies(new),
            now=now,
            token=new_token(),
            not_before=_not_before(new, now),
            task_type=new.task_type,
            max_retry=self._settings.max_retry if new.max_retry is None else new.max_retry,
            queue=new.queue,
        )
        _check_size(transition.puts)
        applied = self._apply(transition)
        if applied.ok and self._on_enqueued is not None:
            self._on_enqueued(new.task_id)
        return applied

    def _apply(self, transition: Transition) -> Applied:
        """Carry a write out; a lost reply is not a failure: it is tried again under the same token, which counts once."""
        for used in range(WRITE_TRIES):
            try:
                return self.store.apply(transition, want_task=True)
            except StoreUnavailable:
                if used == WRITE_TRIES - 1:
                    raise
                self._sleep(full_jitter(self._rng, used, base=0.1, cap=2.0))
        raise AssertionError("unreachable")

    def _change(self, task_id: str, build: Callable[[Task], Transition]) -> Task:
        for _ in range(CHANGED_TRIES):
            applied = self._apply(build(self.get(task_id)))
            if applied.ok:
                return self._present(applied, task_id)
        raise TaskChanged(f"The task {task_id} changed {CHANGED_TRIES} times while this was tried. Look at it and try again.")

    def _present(self, applied: Applied, task_id: str) -> Task:
        """The task that a write was about; where the reply shows none, a read says why."""
        return self.get(task_id) if applied.task is None else applied.task

    def _check_all(self, tasks: Sequence[NewTask], check_dependencies: bool) -> None:
        for new in tasks:
            _check(new)
        for queue in {new.queue for new in tasks}:
            self._check_queue(queue)
        if check_dependencies:
            known = {new.task_id for new in tasks}
            for start in range(0, len(tasks), PAGE):
                self._check_dependencies(tasks[start : start + PAGE], known)

    def _check_queue(self, queue: str) -> None:
        queues = self.store.layout().queues
        if queue not in queues:
            raise InvalidInput(
                f"The table has no queue {queue}; it has {', '.join(queues)}. "
                f"`thunderagent table migrate --queue {queue}` adds it."
            )

    def _of_new_tasks(self, tasks: Sequence[NewTask], missing: Set[str]) -> list[str]:
        """Those of the missing dependencies that a task needs which is not in the table itself: one that is was checked before,
        and what it depended on may have ended and gone since."""
        needs = {new.task_id: missing & set(dependency_ids(_with_dependencies(new).get(DEPENDS_ON))) for new in tasks}
        needing = {task_id for task_id, ids in needs.items() if ids}
        there = self.store.get_many(needing).found if needing else {}
        return sorted({each for task_id in needing - there.keys() for each in needs[task_id]})

    def _check_dependencies(self, tasks: Sequence[NewTask], known: Set[str]) -> None:
        ids = {task_id for new in tasks for task_id in dependency_ids(_with_dependencies(new).get(DEPENDS_ON))} - known
        read = self.store.get_many(ids) if ids else BatchRead({})
        missing = self._of_new_tasks(tasks, ids - read.found.keys() - read.unknown)
        if missing:
            raise DependencyUnknown(
                f"depends_on names {', '.join(missing[:5])}{' and others' * (len(missing) > 5)}, not in the table. "
                "Enqueue them first, or have it not checked (check_dependencies=False, --no-check-dependencies)."
            )

    def _redrive_dependents(self, task_id: str) -> None:
        """Go through the FAILED tasks until nothing is found that failed because of what was redriven.

        Dependents are mostly younger than what they depend on, or of one batch in the opposite order, so turns by age, up and
        down, find chains quickly. One that the index still shows as FAILED, or that somebody else redrove, is passed over.
        """
        redriven = {task_id}
        for newest_first in itertools.cycle((False, True)):
            found = False
            for task in self._tasks(Status.FAILED, newest_first):
                if task.task_id in redriven or not _failed_because_of(task, redriven):
                    continue
                redriven.add(task.task_id)
                found = True
                with suppress(TaskNotRedrivable, TaskNotFound):
                    self.redrive(task.task_id)
            if not found:
                return

    def _count(self, status: Status, limit: int) -> tuple[int, bool]:
        count, pages, cursor = 0, 0, None
        scans = status.is_final and not self.store.layout().classic_index
        most = SCAN_PAGES if scans else math.inf
        while True:
            page = self.store.page(status, limit=limit - count, cursor=cursor)
            count, cursor = count + len(page.tasks), page.cursor
            pages += 1
            if cursor is None or count >= limit or pages >= most:
                return count, cursor is not None

    def _expires_at(self, now: int) -> int:
        return now + int(self._settings.keep_days * DAY)

    def _in_parallel(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Each item with what ``work`` returned or the ThunderAgentError it raised. Holds a bounded number at once."""
        under_way: dict[Future[Any], Any] = {}
        with ThreadPoolExecutor(self._settings.parallel, thread_name_prefix="thunderagent-queue") as pool:
            for item in items:
                under_way[pool.submit(work, item)] = item
                if len(under_way) >= 2 * self._settings.parallel:
                    yield from _finished(under_way)
            while under_way:
                yield from _finished(under_way)


def _finished(under_way: dict[Future[Any], Any]) -> Iterator[tuple[Any, Any]]:
    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
    for future in done:
        item = under_way.pop(future)
        try:
            yield item, future.result()
        except ThunderAgentError as error:
            yield item, error


def _table_settings(table: str | TableSettings | None) -> TableSettings:
    if isinstance(table, TableSettings):
        return table
    return from_environment(TableSettings, os.environ, table=table)


def _checked_id(task_id: object, name: str = "task_id") -> str:
    if not isinstance(task_id, str) or not task_id:
        raise InvalidInput(f"{name} is {task_id!r}; it must be text that is not empty.")
    if len(encode(task_id, name).encode()) > TASK_ID_BYTES:
        raise InvalidInput(f"{name} is longer than {TASK_ID_BYTES} bytes, DynamoDB's limit for a key. Use a shorter one.")
    return task_id


def _check(new: Any) -> None:
    """Everything that can be said of a task to enqueue without asking the table. Raises InvalidInput."""
    if not isinstance(new, NewTask):
        raise InvalidInput(f"enqueue_many was given a {type(new).__name__}; it takes NewTask objects.")
    _checked_id(new.task_id)
    if new.task_id in RESERVED_IDS:
        raise InvalidInput(f"The id {new.task_id} is the table's own. Use another one.")
    if not isinstance(new.payload, Mapping):
        raise InvalidInput(f"payload is a {type(new.payload).__name__}; it must be a dict.")
    if new.task_type is not None and as_str(new.task_type) is None:
        raise InvalidInput(f"task_type is {new.task_type!r}; it must be text that is not empty.")
    if new.max_retry is not None and (not _is_int(new.max_retry) or not 0 <= new.max_retry <= MAX_RETRY_LIMIT):
        raise InvalidInput(f"max_retry is {new.max_retry!r}; it must be a whole number from 0 to {MAX_RETRY_LIMIT}.")
    if as_str(new.queue) is None:
        raise InvalidInput(f"queue is {new.queue!r}; it must be text that is not empty.")
    _check_times(new)
    _check_depends_on(new)


def _check_times(new: NewTask) -> None:
    if new.delay is not None and new.not_before is not None:
        raise InvalidInput("delay and not_before are both given; give one of them.")
    if new.delay is not None:
        _checked_seconds(new.delay, "delay")
    if new.not_before is not None:
        _checked_seconds(new.not_before, "not_before")


def _check_depends_on(new: NewTask) -> None:
    if new.depends_on and DEPENDS_ON in new.payload:
        raise InvalidInput("depends_on and payload['dependsOn'] are both given; give one of them.")
    name = "payload.dependsOn" if DEPENDS_ON in new.payload else "depends_on"
    given = new.payload.get(DEPENDS_ON, new.depends_on)
    if given is None:
        return
    if not isinstance(given, str | list | tuple | set | frozenset):
        raise InvalidInput(f"{name} is {given!r:.100}; it must be a taskId, or a list, tuple or set of them.")
    task_ids = (given,) if isinstance(given, str) else given
    for task_id in task_ids:
        _checked_id(task_id, f"a taskId in {name}")
    if new.task_id in task_ids:
        raise InvalidInput(f"The task {new.task_id} depends on itself, so it would never run.")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checked_seconds(value: object, name: str) -> float:
    seconds = as_number(value) if is_plain_number(value) else None
    if seconds is None or not 0 <= seconds < SECONDS_LIMIT:
        raise InvalidInput(f"{name} is {value!r:.100}; it must be a number of seconds, at least 0 and below {SECONDS_LIMIT:,}.")
    return seconds


def _with_dependencies(new: NewTask) -> Mapping[str, Any]:
    return {**new.payload, DEPENDS_ON: list(dependency_ids(new.depends_on))} if new.depends_on else new.payload


def _not_before(new: NewTask, now: int) -> int | None:
    if new.delay is not None:
        return math.ceil(now + new.delay)
    return None if new.not_before is None else math.ceil(new.not_before)


def _check_size(puts: Mapping[str, Any]) -> None:
    record = {str(name): encode(value, str(name)) for name, value in puts.items()}
    size, room = record_size(record), ITEM_BYTES - RUN_BYTES
    if size > room:
        path, largest = _largest(record[Attr.PAYLOAD], "payload")
        raise ValueTooLarge(
            f"The task is {size:,} bytes and at most {room:,} fit; the largest part is {path} with {largest:,}. "
            "Keep large data elsewhere and enqueue a reference to it."
        )


def _largest(value: Any, path: str) -> tuple[str, int]:
    if not isinstance(value, Mapping) or not value:
        return path, size_of(value)
    sizes = {key: size_of(item) for key, item in value.items()}
    key = max(sizes, key=sizes.__getitem__)
    return f"{path}.{key}", sizes[key]


def _failed_because_of(task: Task, task_ids: Set[str]) -> bool:
    because = task.error is not None and task.error.type == ErrorType.DEPENDENCY_FAILED
    return because and not task_ids.isdisjoint(task.dependencies)


def _status_of(applied: Applied) -> str:
    return "it is no task, or gone again" if applied.task is None else f"it is {applied.task.status}"
