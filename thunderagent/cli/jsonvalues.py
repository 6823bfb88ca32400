"""Task values as JSON and back, without losing any.

What JSON has is written as JSON. What it lacks is a map with one key, the same tags that the table uses (``values.py``)::

    bytes              {"$bytes": "aGVsbG8="}      base64
    Decimal            {"$decimal": "1.10"}
    set                {"$set": [1, 2]}            sorted where its elements can be
    nan, inf, -inf     {"$float": "nan"}
    a map like these   {"$map": {"$set": ...}}     so that it comes back as a map

``task enqueue`` reads payloads by the same rules, so what ``-o json`` shows can be enqueued again. Integers are written whole;
a reader whose numbers are floats (JavaScript, older jq) loses digits beyond 2^53. A decimal fraction that no float spells is
read as a Decimal rather than rounded.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn

from thunderagent.errors import InvalidInput

_TAGS = frozenset({"$bytes", "$decimal", "$set", "$float", "$map"})
_C1_CONTROLS = re.compile("[\x7f-\x9f]")


def write_json(value: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """The value as JSON text, with tags for what JSON lacks. Control characters are escaped: terminals obey some of them."""
    text = json.dumps(to_json(value), indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    return _C1_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read_json(text: str) -> Any:
    """The value that JSON text stands for. Raises InvalidInput for text that is not JSON, with the place."""
    try:
        return from_json(json.loads(text, parse_constant=_no_constant, parse_float=_number, object_pairs_hook=_unique))
    except InvalidInput:
        raise
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, thousands of brackets
        raise InvalidInput(f"not JSON that can be kept: {error}") from None


def to_json(value: Any) -> Any:
    """The value in what the json module writes, tags in place of what JSON lacks."""
    if isinstance(value, Mapping):
        content = {str(key): to_json(item) for key, item in value.items()}
        return {"$map": content} if _is_tag(content) else content
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return {"$set": [to_json(item) for item in _in_order(value)]}
    if isinstance(value, bytes | bytearray):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    return value


def from_json(value: Any) -> Any:
    """What :func:`to_json` was given. Raises InvalidInput for a tag whose content does not fit it."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _is_tag(value):
        (tag, content), *_ = value.items()
        return _from_tagged(tag, content)
    return {key: from_json(item) for key, item in value.items()}


def _from_tagged(tag: str, content: Any) -> Any:
    try:
        match tag, content:
            case "$map", dict():
                return {key: from_json(item) for key, item in content.items()}
            case "$set", list():
                return {from_json(item) for item in content}
            case "$bytes", str():
                return base64.b64decode(content, validate=True)
            case "$decimal", str():
                return Decimal(content)
            case "$float", str():
                return float(content)
    except (ValueError, TypeError, ArithmeticError):
        pass  # told below, with the content
    shown = json.dumps({tag: content})[:80]
    raise InvalidInput(f'{shown} does not hold a {tag[1:]}; to mean a map with this key, write {{"$map": {{"{tag}": …}}}}')


def _is_tag(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in _TAGS


def _in_order(values: set[Any] | frozenset[Any]) -> list[Any]:
    try:
        return sorted(values)
    except (TypeError, ArithmeticError):
        return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def _number(text: str) -> float | Decimal:
    number = float(text)
    exact = Decimal(text)
    return number if math.isfinite(number) and Decimal(repr(number)) == exact else exact


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput(f"the key {twice!r} is given twice in one map; only one of its values could be kept")
    return value


def _no_constant(name: str) -> NoReturn:
    tag = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}[name]
    raise InvalidInput(f'{name} is not JSON; write {{"$float": "{tag}"}}')
