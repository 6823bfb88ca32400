"""Real agents with real children: killed, paused, stopped, and given handlers that do what no handler should."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agents import Scene, eventually, is_alive, scene_at
from tests.standins.aws import client_for, create_task_table
from thunderagent import Status, Task
from thunderagent.task import OutcomeKind

pytestmark = pytest.mark.processes


def outcomes(task: Task) -> list[str]:
    """How the runs of a task ended, in order."""
    return [run.outcome for run in task.history]


# --- killed and paused --------------------------------------------------------------------------------------------------


def test_a_task_of_a_killed_agent_runs_again_and_its_old_process_is_gone(any_scene: Scene) -> None:
    killed = any_scene.agent("A")
    any_scene.queue.enqueue({}, task_id="t", task_type="hold")
    lost = any_scene.wrote("start", "t")
    any_scene.open_gate("B")

    killed.send(signal.SIGKILL)
    any_scene.agent("B")
    task = any_scene.ended("t")

    assert (task.status, task.retry_count) == (Status.SUCCESS, 1)
    assert task.result["agent"] == "B"
    assert outcomes(task) == [OutcomeKind.LOST, OutcomeKind.SUCCESS]
    assert not is_alive(lost.pid)
    assert [each.agent for each in any_scene.history("t", "end")] == ["B"]


def test_a_paused_agent_that_comes_back_changes_nothing(scene: Scene) -> None:
    paused = scene.agent("A")
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    scene.wrote("start", "t")
    paused.send(signal.SIGSTOP)
    scene.agent("B")
    scene.wrote("start", "t", agent="B")
    taken = scene.queue.get("t").record

    scene.open_gate("A")  # its handler goes on, and ends
    scene.wrote("end", "t", agent="A")
    paused.send(signal.SIGCONT)
    paused.says("task is not ours any more")

    assert scene.queue.get("t").record.items() >= {**taken, "lockTime": scene.queue.get("t").record["lockTime"]}.items()
    assert scene.queue.get("t").lock_token == taken["lockToken"]
    scene.open_gate("B")
    task = scene.ended("t")
    assert (task.result["agent"], task.retry_count, outcomes(task)) == ("B", 1, ["lost", "success"])
    assert paused.running


def test_a_task_whose_agents_are_killed_each_time_ends_with_an_error_that_says_so(scene: Scene) -> None:
    scene.queue.enqueue({"gate": "never"}, task_id="t", task_type="hold", max_retry=1)
    for count in (1, 2):
        agent = scene.agent(f"A{count}")
        scene.wrote("start", "t", count=count)
        agent.send(signal.SIGKILL)

    scene.agent("B")
    task = scene.ended("t")

    assert task.status is Status.FAILED
    assert "stopped renewing its lease and no retry is left (1 of 1 used)" in str(task.error)
    assert len(scene.history("t", "start")) == 2


# --- handlers that do what no handler should; one agent bears them all ---------------------------------------------------


class Bearing:
    """One agent that all tests of this section share, and that must still be there after each."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.agent = scene.agent("A", processes=4, memory_mb=512, timeout=20, child_start=30)

    def run(self, task_type: str, max_retry: int = 1, **payload: Any) -> Task:
        """The task when it has ended. The agent is the one that was started, and it still runs tasks."""
        (task_id,) = self.scene.enqueue(task_type, payload=payload, max_retry=max_retry)
        task = self.scene.ended(task_id)
        (plain,) = self.scene.enqueue("plain")
        assert self.scene.ended(plain).status is Status.SUCCESS
        assert self.agent.running
        return task


@pytest.fixture(scope="module")
def bearing(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bearing]:
    client = client_for(moto_endpoint)
    with scene_at(moto_endpoint, create_task_table(client), tmp_path_factory.mktemp("bearing")) as scene:
        yield Bearing(scene)
    client.close()


