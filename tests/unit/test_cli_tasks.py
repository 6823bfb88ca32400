"""``thunderagent task`` and ``stats`` over an in-memory table: what they do, what they write, and how they end."""

from __future__ import annotations

import json
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.builders import claim, foreign_record, put_pending
from tests.unit.cli_world import NOW, Refusing, World
from thunderagent.cli.newtasks import CHUNK, KEYS, refuse_dangling
from thunderagent.errors import StoreUnavailable
from thunderagent.queue import NewTask
from thunderagent.store.layout import dispatch_layout
from thunderagent.store.memory import MemoryStore


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def dispatch(world: World) -> World:
    """A table of the dispatch layout with two queues."""
    world.store = world.used = MemoryStore(world.time, dispatch_layout(1, ("default", "mail")))
    return world


def put(world: World, task_id: str, **attributes: Any) -> None:
    world.store.put_record(foreign_record(task_id, **attributes))


def put_failed(world: World, task_id: str, **attributes: Any) -> None:
    error = {"type": "ValueError", "message": "no", "at": NOW - 5}
    put(world, task_id, **({"status": "FAILED", "error": error, "expiresAt": NOW + 10**6} | attributes))


# --- enqueue ------------------------------------------------------------------------------------------------------------


def test_enqueue_prints_the_task_id_alone(world: World) -> None:
    result = world.run("task", "enqueue", '{"n": 1}')
    assert (result.exit_code, result.stderr) == (0, "")
    assert world.record(result.stdout.strip())["payload"] == {"n": 1}


def test_enqueue_takes_every_option(world: World) -> None:
    put(world, "before")
    put(world, "and-before")
    arguments = ["--id", "a", "--type", "report", "--max-retry", "0", "--delay", "5m"]
    result = world.run("task", "enqueue", "{}", *arguments, "--depends-on", "before", "--depends-on", "and-before")
    assert result.stdout == "a\n"
    record = world.record("a")
    assert (record["taskType"], record["maxRetry"], record["lockTime"]) == ("report", 0, NOW + 300)
    assert record["waitingFor"] == ["before", "and-before"]


def test_a_task_goes_to_the_queue_that_is_named(dispatch: World) -> None:
    assert dispatch.run("task", "enqueue", "--id", "a", "--queue", "mail").exit_code == 0
    assert dispatch.record("a")["dispatch"] == "mail#0"
    result = dispatch.run("task", "enqueue", "--id", "b", "--queue", "post")
    assert result.exit_code == 1
    assert "The table has no queue post; it has default, mail." in result.stderr


def test_not_before_is_a_date_with_a_zone(world: World) -> None:
    assert world.run("task", "enqueue", "--id", "a", "--not-before", "2030-01-01T00:00+01:00").exit_code == 0
    assert world.record("a")["lockTime"] == 1_893_452_400


