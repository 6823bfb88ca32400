"""Payloads come back as they went in: through the mapping alone, through boto3's serialiser, and through a real table."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.standins.aws import FreshTable
from thunderagent.errors import InvalidValue
from thunderagent.values import ITEM_BYTES, MAX_DEPTH, TAGS, as_stored, decode, encode, record_size, size_of

FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No deadline: how long an example takes depends on the machine."""

# --- what a caller may hand in ------------------------------------------------------------------------------------------

texts = st.text(max_size=12)  # every plane of Unicode but the surrogates, which UTF-8 has no form for
whole = st.one_of(st.integers(), st.integers(-(10**60), 10**60), st.just(10**37), st.just(-(10**38)), st.just(2**53 + 1))
floats = st.one_of(
    st.floats(),
    st.sampled_from(
        [-0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 9.9e125, 1e126, 1e-130, 5e-131, 1e23]
    ),
)
decimals = st.one_of(
    st.decimals(allow_nan=False),
    st.sampled_from(
        [Decimal("1.10"), Decimal("1E+5"), Decimal("-0.00"), Decimal("NaN"), Decimal("-Infinity"), Decimal("1E-999")]
    ),
)
scalars = st.one_of(st.none(), st.booleans(), texts, whole, floats, decimals, st.binary(max_size=12))
elements = st.recursive(scalars, lambda inner: st.frozensets(inner, max_size=3), max_leaves=4)
sets = st.one_of(
    st.sets(texts, max_size=4),
    st.sets(whole, max_size=4),
    st.sets(floats, max_size=4),
    st.sets(st.binary(max_size=4), max_size=4),
    st.sets(elements, max_size=4),
)
keys = st.one_of(texts, st.sampled_from([*sorted(TAGS), ""]))
values = st.recursive(
    st.one_of(scalars, sets),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.builds(lambda tag, content: {tag: content}, st.sampled_from(sorted(TAGS)), inner),
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Equal, where NaN equals NaN, -0.0 is not 0.0, a Decimal is a Decimal with its exponent, and True is not 1."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, set | frozenset) and isinstance(right, set | frozenset):
        return len(left) == len(right) and all(any(same(each, other) for other in right) for each in left)
    if isinstance(left, bool | Decimal | str | bytes | None) or isinstance(right, bool | Decimal | str | bytes | None):
        return type(left) is type(right) and repr(left) == repr(right)
    if isinstance(left, float) and isinstance(right, int | float) and (math.isnan(left) or left == 0):
        return repr(left) == repr(float(right))
    return bool(left == right)


def through_boto3(value: Any) -> Any:
    """The value as botocore would send and receive it."""
    return decode(TypeDeserializer().deserialize(TypeSerializer().serialize(encode(value))))


@FAST
@given(values)
def test_every_value_comes_back_equal(value: Any) -> None:
    assert same(decode(encode(value)), value)


@FAST
@given(values)
def test_every_value_comes_back_equal_through_the_serialiser(value: Any) -> None:
    assert same(through_boto3(value), value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(0.1, id="a float"),
        pytest.param(-0.0, id="minus zero"),
        pytest.param(math.nan, id="not a number"),
        pytest.param(5e-324, id="the smallest float, far below what DynamoDB takes"),
        pytest.param(5e-131, id="a float just below what DynamoDB takes"),
        pytest.param(1e23, id="a whole float whose text is not its value"),
        pytest.param(10**4000, id="an int of 4,001 digits"),
        pytest.param(Decimal("1.10"), id="a Decimal with a trailing zero"),
        pytest.param({0.1, 2}, id="a set of numbers"),
        pytest.param({1, "1"}, id="a set of a number and a text"),
        pytest.param({frozenset({1}), frozenset()}, id="a set of frozensets"),
        pytest.param(set(), id="an empty set"),
        pytest.param({"": 1, "a": {}}, id="a map with an empty key"),
        pytest.param({"k" * 70_000: 1}, id="a map with a key that is too long for DynamoDB"),
        pytest.param({"$float": "1"}, id="a map that looks like a tag"),
        pytest.param({"$map": {"$map": {}}}, id="a map that looks like the tag of such a map"),
        pytest.param({"$items": ["a", 1]}, id="a map that looks like the tag of a map with odd keys"),
        pytest.param("🐉 e\u0301 \x00", id="text beyond the first plane, combining, and with a null character"),
        pytest.param({"text": "", "bytes": b"", "list": [], "map": {}}, id="empty values"),
    ],
)
def test_a_value_that_is_hard_for_dynamodb_comes_back_equal(value: Any) -> None:
    assert same(through_boto3(value), value)


def test_numbers_of_other_programs_come_back_as_what_one_calculates_with() -> None:
    read = decode({"whole": Decimal("2"), "fraction": Decimal("0.5"), "long": Decimal("0.12345678901234567890123")})

    assert read == {"whole": 2, "fraction": 0.5, "long": Decimal("0.12345678901234567890123")}
    assert [type(each) for each in read.values()] == [int, float, Decimal]


@pytest.mark.parametrize("theirs", [{"$float": "much"}, {"$set": [[1]]}, {"$int": 5}, {"$items": ["odd"]}, {"$map": []}])
def test_a_map_of_another_program_that_only_looks_like_a_tag_is_given_as_it_is(theirs: dict[str, Any]) -> None:
    assert decode(theirs) == theirs