@pytest.mark.parametrize(
    ("how", "error"),
    [
        pytest.param("segfault", "SIGSEGV (a crash in native code)", id="a crash in native code"),
        pytest.param("killed", "SIGKILL (killed, often for lack of memory)", id="killed by the kernel"),
        pytest.param("abort", "SIGABRT (aborted by native code)", id="abort"),
        pytest.param("exit 0", "exit status 0", id="an exit that calls itself good"),
        pytest.param("exit 7", "exit status 7", id="an exit with a status"),
        pytest.param("closes everything", "exit status 1", id="all its files closed, the agent's socket among them"),
        pytest.param("hides our module", "exit status 1", id="a module of ours thrown out"),
        pytest.param("deep recursion", "SIGSEGV", id="a recursion deeper than its stack"),
    ],
)
def test_a_handler_that_ends_its_process_uses_its_retries_and_no_more(bearing: Bearing, how: str, error: str) -> None:
    task = bearing.run("dies", how=how)

    assert task.status is Status.FAILED
    assert task.error is not None
    assert task.error.type == "ChildDied"
    assert error in task.error.message
    assert len(bearing.scene.history(task.task_id, "start")) == 2
    assert outcomes(task) == [OutcomeKind.RETRY, OutcomeKind.FAILED] or outcomes(task) == [OutcomeKind.RETRY] * 2


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param("ValueError", "ValueError: boom", id="an ordinary error"),
        pytest.param("SystemExit", "SystemExit: 3", id="sys.exit"),
        pytest.param("KeyboardInterrupt", "KeyboardInterrupt", id="KeyboardInterrupt"),
        pytest.param("BaseException", "Base: base", id="an exception that is not an Exception"),
        pytest.param("unspeakable", "Unspeakable: (its text cannot be made: ValueError)", id="an exception without a text"),
        pytest.param(
            "leaving", "Leaving: (its text cannot be made: SystemExit)", id="an exception whose text ends the process"
        ),
        pytest.param("own text", "TextError: words", id="an exception whose text is of a kind of its own"),
        pytest.param("huge text", "ValueError: xxx", id="an error of a megabyte, which is cut"),
        pytest.param("surrogate", r"ValueError: \ud800", id="a text that is not Unicode"),
        pytest.param("cancelled", "CancelledError", id="CancelledError"),
        pytest.param("stopped", "HandlerStopped: by itself", id="the agent's own signal to stop"),
        pytest.param("group", "ExceptionGroup: several (2 sub-exceptions)", id="a group of errors"),
    ],
)
def test_whatever_a_handler_raises_is_a_retry_and_then_a_readable_error(bearing: Bearing, kind: str, error: str) -> None:
    task = bearing.run("raises", kind=kind)

    assert (task.status, task.retry_count) == (Status.FAILED, 1)
    assert str(task.error).startswith(error)
    assert len(str(task.error).encode()) < 5000
    assert len(bearing.scene.history(task.task_id, "start")) == 2