def test_a_payload_comes_from_a_file(world: World, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_bytes(
        b'\xef\xbb\xbf{"gr\xc3\xb6\xc3\x9fe": {"$decimal": "1.10"}}'
    )  # with the mark that Windows puts before UTF-8
    world.run("task", "enqueue", f"@{file}", "--id", "a")
    assert world.record("a")["payload"] == {"größe": Decimal("1.10")}


def test_a_payload_comes_from_stdin(world: World) -> None:
    world.run("task", "enqueue", "-", "--id", "a", input='{"n": 2}')
    assert world.record("a")["payload"] == {"n": 2}


def test_what_is_shown_as_json_can_be_enqueued_again(world: World) -> None:
    payload = {"b": b"\x00", "d": Decimal("1.10"), "s": {1, 2}, "f": 0.1, "inf": float("inf"), "m": {"$set": 1}}
    put(world, "a", payload=payload)
    shown = world.json("task", "get", "a")["payload"]
    assert world.run("task", "enqueue", json.dumps(shown), "--id", "b").exit_code == 0
    assert world.record("b")["payload"] == payload


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["[1]"], "PAYLOAD: the payload is a list; it must be a JSON object", id="a list"),
        pytest.param(["n=1"], "PAYLOAD: not JSON", id="no JSON"),
        pytest.param(["@/no/such/file"], "/no/such/file cannot be read: No such file", id="a file that is not there"),
        pytest.param(["@."], "cannot be read: Is a directory", id="a directory"),
        pytest.param(["--max-retry", "-1"], "not in the range", id="retries below zero"),
        pytest.param(["--delay", "later"], "not a time span", id="a delay that is no span"),
        pytest.param(["--not-before", "2030-01-01T00:00"], "no time zone", id="a time without a zone"),
        pytest.param(["--delay", "1", "--not-before", "1"], "give one of them", id="both a delay and a time"),
        pytest.param(["--depends-on", ""], "a taskId is not empty", id="an empty dependency"),
        pytest.param(["--if-exists", "skip"], "not one of", id="another way with one that exists"),
        pytest.param(["{}", "--many"], "from @FILE, or from stdin", id="many in an argument"),
        pytest.param(["-", "--many", "--id", "a"], "--id does not go with --many", id="one id for many"),
        pytest.param(["-", "--many", "--queue", "a"], "--queue does not go with --many", id="one queue for many"),
        pytest.param(["-", "--many", "--depends-on", "a"], "--depends-on does not go with --many", id="dependencies for many"),
        pytest.param(["@/no/such/file", "--many"], "cannot be read", id="a file of many that is not there"),
    ],
)
def test_wrong_usage_of_enqueue(world: World, arguments: list[str], words: str) -> None:
    result = world.run("task", "enqueue", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert world.store.records() == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["{}", "--id", "taken"], "A task with the id taken exists", id="an id that is taken"),
        pytest.param(["{}", "--depends-on", "nowhere"], "depends_on names nowhere", id="a dependency that is not there"),
        pytest.param(['{"dependsOn": "a"}', "--depends-on", "taken"], "give one of them", id="dependencies given twice"),
        pytest.param(["{}", "--id", "x" * 3000], "longer than 2048 bytes", id="an id that is too long"),
        pytest.param([json.dumps({"a": "x" * 500_000})], "the largest part is payload.a", id="a payload that is too large"),
    ],
)
def test_what_the_table_does_not_take_is_told(world: World, arguments: list[str], words: str) -> None:
    put(world, "taken")
    result = world.run("task", "enqueue", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert list(world.store.records()) == ["taken"]


def test_a_task_that_exists_is_shown_where_asked(world: World) -> None:
    put(world, "a", payload={"n": 7})
    result = world.run("task", "enqueue", '{"n": 8}', "--id", "a", "--if-exists", "return", "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["payload"] == {"n": 7}


def test_dependencies_are_not_checked_where_asked(world: World) -> None:
    result = world.run("task", "enqueue", "--id", "a", "--depends-on", "later", "--no-check-dependencies")
    assert result.exit_code == 0
    assert world.record("a")["waitingFor"] == ["later"]


# --- enqueue many -------------------------------------------------------------------------------------------------------


def lines(*tasks: Any) -> bytes:
    return b"".join(task if isinstance(task, bytes) else json.dumps(task).encode() + b"\n" for task in tasks)


def test_many_are_read_a_line_each(world: World) -> None:
    task = {"taskId": "a", "payload": {"n": 1}, "taskType": "t", "maxRetry": 1, "delay": "2m"}
    later = {"taskId": "b", "payload": {}, "notBefore": "2030-01-01T00:00Z", "dependsOn": "a"}
    result = world.run(
        "task", "enqueue", "-", "--many", input=lines(task, b"\n", later, {"payload": {"d": {"$decimal": "1.0"}}})
    )
    assert result.exit_code == 0
    assert result.stderr == "3 enqueued, 0 existing, 0 failed\n"
    assert result.stdout.splitlines()[:2] == ["a", "b"]
    a, b = world.record("a"), world.record("b")
    assert (a["taskType"], a["maxRetry"], a["lockTime"]) == ("t", 1, NOW + 120)
    assert (b["lockTime"], b["waitingFor"]) == (1_893_456_000, ["a"])


def test_a_line_may_say_all_that_a_new_task_may() -> None:
    assert set(KEYS.values()) == {each.name for each in fields(NewTask)}


def test_each_of_many_goes_to_the_queue_that_its_line_names(dispatch: World) -> None:
    file = lines(*({"taskId": queue, "payload": {}, "queue": queue} for queue in ("mail", "post", "default")))
    result = dispatch.run("task", "enqueue", "-", "--many", input=file)
    assert result.exit_code == 1
    assert "line 2: The table has no queue post; it has default, mail." in result.stderr
    assert {task_id: item["dispatch"] for task_id, item in dispatch.store.records().items()} == {
        "mail": "mail#0",
        "default": "default#0",
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param(b"{\n", "not JSON", id="no JSON"),
        pytest.param(b"\xff\n", "not UTF-8 text: byte 1 is 0xff", id="no UTF-8"),
        pytest.param([1], "the line is a list", id="a list"),
        pytest.param({}, "'payload' is missing", id="no payload"),
        pytest.param({"payload": "x"}, "the payload is text", id="a payload that is text"),
        pytest.param(
            {"payload": {}, "type": "x"}, "there is no key 'type'; the keys are payload", id="a key that does not exist"
        ),
        pytest.param({"payload": {}, "queue": ["mail"]}, "queue: it is a list", id="a queue that is a list"),
        pytest.param({"payload": {}, "queue": "mail"}, "The table has no queue mail", id="a queue on a table that has none"),
        pytest.param({"payload": {}, "taskId": 7}, "taskId: it is a number", id="a taskId that is a number"),
        pytest.param({"payload": {}, "taskId": ""}, "taskId: it is empty text", id="an empty taskId"),
        pytest.param({"payload": {}, "maxRetry": True}, "maxRetry: it is true or false", id="retries that are true"),
        pytest.param({"payload": {}, "maxRetry": 1001}, "max_retry is 1001", id="too many retries"),
        pytest.param({"payload": {}, "delay": [1]}, "delay: it is a list", id="a delay that is a list"),
        pytest.param({"payload": {}, "delay": "x"}, "delay: 'x' is not a time span", id="a delay that is no span"),
        pytest.param({"payload": {}, "notBefore": "2030-01-01"}, "notBefore: ", id="a time without a zone"),
        pytest.param({"payload": {}, "delay": 1, "notBefore": 1}, "give one of them", id="both a delay and a time"),
        pytest.param({"payload": {}, "dependsOn": [""]}, "dependsOn: it is empty text", id="an empty dependency"),
        pytest.param({"payload": {}, "taskId": "me", "dependsOn": "me"}, "depends on itself", id="a dependency on itself"),
        pytest.param({"payload": {}, "dependsOn": "nowhere"}, "dependsOn names nowhere", id="a dependency that is not there"),
        pytest.param({"payload": {"a": "x" * 500_000}}, "the largest part is payload.a", id="a payload that is too large"),
    ],
)
def test_a_line_that_fails_is_told_and_the_others_are_enqueued(world: World, line: Any, words: str) -> None:
    good, other = {"taskId": "a", "payload": {}}, {"taskId": "b", "payload": {}}
    result = world.run("task", "enqueue", "-", "--many", input=lines(good, line, other))
    assert result.exit_code == 1
    assert result.stdout == "a\nb\n"
    told, counts = result.stderr.splitlines()
    assert told.startswith("line 2: ")
    assert words in told
    assert counts == "2 enqueued, 0 existing, 1 failed"
    assert world.store.records().keys() == {"a", "b"}


def test_many_can_be_enqueued_again(world: World) -> None:
    file = lines(*({"taskId": f"t{number}", "payload": {}} for number in range(3)))
    world.run("task", "enqueue", "-", "--many", input=file[: len(file) // 2])
    result = world.run("task", "enqueue", "-", "--many", input=file)
    assert result.exit_code == 0
    assert result.stderr == "2 enqueued, 1 existing, 0 failed\n"
    assert world.store.records().keys() == {"t0", "t1", "t2"}


def test_a_task_that_exists_is_wrong_where_asked(world: World) -> None:
    put(world, "a")
    file = lines({"taskId": "a", "payload": {}}, {"taskId": "b", "payload": {}}, {"taskId": "b", "payload": {}})
    result = world.run("task", "enqueue", "-", "--many", "--if-exists", "raise", input=file)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[:2] == ["line 1: there is a task a already", "line 3: there is a task b already"]


def test_more_lines_than_one_chunk(world: World) -> None:
    count = 2 * CHUNK + 1
    file = lines(*({"taskId": f"t{number}", "payload": {}} for number in range(count)))
    result = world.run("task", "enqueue", "-", "--many", input=file)
    assert result.stdout.splitlines() == [f"t{number}" for number in range(count)]
    assert len(world.store.records()) == count


def test_results_of_many_as_lines_of_json(world: World) -> None:
    put(world, "old")
    file = lines({"taskId": "old", "payload": {}}, b"x\n", {"taskId": "new", "payload": {}})
    result = world.run("task", "enqueue", "-", "--many", "-o", "jsonl", input=file)
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert first == {"line": 1, "taskId": "old", "state": "existing"}
    assert (second["line"], second["state"], "error" in second) == (2, "failed", True)
    assert third == {"line": 3, "taskId": "new", "state": "enqueued"}


def test_a_table_that_goes_away_stops_many_and_says_where(world: World) -> None:
    world.used = Refusing(world.time, StoreUnavailable("no reply"), allowed=CHUNK)
    file = lines(*({"taskId": f"t{number}", "payload": {}} for number in range(3 * CHUNK)))
    result = world.run("task", "enqueue", "-", "--many", "-o", "json", input=file)
    assert result.exit_code == 1
    assert f"error: Stopped at line {CHUNK + 1}: no reply" in result.stderr
    assert f"{CHUNK} enqueued" in result.stderr
    assert len(json.loads(result.stdout)) == CHUNK


def test_what_needs_a_refused_line_is_refused_too() -> None:
    needs = {"a": ("lost",), "b": ("a",), "c": ("b", "d"), "d": ()}
    assert refuse_dangling(needs, {"lost"}).keys() == {"a", "b", "c"}
    assert refuse_dangling(needs, set()) == {}


def test_lines_of_one_chunk_may_need_each_other_in_any_order(world: World) -> None:
    file = lines({"taskId": "a", "payload": {"dependsOn": ["b"]}}, {"taskId": "b", "payload": {}})
    assert world.run("task", "enqueue", "-", "--many", input=file).exit_code == 0
    assert world.record("a")["waitingFor"] == ["b"]


# --- get ----------------------------------------------------------------------------------------------------------------


def test_get_shows_a_task_that_waits_and_why(world: World) -> None:
    put(world, "done", status="DONE")
    put(world, "w", lockTime=NOW + 20, waitingFor=["done", "gone"], payload={"dependsOn": ["done", "gone"]}, taskType="t")
    shown = world.run("task", "get", "w").stdout
    assert "waits for  done (DONE)\n           gone (not in the table)\n" in shown
    assert "looked at again at 2027-01-15 08:00:20Z (in 20 s)" in shown
    assert "type       t\n" in shown


def test_get_shows_a_lease_and_its_runs(world: World) -> None:
    lost = {"owner": "p/h/1-a", "began": NOW - 600, "ended": NOW - 300, "outcome": "lost"}
    put(world, "r", history=[lost], retryCount=1, releaseCount=2)
    claim(world.store, "r", owner="p/h/2-b")
    world.time.now += 40
    shown = world.run("task", "get", "r").stdout
    assert "lease    ends in 4 min 20 s\n" in shown
    assert "owner    p/h/2-b\n" in shown
    assert "retries  1 of 3 used, released 2 times without a charge\n" in shown
    assert "2027-01-15 07:50:00Z  5 min  lost     p/h/1-a  -\n" in shown


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        pytest.param({}, "starts   when an agent takes it; ready for 1 min 40 s", id="ready"),
        pytest.param({"lockTime": NOW + 60}, "starts   not before 2027-01-15 08:01:00Z (in 1 min)", id="not before"),
        pytest.param({"waitingFor": ["x"]}, "when its dependencies are met; due for a look", id="due for a look"),
        pytest.param({"status": "RUNNING"}, "lease    none; any agent may take it over", id="no lease"),
        pytest.param(
            {"status": "RUNNING", "lockTime": NOW - 60}, "lease    ended 1 min ago; any agent", id="a lease that ended"
        ),
        pytest.param({"status": "DONE", "result": {"ok": True}}, '"ok": true', id="a result"),
        pytest.param({"status": "RUNNING", "progress": {"row": 7}}, '"row": 7', id="progress"),
        pytest.param(
            {"status": "FAILED", "error": {"type": "E", "message": "a\nb"}}, "E: a\n         b\n", id="an error of two lines"
        ),
        pytest.param({"lockTime": NOW * 1000}, "not before epoch 1800000000000", id="a time in milliseconds"),
        pytest.param({"payload": "as others write it"}, '"as others write it"', id="a payload that is text"),
        pytest.param({"lockTime": "soon", "retryCount": "one"}, "retries  0 of 3 used", id="odd types"),
    ],
)
def test_get_shows_where_a_task_stands(world: World, attributes: dict[str, Any], words: str) -> None:
    put(world, "t", **attributes)
    assert words in world.run("task", "get", "t").stdout


def test_get_as_json_is_the_item_as_it_stands(world: World) -> None:
    put(world, "t", theirs="kept", retryCount="0")
    assert world.json("task", "get", "t") == foreign_record("t", theirs="kept", retryCount="0")


def test_what_others_wrote_does_not_drive_the_terminal(world: World) -> None:
    put(world, "t\x1b[31m", status="FAILED", error={"type": "E", "message": "\x1b]0;title\x07"}, payload={"\x9b": "\x1b"})
    for arguments in (
        ["get", "t\x1b[31m"],
        ["get", "t\x1b[31m", "-o", "json"],
        ["list"],
        ["list", "-o", "jsonl"],
        ["wait", "t\x1b[31m"],
    ):
        shown = world.run("task", *arguments).stdout
        assert "t\\x1b[31m" in shown or "t\\u001b[31m" in shown
        assert not {"\x1b", "\x07", "\x9b"} & set(shown)


# --- list ---------------------------------------------------------------------------------------------------------------


def test_list_is_aligned_and_has_a_line_a_task(world: World) -> None:
    put(world, "a", lockTime=NOW + 60)
    put(world, "longer-id", status="RUNNING", lockTime=NOW + 30, lockOwner="p/h/1", taskType="report")
    put(world, "f", status="FAILED", error={"type": "E", "message": "first\nsecond"})
    result = world.run("task", "list")
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "TASK       STATUS   TYPE    AGE    RETRIES  STATE          OWNER",
        "a          PENDING  -       1m40s  0/3      starts in 1m   -",
        "longer-id  RUNNING  report  1m40s  0/3      lease has 30s  p/h/1",
        "f          FAILED   -       1m40s  0/3      E: first       -",
    ]


