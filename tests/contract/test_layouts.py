"""The dispatch index, listings without the published one, and a change of layout under way, on every adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from tests.builders import NOW
from tests.contract.conftest import DYNALITE, MEMORY, MOTO, Table, opened
from thunderagent import transitions
from thunderagent.errors import LayoutChanged, StoreRejected
from thunderagent.store.admin import create_table, describe, wait_until_active, write_layout
from thunderagent.store.base import Applied
from thunderagent.store.dynamo import DynamoStore
from thunderagent.store.layout import (
    CLASSIC,
    DISPATCH_INDEX,
    LAYOUT_ID,
    Layout,
    Mark,
    Way,
    dispatch_layout,
)
from thunderagent.store.migration import SETTLE, Goal, Migration
from thunderagent.task import Outcome, OutcomeKind, Status, Task
from thunderagent.transitions import Lease, Transition

SHARDS = 2
END = NOW + 300
THEIRS = {"status": {"S": "PENDING"}, "createdAt": {"N": str(NOW)}, "lockTime": {"N": "0"}}
"""A task of a program that knows the published format alone."""


@pytest.fixture(params=[MEMORY, MOTO, DYNALITE])
def dispatch(request: pytest.FixtureRequest) -> Iterator[Table]:
    """A table that was made for dispatch: without the published index."""
    with opened(request.param, dispatch_layout(SHARDS), request) as table:
        yield table


@pytest.fixture(params=[MOTO])  # dynalite adds no index to a table that is billed on demand
def classic(request: pytest.FixtureRequest) -> Iterator[Table]:
    with opened(request.param, CLASSIC, request) as table:
        yield table


def enqueue(table: Table, task_id: str, **options: object) -> Task:
    payload = {"dependsOn": "first"} if options.pop("waits", False) else {}
    table.store.apply(transitions.enqueue(task_id, payload, now=NOW, token=task_id, **options))  # type: ignore[arg-type]
    return read(table, task_id)


def read(table: Table, task_id: str) -> Task:
    task = table.store.get(task_id)
    assert task is not None
    return task


def claim(table: Table, task_id: str) -> Lease:
    write = transitions.claim(read(table, task_id), now=NOW, lease_end=END, owner="a", token="T")
    assert table.store.apply(write).ok
    return Lease(read(table, task_id), "T", "a", NOW, (END,))


def shown(table: Table, mark: str, until: int | None = None, queue: str = "default") -> list[str]:
    """taskIds of all shards, in the order of each."""
    partitions = [f"{queue}{mark}{shard}" for shard in range(SHARDS)]
    return [task.task_id for each in partitions for task in table.store.entries(each, limit=10, until=until).tasks]


# --- the index ----------------------------------------------------------------------------------------------------------


def test_a_task_is_shown_where_its_state_belongs_and_an_ended_one_nowhere(dispatch: Table) -> None:
    def places() -> str:
        return "".join(mark for mark in "#?!" if "t" in shown(dispatch, mark))

    enqueue(dispatch, "t", waits=True)
    assert places() == "?"
    dispatch.store.apply(transitions.unblock(read(dispatch, "t"), now=NOW))
    assert places() == "#"
    lease = claim(dispatch, "t")
    assert places() == "!"
    dispatch.store.apply(transitions.release(lease, Outcome(OutcomeKind.RELEASED), now=NOW, delay=5))
    assert places() == "#"
    lease = claim_later(dispatch, "t")
    dispatch.store.apply(transitions.complete(lease, Outcome(OutcomeKind.SUCCESS), now=NOW, expires_at=END))
    assert places() == ""
    assert not {"dispatch", "dueAt"} & set(read(dispatch, "t").record)


def claim_later(table: Table, task_id: str) -> Lease:
    write = transitions.claim(read(table, task_id), now=NOW + 5, lease_end=END, owner="a", token="T2")
    assert table.store.apply(write).ok
    return Lease(read(table, task_id), "T2", "a", NOW, (END,))


def test_entries_come_by_when_they_are_due_and_show_what_an_agent_has_to_know(dispatch: Table) -> None:
    for task_id, delay in (("late", 50), ("now", 0), ("soon", 5)):
        enqueue(dispatch, task_id, not_before=NOW + delay, task_type="report")

    for shard in range(SHARDS):
        entries = dispatch.store.entries(f"default#{shard}", limit=10).tasks
        assert [entry.lock_time for entry in entries] == sorted(entry.lock_time or 0 for entry in entries)
    assert sorted(shown(dispatch, "#", until=NOW + 5)) == ["now", "soon"]
    (entry,) = [
        each for shard in range(SHARDS) for each in dispatch.store.entries(f"default#{shard}", limit=1, until=NOW).tasks
    ]
    assert (entry.status, entry.task_type, entry.created_at, entry.lock_time) == (Status.PENDING, "report", NOW, NOW)
    assert (entry.payload, entry.is_waiting, entry.queue) == (None, False, "default")


def test_an_entry_is_all_that_a_claim_needs(dispatch: Table) -> None:
    enqueue(dispatch, "t")
    (entry,) = [each for shard in range(SHARDS) for each in dispatch.store.entries(f"default#{shard}", limit=1).tasks]

    applied = dispatch.store.apply(transitions.claim(entry, now=NOW, lease_end=END, owner="a", token="T"), want_task=True)

    assert applied.ok
    assert applied.task is not None
    assert (applied.task.status, applied.task.payload) == (Status.RUNNING, {})


def test_a_renewal_leaves_the_entry_alone_unless_it_says_when_to_look(dispatch: Table) -> None:
    enqueue(dispatch, "t")
    lease = claim(dispatch, "t")

    def due() -> float | None:
        return next(e.lock_time for s in range(SHARDS) for e in dispatch.store.entries(f"default!{s}", limit=1).tasks)

    dispatch.store.apply(transitions.renew(lease.trying(END + 60), lease_end=END + 60))
    assert (due(), read(dispatch, "t").lock_time) == (END, END + 60)
    moved = lease.renewed(END + 60).trying(END + 120)
    dispatch.store.apply(transitions.renew(moved, lease_end=END + 120, look_at=END + 120))
    assert due() == END + 120


def test_a_page_of_entries_goes_on_where_the_last_one_stopped(dispatch: Table) -> None:
    layout = dispatch.store.layout()
    ids = [f"t-{number}" for number in range(20) if layout.shard_of(f"t-{number}") == 0][:5]
    for task_id in ids:
        enqueue(dispatch, task_id)

    found: list[str] = []
    cursor = None
    for _ in range(10):
        page = dispatch.store.entries("default#0", limit=2, cursor=cursor)
        found += [entry.task_id for entry in page.tasks]
        cursor = page.cursor
        if cursor is None:
            break

    assert sorted(found) == sorted(ids)


@pytest.mark.parametrize("meanwhile", ["taken over", "ended", "put back"])
def test_a_lease_is_not_filed_once_somebody_else_has_the_task(dispatch: Table, meanwhile: str) -> None:
    enqueue(dispatch, "t")
    lease = claim(dispatch, "t")
    seen = read(dispatch, "t")
    match meanwhile:
        case "taken over":
            write = transitions.take_over(seen, now=END, lease_end=END + 9, owner="b", token="T2")
        case "ended":
            write = transitions.complete(lease, Outcome(OutcomeKind.SUCCESS), now=NOW, expires_at=END)
        case _:
            write = transitions.release(lease, Outcome(OutcomeKind.RELEASED), now=NOW, delay=5)
    assert dispatch.store.apply(write).ok
    before = read(dispatch, "t").record

    assert not dispatch.store.apply(transitions.refile(seen)).ok
    assert read(dispatch, "t").record == before


# --- listings without the published index -------------------------------------------------------------------------------


def listed(table: Table, status: Status, limit: int) -> list[Task]:
    tasks: list[Task] = []
    cursor = None
    while True:
        page = table.store.page(status, limit=limit, cursor=cursor)
        tasks += page.tasks
        cursor = page.cursor
        if cursor is None:
            return tasks


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_tasks_are_listed_by_status_without_an_index_over_it(dispatch: Table, limit: int) -> None:
    for number in range(5):
        enqueue(dispatch, f"ready-{number}", not_before=NOW + number)
    for number in range(3):
        enqueue(dispatch, f"waiting-{number}", waits=True)
    enqueue(dispatch, "runs")
    claim(dispatch, "runs")
    enqueue(dispatch, "ended")
    lease = claim(dispatch, "ended")
    dispatch.store.apply(transitions.complete(lease, Outcome(OutcomeKind.SUCCESS), now=NOW, expires_at=END))

    pending = {task.task_id for task in listed(dispatch, Status.PENDING, limit)}
    assert pending == {*(f"ready-{number}" for number in range(5)), *(f"waiting-{number}" for number in range(3))}
    assert [task.task_id for task in listed(dispatch, Status.RUNNING, limit)] == ["runs"]
    assert [task.task_id for task in listed(dispatch, Status.SUCCESS, limit)] == ["ended"]
    assert listed(dispatch, Status.RUNNING, limit)[0].lock_token == "T", "whole tasks"


# --- the table's own item -----------------------------------------------------------------------------------------------


def test_a_table_says_which_layout_it_has(dispatch: Table) -> None:
    if not isinstance(dispatch.store, DynamoStore):
        pytest.skip("a table in memory is told its layout")
    with closing(DynamoStore(dispatch.settings)) as other:
        assert other.layout() == replace(dispatch_layout(SHARDS), version=1)


def test_a_layout_of_a_later_version_is_refused_and_not_taken_for_another(classic: Table) -> None:
    classic.put({"layout": {"S": "quantum"}}, task_id=LAYOUT_ID)
    with closing(DynamoStore(classic.settings)) as store, pytest.raises(StoreRejected, match="Use a newer ThunderAgent"):
        store.page(Status.PENDING, limit=1)


def test_of_two_changes_at_once_the_second_is_refused(dispatch: Table) -> None:
    store = dispatch.store
    if not isinstance(store, DynamoStore):
        pytest.skip("a table in memory is told its layout")
    read_by_both = store.layout()
    write_layout(store, replace(read_by_both, shards=4, read_shards=4))
    with pytest.raises(LayoutChanged, match="Let them finish"):
        write_layout(store, replace(read_by_both, shards=8, read_shards=8))
    assert store.layout().shards == 4


# --- migration ----------------------------------------------------------------------------------------------------------


class Migrating:
    """A migration whose waits pass at once. ``at_wait`` is called at the beginning of each wait for the agents."""

    def __init__(self, table: Table, at_wait: Callable[[], None] = lambda: None) -> None:
        self.store = table.other()
        self.waits = 0
        self.said: list[str] = []
        self.refused: dict[str, str] = {}
        self._at_wait = at_wait

    def run(self, goal: Goal) -> Layout:
        with closing(self.store):
            migration = Migration(self.store, self._sleep, self.said.append)
            reached = migration.run(goal)
        self.refused = migration.refused
        return reached

    def _sleep(self, seconds: float) -> None:
        if f"({SETTLE} s left)" in self.said[-1]:
            self.waits += 1
            self._at_wait()


def some_of_everything(table: Table) -> None:
    enqueue(table, "ready")
    enqueue(table, "waits", waits=True)
    enqueue(table, "runs")
    claim(table, "runs")
    enqueue(table, "ended")
    lease = claim(table, "ended")
    table.store.apply(transitions.complete(lease, Outcome(OutcomeKind.SUCCESS), now=NOW, expires_at=END))
    table.put(THEIRS, task_id="theirs")


def test_a_table_changes_to_dispatch_and_every_open_task_is_found_there(classic: Table) -> None:
    some_of_everything(classic)

    reached = Migrating(classic).run(Goal(Way.DISPATCH, shards=SHARDS, queues=("mail",)))

    assert (reached.way, reached.shards, reached.read_shards, reached.queues) == (Way.DISPATCH, 2, 2, ("default", "mail"))
    assert reached.classic_index, "it stays for whoever lists tasks, until it is dropped"
    after = replace(classic, store=classic.other())
    with closing(after.store):  # type: ignore[type-var]
        assert sorted(shown(after, "#")) == ["ready", "theirs"]
        assert (shown(after, "?"), shown(after, "!")) == (["waits"], ["runs"])


def test_what_is_written_between_two_steps_is_not_lost(classic: Table) -> None:
    """Agents that have read the layout as it was go on so until the end of the wait; those that read it anew keep both."""
    old = classic.other()
    old.layout()
    numbers = iter(range(100))

    def somebody_writes() -> None:
        number = next(numbers)
        if number == 0:
            enqueue(replace(classic, store=old), "by-old")
        with closing(classic.other()) as new:
            enqueue(replace(classic, store=new), f"by-new-{number}")

    with closing(old):
        migrating = Migrating(classic, somebody_writes)
        migrating.run(Goal(Way.DISPATCH, shards=SHARDS))

    after = replace(classic, store=classic.other())
    with closing(after.store):  # type: ignore[type-var]
        assert sorted(shown(after, "#")) == sorted(["by-old", *(f"by-new-{number}" for number in range(migrating.waits))])


def test_a_migration_that_was_stopped_goes_on_where_it_was(classic: Table) -> None:
    some_of_everything(classic)

    def stop() -> None:
        raise KeyboardInterrupt

    stopped = Migrating(classic, stop)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            stopped.run(Goal(Way.DISPATCH, shards=SHARDS))
        stopped = Migrating(classic, stop)
    Migrating(classic).run(Goal(Way.DISPATCH, shards=SHARDS))

    after = replace(classic, store=classic.other())
    with closing(after.store):  # type: ignore[type-var]
        assert after.store.layout().way is Way.DISPATCH
        assert sorted(shown(after, "#")) == ["ready", "theirs"]


def test_shards_are_made_fewer_without_a_moment_in_which_a_task_is_not_found(classic: Table) -> None:
    Migrating(classic).run(Goal(Way.DISPATCH, shards=8))
    with closing(classic.other()) as store:
        for number in range(20):
            enqueue(replace(classic, store=store), f"t-{number}")
    seen: list[int] = []

    def look() -> None:
        with closing(classic.other()) as store:
            layout = store.layout()
            pages = [store.entries(each, limit=50) for each in layout.partitions("default", Mark.READY)]
            seen.append(len({task.task_id for page in pages for task in page.tasks}))

    migrating = Migrating(classic, look)
    reached = migrating.run(Goal(Way.DISPATCH, shards=SHARDS))

    assert seen == [20] * migrating.waits
    assert (reached.shards, reached.read_shards) == (2, 2)
    after = replace(classic, store=classic.other())
    with closing(after.store):  # type: ignore[type-var]
        assert len(shown(after, "#")) == 20


def test_a_table_goes_back_to_classic_and_drops_what_is_left(classic: Table) -> None:
    some_of_everything(classic)
    Migrating(classic).run(Goal(Way.DISPATCH, shards=SHARDS, drop=True))
    with closing(classic.other()) as store:
        wait_until_active(store, lambda seconds: None, tries=2000)
        assert [index.name for index in describe(store).indexes] == [DISPATCH_INDEX]

    reached = Migrating(classic).run(Goal(Way.CLASSIC, drop=True))

    assert (reached.way, reached.keyed, reached.classic_index) == (Way.CLASSIC, False, True)
    with closing(classic.other()) as store:
        wait_until_active(store, lambda seconds: None, tries=2000)
        assert [index.name for index in describe(store).indexes] == [classic.settings.index]
        assert {task.task_id for task in store.page(Status.PENDING, limit=10).tasks} == {"ready", "waits", "theirs"}


def test_a_migration_that_has_nothing_to_change_files_what_stands_astray(classic: Table) -> None:
    Migrating(classic).run(Goal(Way.DISPATCH, shards=SHARDS))
    classic.put(THEIRS, task_id="theirs")
    after = replace(classic, store=classic.other())
    with closing(after.store):  # type: ignore[type-var]
        assert shown(after, "#") == []

        again = Migrating(classic)
        again.run(Goal(Way.DISPATCH))

        assert (shown(after, "#"), again.waits) == (["theirs"], 0)


def test_an_ended_task_that_a_program_left_in_the_index_is_taken_out(classic: Table) -> None:
    Migrating(classic).run(Goal(Way.DISPATCH, shards=SHARDS))
    classic.put({"status": {"S": "SUCCESS"}, "dispatch": {"S": "default#0"}, "dueAt": {"N": "1"}}, task_id="theirs")
    Migrating(classic).run(Goal(Way.DISPATCH))
    after = replace(classic, store=classic.other())
    with closing(after.store):  # type: ignore[type-var]
        assert shown(after, "#") == []


def test_an_item_that_takes_no_write_stops_no_migration(classic: Table) -> None:
    """Another program may have left no room for two attributes more: 400 KB are the most that an item may have."""
    for task_id in ("a", "full", "z"):
        enqueue(classic, task_id)
    migrating = Migrating(classic)
    migrating.store.apply = full_is_full(migrating.store.apply)  # type: ignore[method-assign]

    migrating.run(Goal(Way.DISPATCH, shards=SHARDS))

    assert migrating.refused == {"full": "Item size has exceeded the maximum allowed size."}
    after = replace(classic, store=classic.other())
    with closing(after.store):  # type: ignore[type-var]
        assert sorted(shown(after, "#")) == ["a", "z"]


def full_is_full(apply: Callable[..., Applied]) -> Callable[..., Applied]:
    """Writes, of which those to one item are refused for its size."""

    def apply_or_refuse(transition: Transition, *, want_task: bool = False) -> Applied:
        if transition.task_id == "full":
            raise StoreRejected("Item size has exceeded the maximum allowed size.", operation="UpdateItem")
        return apply(transition, want_task=want_task)

    return apply_or_refuse


def test_a_queue_can_be_added_on_either_layout(classic: Table) -> None:
    reached = Migrating(classic).run(Goal(Way.CLASSIC, queues=("mail",)))
    assert (reached.way, reached.queues) == (Way.CLASSIC, ("default", "mail"))


def test_a_new_table_has_the_indexes_of_its_layout_alone(classic: Table) -> None:
    with closing(classic.other(table=f"made-{classic.task_id}")) as store:
        create_table(store, layout=dispatch_layout(SHARDS))
        wait_until_active(store, lambda seconds: None, tries=2000)
        (index,) = describe(store).indexes
        assert (index.name, index.keys) == (DISPATCH_INDEX, (("dispatch", "HASH"), ("dueAt", "RANGE")))
        assert index.projection == "INCLUDE"