@pytest.mark.parametrize(
    ("kind", "status", "shown"),
    [
        pytest.param("nothing", Status.SUCCESS, None, id="nothing"),
        pytest.param("done", Status.DONE, {"x": 1}, id="Done"),
        pytest.param("bytes", Status.SUCCESS, {"x": b"\0\xff"}, id="bytes"),
        pytest.param("list", Status.FAILED, "The handler returned a list", id="a list"),
        pytest.param("lambda", Status.FAILED, "The handler returned a function", id="a function"),
        pytest.param("lambda inside", Status.FAILED, "result.f is a function", id="a function inside a dict"),
        pytest.param("huge", Status.FAILED, "result is 1,000,", id="more than an item holds"),
        pytest.param("generator", Status.FAILED, "The handler returned a generator", id="a generator"),
        pytest.param("class", Status.FAILED, "The handler returned a type", id="a class"),
        pytest.param("deep", Status.FAILED, "nested more than", id="deeper than DynamoDB goes"),
        pytest.param("fail", Status.FAILED, "Fail: returned", id="Fail, returned"),
        pytest.param("own kinds", Status.SUCCESS, {"own kinds": ["own kinds", 1.5]}, id="texts and numbers of its own kinds"),
        pytest.param("itself", Status.FAILED, "nested more than", id="a dict that holds itself"),
    ],
)
def test_whatever_a_handler_returns_the_task_ends(bearing: Bearing, kind: str, status: Status, shown: Any) -> None:
    task = bearing.run("returns", kind=kind)

    assert task.status is status
    if status is Status.FAILED:
        assert shown in str(task.error)
    else:
        assert task.result == shown
    assert len(bearing.scene.history(task.task_id, "start")) == 1


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param("liar", "TypeError: ", id="a value that says it is a bool"),
        pytest.param("scrambled", "LookupError: not today", id="a dict that does not give its items"),
    ],
)
def test_a_result_that_cannot_be_read_is_a_retry(bearing: Bearing, kind: str, error: str) -> None:
    task = bearing.run("returns", kind=kind)

    assert (task.status, task.retry_count) == (Status.FAILED, 1)
    assert str(task.error).startswith(error)


def test_what_a_handler_sends_of_its_own_kinds_arrives_as_what_it_is_made_of(bearing: Bearing) -> None:
    """No code of a handler's is run where leases are renewed."""
    task = bearing.run("own kinds", max_retry=0)

    assert task.result == {"seconds": 0.5, "own kinds": "own kinds", "next": f"{task.task_id}-next"}
    assert bearing.scene.ended(f"{task.task_id}-next").status is Status.SUCCESS


@pytest.mark.parametrize(
    ("task_type", "error"),
    [
        pytest.param(
            "async raises", "Leaving: (its text cannot be made: SystemExit)", id="an exception that ends what tells it"
        ),
        pytest.param("leaves an exit", "ChildDied", id="an exit of a task that it left behind"),
        pytest.param("stops the loop", "ChildDied", id="the end of the loop"),
    ],
)
def test_an_async_run_ends_whatever_becomes_of_its_event_loop(bearing: Bearing, task_type: str, error: str) -> None:
    task = bearing.run(task_type, max_retry=0)

    assert task.status is Status.FAILED
    assert str(task.error).startswith(error)


def test_a_result_that_is_not_a_number_comes_back_as_it_was(bearing: Bearing) -> None:
    assert str(bearing.run("returns", kind="nan").result["x"]) == "nan"


def test_a_handler_that_raises_fail_is_not_run_again(bearing: Bearing) -> None:
    task = bearing.run("raises", kind="fail")

    assert (task.status, task.retry_count, str(task.error)) == (Status.FAILED, 0, "Fail: for good")


def test_a_handler_that_snoozes_is_run_again_and_charged_nothing(bearing: Bearing) -> None:
    task = bearing.run("snoozes", max_retry=0)

    assert (task.status, task.retry_count, task.release_count) == (Status.SUCCESS, 0, 2)


def test_a_handler_that_eats_memory_ends_by_the_limit_of_its_process(bearing: Bearing) -> None:
    task = bearing.run("eats memory")

    assert task.status is Status.FAILED
    assert task.error is not None
    assert task.error.type in {"MemoryError", "ChildDied"}


@pytest.mark.parametrize(
    "task_type",
    [
        pytest.param("prints", id="prints megabytes"),
        pytest.param("closes stdout", id="closes its output"),
        pytest.param("changes signals", id="changes what signals do"),
        pytest.param("leaves a thread", id="leaves a thread behind"),
        pytest.param("changes the process", id="changes folder, environment and import path"),
    ],
)
def test_a_handler_that_disturbs_its_process_ends_all_the_same(bearing: Bearing, task_type: str) -> None:
    task = bearing.run(task_type)

    assert (task.status, task.retry_count) == (Status.SUCCESS, 0)