def test_list_chooses_by_status_type_and_age(world: World) -> None:
    put_pending(world.store, "a", "b", "c", taskType="t")
    put_pending(world.store, "d", created_at=NOW - 50, taskType="u")
    put(world, "s", status="SUCCESS")
    ids = [
        task["taskId"] for task in world.json("task", "list", "--status", "pending", "--type", "t", "--newest", "--limit", "2")
    ]
    assert ids == ["c", "b"]
    assert [task["taskId"] for task in world.json("task", "list", "--status", "SUCCESS", "--status", "DONE")] == ["s"]


def test_list_says_where_it_stopped(world: World) -> None:
    put_pending(world.store, "a", "b", "c")
    result = world.run("task", "list", "--limit", "2", "-o", "jsonl")
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == "Stopped at --limit 2; there may be more.\n"


def test_an_empty_list_is_an_empty_array(world: World) -> None:
    assert world.json("task", "list") == []
    assert world.run("task", "list", "-o", "jsonl").stdout == ""


# --- wait ---------------------------------------------------------------------------------------------------------------


def test_wait_ends_when_all_have_ended(world: World) -> None:
    put(world, "a", status="SUCCESS")
    put(world, "b", status="DONE")
    result = world.run("task", "wait", "a", "b")
    assert result.exit_code == 0
    assert result.stdout == "a  SUCCESS\nb  DONE\n"


