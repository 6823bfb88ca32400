"""Python values to and from what DynamoDB can keep, without losing any (payloads, results, progress).

DynamoDB has one kind of number: decimal, 38 digits, magnitude 1e-130 to 9.99e125, no NaN, no infinity, no signed zero. The
rule here is: **a value is written plainly where reading the plain form gives back an equal value of a type that works alike,
and tagged otherwise.** Plain numbers read back as int when whole, as float when a float spells the same decimal, and as
Decimal when it does not. A tag is a map with one key::

    {"$float": "nan"}   {"$decimal": "1.10"}   {"$int": "1000…"}   {"$set": [...]}   {"$map": {...}}   {"$items": [...]}

so a Decimal always comes back as a Decimal (mixing Decimal and float raises TypeError in arithmetic), an int of a thousand
digits stays whole, an empty or mixed set stays a set, and a caller's own map that looks like a tag is wrapped in ``$map``. A
map with a key that DynamoDB has no name for (empty, or 64 KB and longer) becomes ``$items``, its keys and values in turn. A
whole float (2.0) comes back as an equal int (2), as from JSON written by other programs, and a frozenset as an equal set.

What has no equal on the way back is refused, with the path to it: other types, keys that are not strings, text with lone
surrogates, and more than :data:`MAX_DEPTH` levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, DecimalException, Inexact, Overflow, Rounded, Subnormal
from typing import Any, Final

from thunderagent.errors import InvalidValue
from thunderagent.task import Attr

MAX_DEPTH: Final = 15
"""Levels of nesting accepted. DynamoDB allows 32, and each level may need a second one for its tag."""

ITEM_BYTES: Final = 400 * 1024
"""DynamoDB's limit for an item, attribute names included (Service, account, and table quotas)."""

RUN_BYTES: Final = 16 * 1024
"""Kept free by enqueue for what a run adds to an item: result, error, history, lease."""

TAGS: Final = frozenset({"$float", "$decimal", "$int", "$set", "$map", "$items"})

KEY_BYTES: Final = 64 * 1024
"""An attribute name has at least one byte and less than this (Naming rules, in DynamoDB's developer guide)."""

GIVEN: Final = frozenset({Attr.PAYLOAD, Attr.RESULT, Attr.PROGRESS})
"""Attributes that hold what callers and handlers gave: their values may be tagged, those of the others never are."""

_WHOLE: Final = 10**38
"""A whole number nearer to 0 than this has no more digits than DynamoDB keeps: it is plain without a further look."""

# Subnormal is what lies below 1e-130: decimal keeps it, DynamoDB refuses it.
_EXACT = Context(prec=200, traps=[Inexact])
_NUMBER = Context(prec=38, Emin=-130, Emax=125, traps=[Inexact, Rounded, Overflow, Subnormal])


def encode(value: object, path: str = "payload") -> Any:
    """The value in plain Python types that DynamoDB's serialiser takes (numbers as int or Decimal).

    Raises InvalidValue, with the path to the culprit, for what could not come back equal.
    """
    return _encode(value, path, 0)


def decode(value: Any) -> Any:
    """What :func:`encode` was given, from what the table returned. Takes anything another program may have written."""
    return _read(value, _decode_map)


def plain(value: Any) -> Any:
    """What the table returned, with nothing in it taken for a tag."""
    return _read(value, _plain_map)


def read_attribute(name: str, value: Any) -> Any:
    """An attribute of a task's item in Python."""
    return decode(value) if name in GIVEN else plain(value)