def test_a_handler_that_forks_is_one_run(bearing: Bearing) -> None:
    task = bearing.run("forks")

    assert (task.status, task.retry_count, task.result) == (Status.SUCCESS, 0, {"fork": False})
    assert len(bearing.scene.history(task.task_id, "end")) == 1
    fork = bearing.scene.wrote("in the fork", task.task_id)
    eventually(lambda: not is_alive(fork.pid), "the fork's end")


def test_a_handler_that_leaves_a_process_behind_ends(bearing: Bearing) -> None:
    task = bearing.run("leaves a process")

    assert task.status is Status.SUCCESS


def test_what_a_dead_handler_left_behind_is_killed_with_it(bearing: Bearing) -> None:
    """It keeps the dead process's socket open, so the end is seen without waiting for that to close."""
    task = bearing.run("leaves a process", max_retry=0, dies=True)

    assert str(task.error).startswith("ChildDied: The process that ran the handler ended: SIGKILL")
    left = int(bearing.scene.wrote("left", task.task_id).note)
    eventually(lambda: not is_alive(left), "the end of what was left behind")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("signal", id="by ignoring SIGTERM"),
        pytest.param("exception", id="by catching every exception"),
        pytest.param("interpreter", id="by holding the interpreter"),
    ],
)
def test_a_handler_that_does_not_stop_at_its_time_out_is_killed_and_charged(scene: Scene, how: str) -> None:
    agent = scene.agent(timeout=1, stop_grace=0.5)
    scene.queue.enqueue({"how": how}, task_id="t", task_type="ignores the stop", max_retry=0)

    task = scene.ended("t")

    assert str(task.error) == "TimedOut: The run took longer than 1 s."
    assert not is_alive(scene.wrote("start", "t").pid)
    scene.queue.enqueue({}, task_id="next", task_type="plain")
    assert scene.ended("next").status is Status.SUCCESS
    assert agent.running


def test_a_handler_that_holds_the_interpreter_for_longer_than_its_lease_runs_once(scene: Scene) -> None:
    for name in "AB":
        scene.agent(name, lease=2, renew=0.5, expired_look=0.5)
    scene.queue.enqueue({"seconds": 6}, task_id="t", task_type="holds the interpreter")

    task = scene.ended("t")

    assert (task.status, task.retry_count, outcomes(task)) == (Status.SUCCESS, 0, ["success"])
    assert len(scene.history("t", "start")) == 1


# --- stopping -----------------------------------------------------------------------------------------------------------


def test_a_stop_under_load_loses_nothing_and_charges_nothing(scene: Scene) -> None:
    ids = scene.enqueue("short", 20)
    agent = scene.agent("A", processes=2, batch=30)
    eventually(lambda: len(scene.history(event="start")) > 3, "some runs")

    agent.send(signal.SIGTERM)

    assert agent.exit_code() == 0
    left = {task_id: scene.queue.get(task_id) for task_id in ids}
    assert {task.status for task in left.values()} == {Status.PENDING, Status.SUCCESS}
    assert all(task.retry_count == 0 and task.lock_token is None for task in left.values())
    assert Counter(each.task_id for each in scene.history(event="start")) == {
        task_id: 1 for task_id, task in left.items() if task.status is Status.SUCCESS
    }
    scene.agent("B", processes=2, batch=30)
    assert {task.status for task in scene.all_ended(ids).values()} == {Status.SUCCESS}
    assert Counter(each.task_id for each in scene.history(event="end")) == dict.fromkeys(ids, 1)


def test_a_stop_lets_a_running_task_finish(scene: Scene) -> None:
    agent = scene.agent("A")
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    scene.wrote("start", "t")

    agent.send(signal.SIGTERM)
    agent.says("draining")
    scene.open_gate("A")

    assert agent.exit_code() == 0
    task = scene.queue.get("t")
    assert (task.status, task.retry_count, task.release_count) == (Status.SUCCESS, 0, 0)