def test_wait_tells_of_one_that_failed_and_waits_for_the_others(world: World) -> None:
    put_failed(world, "a")
    put(world, "b", status="DONE")
    result = world.run("task", "wait", "a", "gone", "b")
    assert result.exit_code == 1
    assert result.stdout == "a  FAILED  ValueError: no\nb  DONE\n"
    assert "There is no task gone" in result.stderr


def test_one_that_failed_alone_decides_the_exit_code(world: World) -> None:
    put_failed(world, "a")
    result = world.run("task", "wait", "a")
    assert (result.exit_code, result.stderr) == (1, "")


def test_wait_gives_up_in_time_for_all_together(world: World) -> None:
    put_pending(world.store, "a", "b")
    result = world.run("task", "wait", "a", "b", "--timeout", "5m")
    assert result.exit_code == 1
    assert "a is still PENDING" in result.stderr
    assert "b is still PENDING" in result.stderr
    assert world.time.now - NOW == pytest.approx(300, abs=1)


# --- cancel and redrive -------------------------------------------------------------------------------------------------


def test_cancel_goes_on_after_one_that_cannot_be(world: World) -> None:
    put(world, "a")
    put(world, "ended", status="DONE")
    put(world, "b")
    result = world.run("task", "cancel", "a", "ended", "gone", "b", "--reason", "not needed")
    assert result.exit_code == 1
    assert result.stdout == "a\nb\n"
    assert [line.split()[0] for line in result.stderr.splitlines()] == ["error:", "error:"]
    assert world.record("b")["error"]["message"] == "not needed"


