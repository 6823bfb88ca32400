"""Hostile values, drawn by hypothesis: the ones that have hurt somebody first, then anything of the same shape."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.builders import NOW
from thunderagent.task import Attr, Status

SEEDED = settings(derandomize=True, deadline=timedelta(seconds=30), database=None, suppress_health_check=[HealthCheck.too_slow])
"""The same examples at each run, so that a failure in CI is one at home, too. The deadline is for what does not end."""


def nested(levels: int) -> Any:
    """Maps and lists in each other. DynamoDB takes 32 levels, and ThunderAgent writes 15."""
    value: Any = "x"
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


def _number(text: str) -> Decimal:
    return Decimal(text)


# What DynamoDB takes as a number: 38 digits, 1e-130 to 9.99e125 either way.
_NUMBERS = st.one_of(
    st.sampled_from(["0", "-1", "1.5", "9.9e125", "-9.9e125", "1e-130", "1" * 38, "0." + "1" * 28, "1e11", "1e18"]).map(
        _number
    ),
    st.integers(NOW - 1000, NOW + 10**6).map(Decimal),
    st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
)
_TEXTS = st.one_of(
    st.sampled_from(
        ["", "5", " 7 ", "1_000", "-1", "nan", "inf", "1e999", "9" * 300, "soon", "PENDING", "x" * 3000, "\0", "é" * 2000]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
_TAGS = st.sampled_from(
    [
        {"$float": "nan"},
        {"$float": "-0.0"},
        {"$decimal": "sNaN"},
        {"$decimal": "Infinity"},
        {"$decimal": "-1e999999"},
        {"$int": "9" * 400},
        {"$set": []},
        {"$set": [{"$decimal": "sNaN"}]},
        {"$items": ["", Decimal(1)]},
        {"$items": [[], Decimal(1)]},
        {"$map": {"$float": "1"}},
    ]
)
_SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS, st.binary(max_size=9), _TAGS)
_SETS = st.one_of(
    st.frozensets(_NUMBERS, min_size=1, max_size=3),
    st.frozensets(_TEXTS, min_size=1, max_size=3),
    st.frozensets(st.binary(min_size=1, max_size=3), min_size=1, max_size=3),
).map(set)
_CONTAINERS = st.recursive(
    st.one_of(_SCALARS, _SETS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("ab$", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
attributes = st.one_of(_SCALARS, _CONTAINERS, st.sampled_from([14, 20, 31]).map(nested))
"""An attribute as the table holds it, numbers as Decimal."""

_WAITING = st.one_of(attributes, st.sampled_from(["x" * 2049, ["y" * 3000, "t-0"], "t-0", "nobody", ["", 1]])).map(
    lambda value: {"dependsOn": value}
)
_RUNS = st.lists(
    st.fixed_dictionaries({}, optional={"owner": attributes, "began": attributes, "ended": attributes, "error": attributes}),
    max_size=7,
)
_OF_INDEXES = {Attr.TASK_ID, Attr.STATUS, Attr.CREATED_AT, Attr.DISPATCH, Attr.DUE_AT}  # DynamoDB refuses other types here
_ATTRIBUTES: dict[str, st.SearchStrategy[Any]] = {
    **{attr.value: attributes for attr in Attr if attr not in _OF_INDEXES},
    "payload": st.one_of(attributes, _WAITING),
    "history": st.one_of(attributes, _RUNS),
    "colour": attributes,
}
_STATUSES = st.one_of(
    st.sampled_from([Status.PENDING.value, Status.RUNNING.value]), st.sampled_from([*(each.value for each in Status), "PAUSED"])
)


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    """An item without its taskId: of any status, with a few attributes of any type and size."""
    item = {"status": draw(_STATUSES), "createdAt": draw(_NUMBERS)}
    if draw(st.booleans()):
        item["lockTime"] = Decimal(NOW - 5)
    if draw(st.booleans()):
        item["retryCount"] = Decimal(3)
    for name in draw(st.lists(st.sampled_from(sorted(_ATTRIBUTES)), max_size=5, unique=True)):
        item[name] = draw(_ATTRIBUTES[name])
    return item


def tables(count: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    """So many items, under the ids t-0, t-1, and so on."""
    return st.lists(items(), min_size=count, max_size=count).map(
        lambda drawn: [{"taskId": f"t-{number}", **item} for number, item in enumerate(drawn)]
    )