@pytest.mark.parametrize(
    ("drain", "signals", "task_type"),
    [
        pytest.param(60, 2, "hold", id="a second signal"),
        pytest.param(60, 2, "async hold", id="a second signal, an async handler"),
        pytest.param(0.5, 1, "hold", id="the end of the drain time"),
    ],
)
def test_what_does_not_finish_in_time_is_stopped_and_released_uncharged(
    scene: Scene, drain: float, signals: int, task_type: str
) -> None:
    agent = scene.agent("A", drain=drain)
    scene.queue.enqueue({}, task_id="t", task_type=task_type)
    run = scene.wrote("start", "t")

    for _ in range(signals):
        agent.send(signal.SIGTERM)
        agent.says("draining")

    assert agent.exit_code() == 0
    task = scene.queue.get("t")
    assert (task.status, task.retry_count, task.release_count) == (Status.PENDING, 0, 1)
    assert outcomes(task) == [OutcomeKind.RELEASED]
    assert [each.event for each in scene.history("t")] == ["start", "stopped"]
    assert not is_alive(run.pid)


def test_a_cancelled_task_is_stopped_at_the_next_renewal(scene: Scene) -> None:
    agent = scene.agent("A")
    scene.queue.enqueue({}, task_id="t", task_type="hold")
    scene.wrote("start", "t")

    scene.queue.cancel("t", reason="not needed any more")
    scene.wrote("stopped", "t")

    agent.says("reason=cancelled")
    task = scene.queue.get("t")
    assert (task.status, str(task.error)) == (Status.FAILED, "Cancelled: not needed any more")
    assert outcomes(task) == [OutcomeKind.CANCELLED]
    assert scene.enqueue("plain")
    assert agent.running


# --- slots --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stopped", "sibling", "settings"),
    [
        pytest.param("brief", "hold", {"threads": 2}, id="handlers in threads"),
        pytest.param("blocks the loop", "async hold", {"types": '{"blocks the loop": {"timeout": 1}}'}, id="async handlers"),
    ],
)
def test_a_handler_that_must_be_killed_takes_its_siblings_with_it_and_they_are_released(
    scene: Scene, stopped: str, sibling: str, settings: dict[str, Any]
) -> None:
    scene.agent("A", stop_grace=0.5, **settings)
    scene.queue.enqueue({"gate": "x"}, task_id="sibling", task_type=sibling)
    first = scene.wrote("start", "sibling")
    scene.queue.enqueue({}, task_id="stopped", task_type=stopped, max_retry=0)

    assert str(scene.ended("stopped").error) == "TimedOut: The run took longer than 1 s."

    second = scene.wrote("start", "sibling", count=2)
    assert first.pid != second.pid
    scene.open_gate("x")
    task = scene.ended("sibling")
    assert (task.status, task.retry_count, task.release_count) == (Status.SUCCESS, 0, 1)


def test_async_handlers_run_together_in_one_process(scene: Scene) -> None:
    scene.agent("A")
    ids = scene.enqueue("together", 8, payload={"count": 8})

    assert len({task.result["pid"] for task in scene.all_ended(ids).values()}) == 1


def test_a_task_type_takes_no_more_than_its_slots(scene: Scene) -> None:
    scene.agent("A", processes=3)
    ids = scene.enqueue("narrow", 6)
    scene.all_ended(ids)

    events = [each.event for each in scene.history() if each.task_id in ids]
    assert events == ["start", "end"] * 6


def test_a_process_is_replaced_after_its_share_of_tasks(scene: Scene) -> None:
    agent = scene.agent("A", recycle_tasks=2)
    ids = scene.enqueue("plain", 6)

    runs = Counter(task.result["pid"] for task in scene.all_ended(ids).values())

    assert set(runs.values()) == {2}
    assert agent.running