def test_redrive_by_id(world: World) -> None:
    put_failed(world, "a")
    put(world, "b", status="DONE")
    result = world.run("task", "redrive", "a", "b")
    assert result.exit_code == 1
    assert result.stdout == "a\n"
    assert "only a FAILED task can be redriven" in result.stderr
    assert world.record("a")["status"] == "PENDING"


def test_redrive_all_failed_of_a_type(world: World) -> None:
    for number in range(250):
        put_failed(world, f"t{number}", taskType="t", createdAt=NOW - 1000 + number)
    put_failed(world, "u", taskType="u")
    result = world.run("task", "redrive", "--all-failed", "--type", "t")
    assert result.exit_code == 0
    assert result.stderr == "250 redriven, 0 not\n"
    assert len(set(result.stdout.splitlines())) == 250
    assert world.record("u")["status"] == "FAILED"


def dependent(world: World, task_id: str, *on: str) -> None:
    error = {"type": "DependencyFailed", "message": f"{on[0]} FAILED"}
    put_failed(world, task_id, payload={"dependsOn": list(on)}, error=error)


def test_redrive_takes_dependents_along_generation_by_generation(world: World) -> None:
    put_failed(world, "a")
    dependent(world, "b", "a")
    dependent(world, "c", "b")
    dependent(world, "other", "elsewhere")
    put_failed(world, "own-fault", payload={"dependsOn": ["a"]})
    result = world.run("task", "redrive", "a", "--dependents")
    assert result.exit_code == 0
    assert result.stdout == "a\nb\nc\n"


