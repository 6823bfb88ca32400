"""When a status is worth a write, and what conditions keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.conditions import Outcome, conditions, rfc3339
from controller.faults import Fault
from controller.status import LATER, SOON, Status, new_status, notices, worth_writing
from tests.builders import NOW
from thunderagent.scaling import Observation, Pause

OUTCOME = Outcome(generation=1, observation=Observation(desired=2), replicas=2)
BAD = replace(OUTCOME, faults=(Fault("TableMissing", "No table."), Fault("PodsPending", "No room")))


def status(outcome: Outcome = OUTCOME, previous: Status | None = None, now: float = NOW) -> Status:
    return new_status(outcome, previous or {}, now)


def of(kind: str, outcome: Outcome) -> dict[str, Any]:
    return next(each for each in conditions(outcome, (), NOW) if each["type"] == kind)


def test_the_first_fault_is_the_reason_and_all_are_told() -> None:
    ready = of("Ready", BAD)
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "TableMissing", "No table. No room.")


def test_a_transition_is_dated_and_what_stays_keeps_its_date() -> None:
    first = conditions(OUTCOME, (), NOW)
    same = conditions(OUTCOME, first, NOW + 50)
    turned = conditions(BAD, same, NOW + 90)
    dates = [{each["type"]: each["lastTransitionTime"] for each in found} for found in (first, same, turned)]
    assert dates[0] == dates[1]
    assert dates[2] == {**dates[0], "Ready": rfc3339(NOW + 90)}


def test_another_reason_of_the_same_status_is_no_transition() -> None:
    first = conditions(BAD, (), NOW)
    other = conditions(replace(OUTCOME, faults=(Fault("AccessDenied", "No."),)), first, NOW + 10)
    assert other[0]["reason"] == "AccessDenied"
    assert other[0]["lastTransitionTime"] == rfc3339(NOW)


@pytest.mark.parametrize(
    ("pause", "reason"),
    [
        pytest.param(Pause(), "NotPaused", id="none"),
        pytest.param(Pause(scale_in=True), "PausedIn", id="in"),
        pytest.param(Pause(scale_out=True), "PausedOut", id="out"),
        pytest.param(Pause.everything(), "Paused", id="all"),
        pytest.param(Pause(scale_in=True, at_replicas=0), "PausedAtReplicas", id="a pin wins"),
    ],
)
def test_paused(pause: Pause, reason: str) -> None:
    assert of("Paused", replace(OUTCOME, pause=pause))["reason"] == reason


def changed(**changes: Any) -> Status:
    return {**status(), **changes}


WORTH = [
    pytest.param({}, 3600.0, False, id="nothing has changed"),
    pytest.param({"oldestReadySeconds": 7}, SOON, False, id="an age is no news"),
    pytest.param({"oldestReadySeconds": 7}, LATER, True, id="an age, a minute later"),
    pytest.param({"lastReadTime": rfc3339(NOW + 5)}, 3600.0, False, id="that it was read again is no news"),
    pytest.param({"backlog": 1}, 0.0, True, id="the first task at once"),
    pytest.param({"running": 3}, 0.0, False, id="more running tasks"),
    pytest.param({"running": 3}, SOON, True, id="more running tasks, some seconds later"),
    pytest.param({"desiredReplicas": 3}, 0.0, True, id="another number of replicas at once"),
    pytest.param({"observedGeneration": 2}, 0.0, True, id="an edit at once"),
    pytest.param({"conditions": status(BAD)["conditions"]}, 0.0, True, id="a fault at once"),
]


@pytest.mark.parametrize(("changes", "ago", "worth"), WORTH)
def test_what_is_worth_a_write(changes: dict[str, Any], ago: float, worth: bool) -> None:
    assert worth_writing(changed(**changes), status(), ago) is worth


def test_another_fault_is_worth_a_write_at_once_and_other_words_are_not() -> None:
    other = replace(OUTCOME, faults=(Fault("AccessDenied", "No."),))
    words = replace(OUTCOME, faults=(Fault("TableMissing", "Still no table."),))
    assert worth_writing(status(other), status(BAD), 0.0)
    assert not worth_writing(status(words), status(BAD), SOON)
    assert worth_writing(status(words), status(BAD), LATER)


def test_numbers_that_were_not_learned_stay() -> None:
    known = status(replace(OUTCOME, observation=Observation(desired=2, ready=5, expired=1)))
    after = status(replace(BAD, observation=None), known)
    assert (after["backlog"], after["expired"]) == (6, 1)


def test_a_new_pool_that_is_in_order_has_no_events() -> None:
    assert notices(status(), {}) == []
    assert [each.reason for each in notices(status(BAD), {})] == ["TableMissing"]


def test_events_of_a_fault_and_its_end() -> None:
    assert [(each.kind, each.reason) for each in notices(status(BAD), status())] == [("Warning", "TableMissing")]
    assert [(each.kind, each.reason) for each in notices(status(), status(BAD))] == [("Normal", "Scaling")]
