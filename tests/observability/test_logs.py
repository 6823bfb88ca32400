"""Log lines: one for each change of a task's state, the same keys everywhere, and nothing that is not ours to tell."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from tests.builders import NOW, foreign_record
from thunderagent import log
from thunderagent.agent.decisions import StopReason
from thunderagent.agent.events import Events
from thunderagent.errors import InvalidSettings, StoreUnavailable
from thunderagent.metrics import AgentMetrics
from thunderagent.task import ErrorType, OutcomeKind, Task, TaskError
from thunderagent.transitions import Lease

MARKER = "s3cret-in-the-payload"
OWNER = "team.reports/pod-1/uid-1-abc"

KEYS = {
    "time",
    "level",
    "logger",
    "event",
    "task_id",
    "task_type",
    "pool",
    "owner",
    "status",
    "retry",
    "wait_s",
    "run_s",
    "error",
}
MORE = {"outcome", "lost_by", "now_held_by", "reason"}
"""What some lines about a task say beside the keys that all may have."""


class Lines:
    """Everything that is logged, in the form that an environment asks for."""

    def __init__(self, form: str) -> None:
        self._stream = io.StringIO()
        root = logging.getLogger()
        self._before = root.handlers[:], root.level
        root.handlers = []
        log.set_up(environ={log.VARIABLE: form})
        (handler,) = root.handlers
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(self._stream)
        self.handler = handler

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def objects(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def close(self) -> None:
        root = logging.getLogger()
        root.handlers, level = self._before
        root.setLevel(level)


@pytest.fixture
def json_lines() -> Iterator[Lines]:
    lines = Lines("json")
    yield lines
    lines.close()


@pytest.fixture
def text_lines() -> Iterator[Lines]:
    lines = Lines("")
    yield lines
    lines.close()


@pytest.fixture
def events() -> Events:
    return Events(AgentMetrics(CollectorRegistry(), "team.reports"), OWNER, lambda: 0.0)


def lease(task_id: str = "t1", **attributes: object) -> Lease:
    secrets = {"payload": {"password": MARKER}, "progress": {"step": MARKER}, "result": {"x": MARKER}, "taskType": "report"}
    task = Task.from_record(foreign_record(task_id, **secrets, status="RUNNING", retryCount=1, **attributes))
    return Lease(task, f"token-{task_id}", OWNER, NOW, (NOW + 300,))


def whole_life(events: Events) -> None:
    """Every change of state that an agent tells, once each."""
    events.claimed(lease("success"), 1.5)
    events.settled(lease("success"), OutcomeKind.SUCCESS, "complete", 2.25, None)
    events.settled(lease("done"), OutcomeKind.DONE, "complete", 2.25, None)
    events.settled(lease("retry"), OutcomeKind.RETRY, "retry", 2.25, TaskError("ValueError", "no such column", NOW))
    events.settled(lease("fail"), OutcomeKind.FAILED, "fail", 2.25, TaskError("Fail", "for good", NOW))
    events.settled(lease("release"), OutcomeKind.RELEASED, "release", 2.25, None)
    events.settled(lease("snooze"), OutcomeKind.SNOOZED, "release", 2.25, None)
    events.taken_over(lease("over"), "team.reports/pod-2/uid-2-xyz")
    events.claimed(lease("over"), 0.0)
    events.buried(lease("bury").task)
    events.lost(lease("lost").task, StopReason.TAKEN, None)
    events.dependency("unblocked", lease("unblock").task)
    events.dependency("abandoned", lease("abandon").task, TaskError(ErrorType.DEPENDENCY_FAILED, "x failed", NOW))


STATUSES: dict[str, list[str | None]] = {
    "success": ["RUNNING", "SUCCESS"],
    "done": ["DONE"],
    "retry": ["PENDING"],
    "fail": ["FAILED"],
    "release": ["PENDING"],
    "snooze": ["PENDING"],
    "over": ["RUNNING"],
    "bury": ["FAILED"],
    "lost": [None],
    "unblock": ["PENDING"],
    "abandon": ["FAILED"],
}


def test_each_change_of_state_is_one_line_with_the_status_that_the_task_has_then(events: Events, json_lines: Lines) -> None:
    whole_life(events)
    told: dict[object, list[object]] = {}
    for line in json_lines.objects:
        told.setdefault(line["task_id"], []).append(line.get("status"))
    assert told == STATUSES


def test_a_take_over_is_one_line_that_names_who_lost_the_task(events: Events, json_lines: Lines) -> None:
    whole_life(events)
    (line,) = [line for line in json_lines.objects if line["task_id"] == "over"]
    assert (line["event"], line["level"], line["lost_by"]) == ("task taken over", "WARNING", "team.reports/pod-2/uid-2-xyz")


def test_every_line_about_a_task_has_the_same_keys(events: Events, json_lines: Lines) -> None:
    whole_life(events)
    for line in json_lines.objects:
        assert set(line) <= KEYS | MORE, line
        assert {"time", "level", "event", "task_id", "task_type", "pool", "owner", "retry"} <= set(line), line
        assert (line["pool"], line["owner"], line["task_type"], line["retry"]) == ("team.reports", OWNER, "report", 1)


def test_numbers_and_errors_stand_in_json_as_such(events: Events, json_lines: Lines) -> None:
    whole_life(events)
    claimed, ended, _, retried, *_ = json_lines.objects
    assert claimed["wait_s"] == 1.5
    assert (ended["run_s"], ended["level"], "error" in ended) == (2.25, "INFO", False)
    assert (retried["error"], retried["level"], retried["outcome"]) == ("ValueError: no such column", "WARNING", "retry")


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_line_holds_a_payload_a_result_or_progress(events: Events, form: str) -> None:
    lines = Lines(form)
    try:
        whole_life(events)
        text = lines.text
    finally:
        lines.close()
    assert text.count("\n") == sum(map(len, STATUSES.values()))
    assert MARKER not in text


def test_text_is_one_line_whatever_a_value_holds(events: Events, text_lines: Lines) -> None:
    events.settled(lease("t\n1"), OutcomeKind.RETRY, "retry", 1.0, TaskError("E", "two\nlines and 'quotes'", NOW))
    (line,) = text_lines.text.splitlines()
    assert "WARNING task goes back for a retry task_id='t\\n1' task_type=report" in line
    assert "run_s=1 error=" in line


def test_an_outage_is_two_lines_however_long_it_lasts(events: Events, json_lines: Lines) -> None:
    for _ in range(100):
        events.poll_failed(StoreUnavailable("no route"))
    events.polled(0, NOW)
    assert [line["event"] for line in json_lines.objects] == ["poll fails", "poll works again"]


def test_a_traceback_stays_inside_its_json_line(json_lines: Lines) -> None:
    try:
        raise ValueError("boom")
    except ValueError as error:
        logging.getLogger("thunderagent.agent").error("a fault", exc_info=error)
    (line,) = json_lines.objects
    assert line["event"] == "a fault"
    assert "ValueError: boom" in str(line["traceback"])


def test_lines_written_in_the_background_keep_their_fields_and_their_order(events: Events, json_lines: Lines) -> None:
    with log.in_background():
        whole_life(events)
        logging.getLogger("other").warning("%s of %s", 1, 2)
    assert [line.get("task_id", line["event"]) for line in json_lines.objects][-2:] == ["abandon", "1 of 2"]
    assert len(json_lines.objects) == sum(map(len, STATUSES.values())) + 1


def test_a_line_tells_what_was_true_when_it_was_logged_however_late_it_is_written(json_lines: Lines) -> None:
    reader_is_back = threading.Event()
    json_lines.handler.addFilter(lambda record: reader_is_back.wait(30))
    waiting = ["one"]
    with log.in_background():
        logging.getLogger("other").warning("waiting: %s", waiting)
        waiting.append("two")
        reader_is_back.set()
    assert [line["event"] for line in json_lines.objects] == ["waiting: ['one']"]


def test_an_unknown_form_is_refused_by_name() -> None:
    with pytest.raises(InvalidSettings, match="THUNDERAGENT_LOG_FORMAT is 'xml'; write text or json"):
        log.form_named({log.VARIABLE: "xml"})


def test_the_longest_run_is_told_and_ends_with_the_task() -> None:
    clock = [100.0]
    registry = CollectorRegistry()
    events = Events(AgentMetrics(registry, "crew"), OWNER, lambda: clock[0])
    labels = {"namespace": "", "pool": "crew"}
    events.claimed(lease("first"), 0.0)
    clock[0] = 130.0
    events.claimed(lease("second"), 0.0)
    assert registry.get_sample_value("thunderagent_longest_run_seconds", labels) == 30
    events.settled(lease("first"), OutcomeKind.SUCCESS, "complete", 30.0, None)
    clock[0] = 131.0
    assert registry.get_sample_value("thunderagent_longest_run_seconds", labels) == 1
    events.settled(lease("second"), OutcomeKind.SUCCESS, "complete", 1.0, None)
    assert registry.get_sample_value("thunderagent_longest_run_seconds", labels) == 0
