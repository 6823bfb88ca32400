"""What a live view shows: it fits every terminal, tells what changed, and follows tasks at a bounded cost."""

from __future__ import annotations

import io
from collections.abc import Collection

import pytest
from rich.console import Console

from tests.builders import NOW, Time, enqueue, put_pending
from thunderagent import Status, transitions
from thunderagent.cli.live.bars import bar_rows, columns
from thunderagent.cli.live.collect import SAMPLES, WINDOW, PoolHistory, TaskFollower
from thunderagent.cli.live.lines import news
from thunderagent.cli.live.snapshot import (
    EndedTask,
    PoolState,
    Replicas,
    RunningTask,
    Sample,
    Snapshot,
    TaskCounts,
)
from thunderagent.cli.live.view import view
from thunderagent.local.pool import PoolView
from thunderagent.scaling import Decision, ReplicaState, initial_state
from thunderagent.store.backlog import Backlog
from thunderagent.store.base import BatchRead
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Outcome, OutcomeKind, TaskError

SENTENCE = "From 0 to 4: 41 ready, 3 running ask for 9; maxReplicas is 4; "


def snapshot(count: int = 12, *, name: str = "reports/report/seattle-weather/2013-01", sentence: str = SENTENCE) -> Snapshot:
    history = tuple(Sample(at, min(4, at // 3), at) for at in range(300))
    pool = PoolState("reports", Replicas(3, 1, 0), 4, 4, 9, sentence, history=history)
    counts = TaskCounts(
        {Status.SUCCESS: 54, Status.FAILED: 4, Status.RUNNING: count, Status.PENDING: 73}, waiting=58, is_whole=True
    )
    running = tuple(RunningTask(name, "report.page", f"reports/vm/{number}-aa", number) for number in range(count))
    ended = tuple(EndedTask(name, "report.page", Status.FAILED, 1, "no\x1b[2Jtext " * 30) for _ in range(count))
    return Snapshot("thunderagent demo", 97, (pool,), counts, running, ended, note="Stopping")


def drawn(shown: Snapshot, width: int, height: int) -> list[str]:
    """The lines of the view on a terminal of that size, without colours."""
    console = Console(width=width, height=height, file=io.StringIO(), record=True, force_terminal=True)
    console.print(view(shown, width, height))
    return console.export_text().splitlines()


# --- the view -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 23), (100, 30), (160, 49), (250, 80)], ids=str)
@pytest.mark.parametrize("count", [0, 1, 4, 60])
@pytest.mark.parametrize("name", ["t", "reports/" + "long-name/" * 30, "表" * 90], ids=["short", "long", "wide characters"])
def test_the_view_fits_its_terminal(size: tuple[int, int], count: int, name: str) -> None:
    width, height = size
    lines = drawn(snapshot(count, name=name, sentence=SENTENCE * 5), width, height)
    assert len(lines) <= height
    console = Console(width=width)
    assert all(console.measure(line).maximum <= width for line in lines)


def test_lines_keep_their_place_whatever_there_is_to_show() -> None:
    empty, full = drawn(snapshot(0, sentence=""), 80, 23), drawn(snapshot(60), 80, 23)
    labels = ("pool", "agents", "to do", "tasks", "running", "ended")
    for label in labels:
        assert [line.startswith(label) for line in empty] == [line.startswith(label) for line in full[: len(empty)]]


def test_the_view_says_what_is_asked_of_it() -> None:
    text = "\n".join(drawn(snapshot(3), 160, 49))
    for told in (
        "3 ready, 1 starting, 0 draining · at most 4, 9 wanted",
        "From 0 to 4: 41 ready, 3 running ask for 9; maxReplicas is 4;",
        "58 of 134 ended",
        "54 SUCCESS  0 DONE  4 FAILED  3 RUNNING  73 PENDING  (58 waiting)",
        "agent 2",
        "1:37",
        "Stopping",
    ):
        assert told in text


def test_what_others_wrote_does_not_drive_the_terminal() -> None:
    console = Console(width=160, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(view(snapshot(name="a\x1b]0;title\x07b"), 160, 49))
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x07" not in written
    assert "\x1b]0" not in written
    assert "\\x1b]0;title" in written


def test_a_list_longer_than_its_room_says_how_many_more_there_are() -> None:
    text = "\n".join(drawn(snapshot(60), 80, 23))
    assert "and 57 more" in text


# --- charts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "top", "rows", "expected"),
    [
        pytest.param([0, 1, 2, 3, 4], 4, 1, [" ▂▄▆█"], id="one row, in quarters"),
        pytest.param([0, 1, 2, 4], 4, 2, ["   █", " ▄██"], id="two rows, the upper one first"),
        pytest.param([1], 1000, 1, ["▁"], id="a little is not nothing"),
        pytest.param([9], 4, 1, ["█"], id="more than the top is full"),
        pytest.param([], 4, 1, [""], id="nothing yet"),
    ],
)
def test_bars(values: list[int], top: int, rows: int, expected: list[str]) -> None:
    assert bar_rows(values, top, rows) == expected


def test_a_series_that_is_too_long_keeps_its_peaks_and_its_ends() -> None:
    values = [1] + [0] * 500 + [4] + [0] * 497 + [2]
    short = columns(values, 40)
    assert len(short) == 40
    assert (short[0], max(short), short[-1]) == (1, 4, 2)


# --- plain lines --------------------------------------------------------------------------------------------------------


def plain(elapsed: float, replicas: Replicas, ended: int, total: int = 10, failed: tuple[EndedTask, ...] = ()) -> Snapshot:
    counts = TaskCounts({Status.SUCCESS: ended, Status.PENDING: total - ended}, is_whole=True)
    pool = PoolState("reports", replicas, 4, sentence="Because.")
    return Snapshot("demo", elapsed, (pool,), counts, ended=failed)


def test_the_first_snapshot_tells_where_things_stand() -> None:
    lines = news(None, plain(0.5, Replicas(), 0))
    assert lines == ["   0.5s  pool   0 agents of at most 4. Because.", "   0.5s  tasks  0 of 10 ended: 10 PENDING"]


def test_a_change_of_replicas_is_told_and_nothing_else_between_two_lines_of_progress() -> None:
    before = plain(1, Replicas(), 0)
    assert news(before, plain(2, Replicas(), 3)) == []
    assert news(before, plain(2, Replicas(starting=2), 3)) == ["   2.0s  pool   2 agents (2 starting) of at most 4. Because."]
    assert news(before, plain(6, Replicas(), 3)) == ["   6.0s  tasks  3 of 10 ended: 7 PENDING, 3 SUCCESS"]


def test_the_end_of_all_tasks_is_told_once() -> None:
    assert news(plain(6, Replicas(), 9), plain(7, Replicas(), 10)) == ["   7.0s  tasks  10 of 10 ended: 10 SUCCESS"]
    assert news(plain(7, Replicas(), 10), plain(70, Replicas(), 10)) == []


def test_a_task_that_failed_is_told_with_its_error() -> None:
    failed = EndedTask("t", "", Status.FAILED, 1, "it is broken")
    lines = news(plain(1, Replicas(), 0), plain(2, Replicas(), 0, failed=(failed,)))
    assert lines == ["   2.0s  failed t: it is broken"]
    assert news(plain(2, Replicas(), 0, failed=(failed,)), plain(3, Replicas(), 0, failed=(failed,))) == []


# --- collecting ---------------------------------------------------------------------------------------------------------


class Counting(MemoryStore):
    """Remembers the most items that were read at once by key."""

    read = 0

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        self.read = max(self.read, len(task_ids))
        return super().get_many(task_ids)


def end(store: MemoryStore, task_id: str, outcome: Outcome) -> None:
    """Claim the task and end it."""
    task = store.get(task_id)
    assert task is not None
    claim = transitions.claim(task, now=NOW, lease_end=NOW + 60, owner="pool/vm/7-ab", token=f"run-{task_id}")
    claimed = store.apply(claim, want_task=True).task
    assert claimed is not None
    lease = transitions.Lease(claimed, f"run-{task_id}", "pool/vm/7-ab", NOW, (NOW + 60,))
    if outcome.kind is OutcomeKind.FAILED:
        store.apply(transitions.fail(lease, outcome, now=NOW + 2, expires_at=NOW + 99))
    else:
        store.apply(transitions.complete(lease, outcome, now=NOW + 2, expires_at=NOW + 99))


def test_tasks_are_followed_to_their_end_whatever_their_number() -> None:
    time = Time()
    store = Counting(time)
    ids = [f"t{number}" for number in range(3 * WINDOW)]
    put_pending(store, *ids)
    follower = TaskFollower(store, ids)
    for task_id in ids:
        end(store, task_id, Outcome(OutcomeKind.SUCCESS))
    looks = 0
    while not follower.all_ended:
        look = follower.look()
        looks += 1
    assert (looks, store.read) == (3, WINDOW)
    assert (look.counts.of(Status.SUCCESS), look.counts.total) == (len(ids), len(ids))
    assert follower.ended.keys() == set(ids)


def test_a_look_tells_running_waiting_and_failed_tasks_apart() -> None:
    time = Time()
    store = MemoryStore(time)
    put_pending(store, "ready", "bad", "runs")
    enqueue(store, "waits", {"dependsOn": ["ready"]})
    enqueue(store, "not ours")
    end(store, "bad", Outcome(OutcomeKind.FAILED, error=TaskError("Fail", "line 3:\nno table", NOW)))
    task = store.get("runs")
    assert task is not None
    store.apply(transitions.claim(task, now=NOW, lease_end=NOW + 60, owner="pool/vm/8-cd", token="x"))
    time.now += 5

    look = TaskFollower(store, ["ready", "bad", "runs", "waits"]).look()

    assert look.counts.by_status == {"PENDING": 2, "RUNNING": 1, "SUCCESS": 0, "DONE": 0, "FAILED": 1}
    assert look.counts.waiting == 1
    assert look.running == (RunningTask("runs", "", "pool/vm/8-cd", 5),)
    assert look.ended == (EndedTask("bad", "", Status.FAILED, 2, "line 3: no table"),)


def pool_view(replicas: int, backlog: Backlog | None) -> PoolView:
    decision = Decision(replicas, 0, replicas, 0, (), "Because.", False, False, False, initial_state(0, 0))
    return PoolView("crew", decision, backlog, {ReplicaState.READY: replicas})


def test_a_pools_past_is_kept_whole_in_bounded_memory() -> None:
    history = PoolHistory(most=4)
    backlog = Backlog(NOW, ready=3, expired=1, running={"a": 2})
    for moment in range(10 * SAMPLES):
        state = history.add(pool_view(4 if moment == 77 else 1, backlog), moment)
    assert len(state.history) <= 2 * SAMPLES
    assert max(sample.replicas for sample in state.history) == history.peak == 4
    assert state.history[0].at < 100
    assert state.history[-1].work == 6


def test_a_backlog_that_could_not_be_read_is_shown_as_trouble_and_not_as_zero() -> None:
    history = PoolHistory(most=4)
    history.add(pool_view(1, Backlog(NOW, ready=9)), 1)
    state = history.add(pool_view(1, None), 2)
    assert state.is_trouble
    assert state.history[-1].work == 9
