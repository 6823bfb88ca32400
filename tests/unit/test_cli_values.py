"""Values on the command line: JSON that comes back equal, and times as people write them."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thunderagent.cli.jsonvalues import read_json, write_json
from thunderagent.errors import InvalidInput
from thunderagent.times import ago, brief, moment, parse_moment, parse_span, span

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
_keys = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["$set", "$map", "$bytes", "$decimal", "$float"])
_values = st.recursive(
    _scalars | st.sets(st.integers() | st.text(st.characters(exclude_categories=["Cs"])) | st.binary()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=10,
)


def _kinds(value: Any) -> Any:
    """The value with its types, since Python calls 1, 1.0, True and Decimal(1) equal."""
    if isinstance(value, dict):
        return {key: _kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    if isinstance(value, set):
        return "set", {(type(item), item) for item in value}
    return type(value), repr(value)


@given(_values)
def test_values_come_back_equal_from_json(value: Any) -> None:
    assert _kinds(read_json(write_json(value))) == _kinds(value)


@given(_values)
def test_json_is_plain_json_without_control_characters(value: Any) -> None:
    text = write_json(value)
    json.loads(text, parse_constant=pytest.fail)
    assert all(char.isprintable() or ord(char) > 0x9F for char in text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(b"hello", '{"$bytes": "aGVsbG8="}', id="bytes are base64"),
        pytest.param(Decimal("1.10"), '{"$decimal": "1.10"}', id="a Decimal keeps its digits"),
        pytest.param({3, 1, 2}, '{"$set": [1, 2, 3]}', id="a set is sorted"),
        pytest.param(set(), '{"$set": []}', id="an empty set stays a set"),
        pytest.param(math.inf, '{"$float": "inf"}', id="infinity"),
        pytest.param({"$set": 1}, '{"$map": {"$set": 1}}', id="a map that looks like a tag"),
        pytest.param(10**40, "1" + "0" * 40, id="an integer of any length"),
        pytest.param(-0.0, "-0.0", id="a negative zero"),
        pytest.param("größe €", '"größe €"', id="text is not escaped"),
        pytest.param("\x1b[31m\x9b", '"\\u001b[31m\\u009b"', id="but control characters are"),
    ],
)
def test_how_values_are_shown(value: Any, text: str) -> None:
    assert write_json(value) == text
    assert _kinds(read_json(text)) == _kinds(value)


def test_not_a_number_comes_back() -> None:
    assert write_json(math.nan) == '{"$float": "nan"}'
    assert math.isnan(read_json('{"$float": "nan"}'))


@pytest.mark.parametrize("text", ["0.1000000000000000055511151231257827", "1e400", "-1e-400"])
def test_a_fraction_that_no_float_spells_is_read_whole(text: str) -> None:
    assert _kinds(read_json(text)) == _kinds(Decimal(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "not JSON: Expecting value at line 1, column 1", id="nothing"),
        pytest.param("{'a': 1}", "not JSON: ", id="Python's quotes"),
        pytest.param('{"a": 1', "not JSON: ", id="cut off"),
        pytest.param("NaN", 'write {"$float": "nan"}', id="NaN"),
        pytest.param("[-Infinity]", 'write {"$float": "-inf"}', id="infinity"),
        pytest.param('{"a": 1, "a": 2}', "'a' is given twice", id="a key that is given twice"),
        pytest.param('{"$bytes": "%"}', "does not hold a bytes", id="bytes that are not base64"),
        pytest.param('{"$set": [[1]]}', "does not hold a set", id="a set of lists"),
        pytest.param('{"$decimal": "ten"}', "does not hold a decimal", id="a Decimal that is none"),
        pytest.param('{"$float": 1}', "does not hold a float", id="a tag with another type"),
        pytest.param("[" * 100_000, "not JSON that can be kept", id="a hundred thousand brackets"),
        pytest.param("1" * 5000, "not JSON that can be kept", id="an integer of 5000 digits"),
    ],
)
def test_what_is_not_json_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_json(text)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("0.5", 0.5),
        ("1.5h", 5400),
        (" 2H ", 7200),
    ],
)
def test_spans(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "-5m", "nan", "inf", "5x", "m", "5m3", "1h 30m", "٣m"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time span"):
        parse_span(text)


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("0", 0),
        ("1800000000", 1_800_000_000),
        ("1800000000.5", 1_800_000_000.5),
        ("2027-01-15T08:00:00Z", 1_800_000_000),
        ("2027-01-15T09:00+01:00", 1_800_000_000),
        ("2027-01-15 08:00:00+00:00", 1_800_000_000),
    ],
)
def test_moments(text: str, epoch: float) -> None:
    assert parse_moment(text) == epoch


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("tomorrow", "is no time", id="words"),
        pytest.param("2027-01-15", "no time zone", id="a day"),
        pytest.param("2027-01-15T08:00:00", "no time zone", id="a time without a zone"),
        pytest.param("2027-02-30T08:00Z", "is no time", id="a day that no calendar has"),
        pytest.param("1800000000000", "milliseconds", id="milliseconds"),
        pytest.param("-1", "from 1970", id="a time before the epoch"),
        pytest.param("1969-01-01T00:00Z", "from 1970", id="a date before the epoch"),
        pytest.param("inf", "is no time", id="infinity"),
        pytest.param("", "is no time", id="nothing"),
    ],
)
def test_what_is_no_moment_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_moment(text)


def test_times_are_written_for_people() -> None:
    assert [span(seconds) for seconds in (0, 59.6, 125, 3600, 93_784, 400)] == [
        "0 s", "1 min", "2 min 5 s", "1 h", "1 d 2 h", "6 min 40 s",
    ]  # fmt: skip
    assert [ago(at, 100) for at in (40, 100, 100.4, 160)] == ["1 min ago", "now", "now", "in 1 min"]
    assert moment(1_800_000_000) == "2027-01-15 08:00:00Z"
    assert moment(1_800_000_000_000) == "epoch 1800000000000"


@given(st.integers(0, 10**7))
def test_a_brief_span_can_be_read_back(seconds: int) -> None:
    assert brief(parse_span(brief(seconds))) == brief(seconds)
    assert parse_span(brief(seconds)) <= seconds