def test_an_enum_that_is_text_is_kept_as_its_text() -> None:
    class Colour(str, enum.Enum):  # noqa: UP042 - StrEnum has another str()
        RED = "red"

    assert through_boto3({Colour.RED: [Colour.RED]}) == {"red": ["red"]}


@FAST
@given(st.one_of(texts, whole.filter(lambda number: abs(number) < 10**37), st.booleans(), st.none(), st.binary(max_size=9)))
def test_a_value_that_was_read_compares_equal_to_what_is_stored(value: Any) -> None:
    assert as_stored(decode(encode(value))) == encode(value)


def test_a_number_too_long_for_a_float_compares_equal_to_what_is_stored() -> None:
    stored = Decimal("1700000000.123456789012")

    assert as_stored(decode(stored)) == stored


# --- through a table ----------------------------------------------------------------------------------------------------


@settings(FAST, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(value=values)
def test_every_value_comes_back_equal_from_a_table(fresh_moto_table: FreshTable, value: Any) -> None:
    client, name = fresh_moto_table
    item = {"taskId": {"S": "t"}, "payload": TypeSerializer().serialize(encode(value))}

    client.put_item(TableName=name, Item=item)
    stored = client.get_item(TableName=name, Key={"taskId": {"S": "t"}}, ConsistentRead=True)["Item"]["payload"]

    assert same(decode(TypeDeserializer().deserialize(stored)), value)


# --- what is refused ----------------------------------------------------------------------------------------------------


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        pytest.param({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "payload.when", id="a date"),
        pytest.param({"rows": [1, (2, 3)]}, "payload.rows[1]", id="a tuple in a list"),
        pytest.param({"a": {"b": [{"c": 1j}]}}, "payload.a.b[0].c", id="a complex number deep inside"),
        pytest.param({"tags": {(1, 2)}}, "an element of payload.tags", id="a tuple in a set"),
        pytest.param({"a": {1: "one"}}, "payload.a has the key 1", id="a key that is a number"),
        pytest.param({"a": "\ud800"}, "payload.a has a lone surrogate", id="text that UTF-8 has no form for"),
        pytest.param({"\ud800": 1}, "a key of payload has a lone surrogate", id="a key that UTF-8 has no form for"),
        pytest.param({"n": 10**5000}, "payload.n", id="an int of more digits than Python writes"),
        pytest.param({"in": nested(MAX_DEPTH)}, "payload.in.in", id="a level more than may be nested"),
    ],
)
def test_what_could_not_come_back_equal_is_refused_by_its_path(value: Any, path: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        encode(value)

    assert path in str(refused.value)


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda inner: {"$map": inner}, id="maps that look like tags"),
        pytest.param(lambda inner: {"": inner}, id="maps with an empty key"),
        pytest.param(lambda inner: [inner], id="lists"),
    ],
)
def test_the_deepest_value_that_is_taken_fits_the_32_levels_of_dynamodb(wrap: Callable[[Any], Any]) -> None:
    value: Any = -0.0
    for _ in range(MAX_DEPTH):
        value = wrap(value)

    assert same(through_boto3(value), value)
    assert depth(encode(value)) <= 32


def depth(encoded: Any) -> int:
    inner = encoded.values() if isinstance(encoded, dict) else encoded if isinstance(encoded, list | set) else ()
    return 1 + max((depth(each) for each in inner), default=0)


# --- size ---------------------------------------------------------------------------------------------------------------


def documented_size(attribute: Mapping[str, Any]) -> int:
    """Bytes of an attribute value as the developer guide counts them ("DynamoDB item sizes and formats")."""
    ((kind, content),) = attribute.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "NULL" | "BOOL":
            return 1
        case "N":
            return number_size(content)
        case "SS" | "NS" | "BS":
            return sum(documented_size({kind[0]: each}) for each in content)
        case "L":
            return 3 + sum(1 + documented_size(each) for each in content)
        case _:
            return 3 + sum(1 + len(key.encode()) + documented_size(each) for key, each in content.items())


def number_size(text: str) -> int:
    """A byte for two significant digits (leading and trailing zeros trimmed), one more, and one for a minus."""
    digits = Decimal(text).normalize().as_tuple().digits
    return math.ceil(len(digits) / 2) + 1 + text.startswith("-")


@FAST
@given(values)
def test_a_value_is_never_counted_as_smaller_than_dynamodb_counts_it(value: Any) -> None:
    assert size_of(encode(value)) >= documented_size(TypeSerializer().serialize(encode(value)))


def test_a_text_that_fills_an_item_is_counted_to_the_byte() -> None:
    rest = {"taskId": "t", "payload": {"text": ""}}

    assert record_size(rest) == len("taskId") + 1 + len("payload") + 3 + 1 + len("text")
    assert record_size({**rest, "payload": {"text": "ü" * 100}}) == record_size(rest) + 200
    assert ITEM_BYTES == 409_600


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return itertools.chain.from_iterable(leaves(each) for each in value.values())
    if isinstance(value, list | set):
        return itertools.chain.from_iterable(leaves(each) for each in value)
    return iter((value,))


@FAST
@given(values)
def test_what_is_written_holds_only_types_and_numbers_that_dynamodb_takes(value: Any) -> None:
    for leaf in leaves(encode(value)):
        assert leaf is None or type(leaf) in {bool, str, bytes, Decimal}
        if isinstance(leaf, Decimal) and leaf != 0:
            assert Decimal("1e-130") <= abs(leaf) < Decimal("1e126")
            assert len(leaf.as_tuple().digits) <= 38