def test_redrive_ends_where_dependents_go_in_circles(world: World) -> None:
    dependent(world, "a", "b")
    dependent(world, "b", "a")
    result = world.run("task", "redrive", "a", "--dependents")
    assert (result.exit_code, result.stdout) == (0, "a\nb\n")


def test_all_of_a_type_and_what_failed_because_of_them(world: World) -> None:
    put_failed(world, "a", taskType="t")
    dependent(world, "b", "a")
    result = world.run("task", "redrive", "--all-failed", "--type", "t", "--dependents", "-o", "json")
    assert [task["taskId"] for task in json.loads(result.stdout)] == ["a", "b"]


# --- stats --------------------------------------------------------------------------------------------------------------


def test_stats_count_and_say_where_they_were_cut(world: World) -> None:
    put_pending(world.store, "a", "b", "c", "d")
    put(world, "r", status="RUNNING", lockTime=NOW + 60, lockOwner="p/h/1")
    put(world, "e", status="RUNNING", lockTime=NOW - 60)
    shown = world.run("stats", "--limit", "3").stdout
    assert "PENDING  3+\n" in shown
    assert "RUNNING  2\n" in shown
    assert "ready       3+, the oldest for 1 min 40 s\n" in shown
    assert "1  p/h/1\n" in shown
    assert "expired     1+ past their lease\n" in shown
    assert "read units  4.5\n" in shown


def test_stats_as_json(world: World) -> None:
    put_pending(world.store, "a")
    put(world, "w", waitingFor=["a"])
    put(world, "later", lockTime=NOW + 60)
    shown = world.json("stats")
    assert shown["counts"] == {"PENDING": 3, "RUNNING": 0, "SUCCESS": 0, "DONE": 0, "FAILED": 0}
    assert (shown["ready"], shown["waiting"], shown["waitingDue"], shown["scheduled"]) == (1, 1, 1, 1)
    assert (shown["cut"], shown["backlogCut"], shown["readUnits"]) == ([], False, 4.5)