# --- what a handler may ask of its task -----------------------------------------------------------------------------------


def test_a_run_goes_on_from_what_the_killed_one_had_saved(scene: Scene) -> None:
    agent = scene.agent("A")
    scene.queue.enqueue({}, task_id="t", task_type="checkpoint")
    scene.wrote("saved", "t")
    agent.send(signal.SIGKILL)
    scene.agent("B")

    task = scene.ended("t")

    assert (task.status, task.retry_count, task.progress) == (Status.SUCCESS, 1, None)
    assert [each.note for each in scene.history("t", "step")] == [1, 2, 3, 4]
    assert [each.note for each in scene.history("t", "start")] == [None, {"step": 2}]


def test_an_effect_that_was_stored_once_is_not_repeated(scene: Scene) -> None:
    scene.agent("A")
    scene.queue.enqueue({}, task_id="t", task_type="once")

    task = scene.ended("t")

    (effect,) = scene.history("t", "effect")
    assert (task.retry_count, task.result) == (1, {"receipt": f"receipt of {effect.pid}"})


def test_a_task_that_a_handler_enqueues_is_tried_without_waiting_for_the_next_poll(scene: Scene) -> None:
    task = scene.queue.enqueue({}, task_id="t", task_type="enqueues")
    eventually(lambda: scene.queue.store.now() > task.created_at + 2, "a time at which the only poll finds the task due")
    scene.agent("A", wait_busy=300, wait_quiet=300, wait_idle=300, wait=False)
    scene.ended("t")

    task = scene.ended("t-next")

    assert (task.status, task.payload) == (Status.SUCCESS, {"from": "t"})


# --- starting -------------------------------------------------------------------------------------------------------------

BROKEN = {
    "syntax.py": "def handle(task:\n",
    "raising.py": "raise RuntimeError('no licence')\n",
    "leaving.py": "import sys; sys.exit(4)\n",
    "crashing.py": "import ctypes; ctypes.string_at(0)\n",
    "fine.py": "from thunderagent import Router\nnumber = 3\nempty = Router()\ndef handle(task): pass\n",
}


@pytest.mark.parametrize(
    ("handler", "settings", "line"),
    [
        pytest.param("nowhere:handle", {}, "The handler's module nowhere cannot be imported", id="no such module"),
        pytest.param("fine:nothing", {}, "The module fine has no nothing.", id="no such name in it"),
        pytest.param("fine", {}, "it must be module:name", id="no name at all"),
        pytest.param("fine:number", {}, "The handler is a int, which cannot be called.", id="not callable"),
        pytest.param("fine:empty", {}, "The router has no handlers.", id="a router without handlers"),
        pytest.param("syntax:handle", {}, "SyntaxError", id="a syntax error"),
        pytest.param("raising:handle", {}, "RuntimeError: no licence", id="an error at import"),
        pytest.param("leaving:handle", {}, "SystemExit: 4", id="an exit at import"),
        pytest.param("crashing:handle", {}, "SIGSEGV", id="a crash at import"),
        pytest.param("fine:handle", {"types": "{"}, "types is not valid JSON", id="settings of types that are no JSON"),
        pytest.param(
            "tests.integration.handlers:router",
            {"types": '{"plain": {"slots": 0}}'},
            "slots of a task type is 0; it must be above 0.",
            id="settings of a type out of bounds",
        ),
    ],
)
def test_a_handler_that_cannot_be_used_ends_the_agent_with_one_clear_line(
    scene: Scene, handler: str, settings: dict[str, Any], line: str
) -> None:
    for name, text in BROKEN.items():
        (scene.folder / name).write_text(text)
    agent = scene.agent(handler=handler, wait=False, environ={"PYTHONPATH": f"{Path.cwd()}:{scene.folder}"}, **settings)

    assert agent.exit_code() == 1
    assert line in agent.log
    assert "Traceback" not in agent.log