def as_stored(value: Any) -> Any:
    """What :func:`plain` read, as the table holds it: for conditions "as seen", on whatever another program has written."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return Decimal(value) if -_WHOLE < value < _WHOLE else Decimal(value).normalize(_EXACT)  # boto3 takes 38 digits
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {key: as_stored(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_stored(item) for item in value]
    return {as_stored(item) for item in value} if isinstance(value, set | frozenset) else value


def size_of(value: Any) -> int:
    """Bytes that DynamoDB counts for an encoded value (Item sizes and formats, in its developer guide), rounded up."""
    if isinstance(value, str):
        return len(value.encode("utf-8"))
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int | float | Decimal):
        return 21 if not isinstance(value, int) or abs(value) > 10**15 else 10
    if isinstance(value, Mapping):
        return 3 + sum(1 + len(key.encode("utf-8")) + size_of(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return 3 + sum(1 + size_of(item) for item in value)
    if isinstance(value, set | frozenset):
        return sum(size_of(item) for item in value)
    return len(value)


def record_size(record: Mapping[str, Any]) -> int:
    """Bytes of a whole encoded item, names included."""
    return sum(len(name.encode("utf-8")) + size_of(value) for name, value in record.items())


def _encode(value: object, path: str, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        return _encode_int(int(value), path)
    if isinstance(value, float):
        return _encode_float(float(value))
    if isinstance(value, Decimal):
        return {"$decimal": str(Decimal(value))}
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    return _encode_container(value, path, depth)


def _encode_container(value: object, path: str, depth: int) -> Any:
    if depth >= MAX_DEPTH:
        raise InvalidValue(f"{path} is nested more than {MAX_DEPTH} levels deep; DynamoDB cannot keep it. Flatten it.")
    if isinstance(value, Mapping):
        return _encode_map(value, path, depth)
    if isinstance(value, list):
        return [_encode(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, set | frozenset):
        return _encode_set(value, path, depth)
    raise InvalidValue(
        f"{path} is a {type(value).__name__}, which DynamoDB cannot keep. Use str, bool, None, int, float, Decimal, bytes, "
        "list, dict or set; convert others yourself (a tuple to a list, a date to its ISO text)."
    )


def _encode_map(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    encoded = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidValue(f"{path} has the key {key!r}; keys must be strings.")
        encoded[_text(key, f"a key of {path}")] = _encode(item, f"{path}.{key}", depth + 1)
    if not all(0 < len(key.encode()) < KEY_BYTES for key in encoded):
        return {"$items": [part for pair in encoded.items() for part in pair]}
    return {"$map": encoded} if _is_tag(encoded) else encoded


def _encode_set(value: Iterable[Any], path: str, depth: int) -> Any:
    items = [_encode(item, f"an element of {path}", depth + 1) for item in value]
    kinds = {_set_kind(item) for item in items}
    if len(kinds) == 1 and None not in kinds:
        return set(items)
    return {"$set": items}


def _set_kind(item: Any) -> type | None:
    if isinstance(item, bool):
        return None
    if isinstance(item, int | Decimal):
        return Decimal
    return type(item) if isinstance(item, str | bytes) else None


def _encode_int(value: int, path: str) -> Any:
    if -_WHOLE < value < _WHOLE:
        return Decimal(value)
    try:
        return _tag_unless_plain(value, "$int")
    except ValueError:
        raise InvalidValue(
            f"{path} is an integer of more digits than Python writes as text; pass it as bytes or text."
        ) from None


def _encode_float(value: float) -> Any:
    if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
        return {"$float": repr(value)}
    return _tag_unless_plain(value, "$float")


def _tag_unless_plain(value: int | float, tag: str) -> Any:
    text = repr(value)
    try:
        number = _NUMBER.create_decimal(text)
    except DecimalException:
        return {tag: text}
    return number if _decode_number(number) == value else {tag: text}


def _read(value: Any, read_map: Callable[[dict[str, Any]], Any]) -> Any:
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        return _decode_number(value)
    if isinstance(value, dict):
        return read_map(value)
    if isinstance(value, list):
        return [_read(item, read_map) for item in value]
    if isinstance(value, set | frozenset):
        return {_read(item, read_map) for item in value}
    return value if isinstance(value, int | float) else bytes(value)


def _plain_map(value: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(item) for key, item in value.items()}


def _decode_number(number: Decimal) -> int | float | Decimal:
    if number == number.to_integral_value():
        return int(number)
    as_float = float(number)
    return as_float if Decimal(repr(as_float)) == number else number


def _is_tag(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in TAGS


def _decode_map(value: dict[str, Any]) -> Any:
    if _is_tag(value):
        (tag, content), *_ = value.items()
        try:
            return _decode_tagged(tag, content)
        except (ValueError, TypeError, ArithmeticError):
            pass  # another program's map that merely looks like a tag
    return {key: decode(item) for key, item in value.items()}


def _decode_tagged(tag: str, content: Any) -> Any:
    if tag == "$map" and isinstance(content, dict):
        return {key: decode(item) for key, item in content.items()}
    if tag == "$set" and isinstance(content, list):
        return {_hashable(decode(item)) for item in content}
    if tag == "$items" and isinstance(content, list):
        return {key: decode(item) for key, item in zip(content[::2], content[1::2], strict=True)}
    if isinstance(content, str):
        if tag == "$float":
            return float(content)
        if tag == "$decimal":
            return Decimal(content)
        if tag == "$int":
            return int(content)
    raise ValueError(tag)


def _hashable(element: Any) -> Any:
    """An element of a set: a set inside a set can only have been a frozenset."""
    return frozenset(element) if isinstance(element, set) else element


def _text(value: str, path: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidValue(f"{path} has a lone surrogate, which is not valid Unicode text.") from None
    return str.__str__(value)  # str() of an Enum that is a str gives its name, not its text
