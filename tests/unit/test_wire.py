"""What a child and its agent say to each other: nothing of a handler's own making is ever made in the agent."""

from __future__ import annotations

import enum
import pickle
from decimal import Decimal
from typing import Any

import pytest

from thunderagent.agent import wire
from thunderagent.agent.handler import Router
from thunderagent.task import ErrorType, Outcome, OutcomeKind, TaskError


class Text(str):
    """Text of a handler's own kind."""


class Seconds(float):
    """A float of its own kind, as numpy has one."""


class Count(int):
    """An int of its own kind."""


class Kind(enum.StrEnum):
    REPORT = "report"


class Thing:
    """Anything else."""


def through(value: Any) -> Any:
    return wire.unpack(wire.pack(value)[wire.HEADER.size :])


@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        pytest.param(Text("a"), "a", id="text"),
        pytest.param(Kind.REPORT, "report", id="an enum of text"),
        pytest.param(Seconds(1.5), 1.5, id="a float"),
        pytest.param(Count(3), 3, id="an int"),
    ],
)
def test_a_value_of_a_handlers_own_kind_arrives_as_what_it_is_made_of(given: object, arrives: object) -> None:
    sent = wire.Ended(1, Outcome(OutcomeKind.SUCCESS, {"a": [given]}))

    (received,) = through(sent).outcome.result["a"]

    assert received == arrives
    assert type(received) is type(arrives)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(wire.Start(1, {"payload": {"d": Decimal("1.10"), "b": b"\0", "s": {1, 2}, "n": None}}), id="a start"),
        pytest.param(wire.Save(1, {"step": 2}, True), id="progress"),
        pytest.param(wire.Ended(1, Outcome(OutcomeKind.RETRY, error=TaskError(ErrorType.TIMED_OUT, "late"))), id="an end"),
        pytest.param(wire.Saved(1, False), id="an answer"),
    ],
)
def test_what_they_say_arrives_equal(value: object) -> None:
    assert through(value) == value


def test_routes_for_types_that_are_an_enum_arrive_as_text() -> None:
    router = Router()
    router.task(Kind.REPORT, timeout=Seconds(5))(lambda task: None)

    table = through(wire.Ready(router.table())).routes

    assert [type(each) for each in table.routes] == [str]
    assert type(table.routes["report"].settings.timeout) is float


def test_what_is_neither_plain_nor_ours_is_refused_before_it_is_made() -> None:
    body = pickle.dumps(Thing())

    with pytest.raises(pickle.UnpicklingError, match="Thing is neither plain nor ours"):
        wire.unpack(body)
