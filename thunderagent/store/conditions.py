"""Evaluate a transition's condition against an encoded item, with DynamoDB's rules for absent and oddly typed attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thunderagent.task import is_plain_number
from thunderagent.transitions import Absent, AllOf, AnyOf, AtMost, Condition, Equals, FieldEquals, OneOf
from thunderagent.values import as_stored


def holds(condition: Condition, item: Mapping[str, Any]) -> bool:
    """Whether the condition holds for the item; an empty mapping is an item that does not exist."""
    match condition:
        case Absent(attr):
            return attr not in item
        case Equals(attr, value):
            return attr in item and _same(item[attr], as_stored(value))
        case OneOf(attr, values):
            return attr in item and any(_same(item[attr], as_stored(value)) for value in values)
        case AtMost(attr, bound):
            return attr in item and is_plain_number(item[attr]) and item[attr] <= bound
        case FieldEquals(attr, key, value):
            inner = item.get(attr)
            return isinstance(inner, Mapping) and key in inner and _same(inner[key], as_stored(value))
        case AllOf(parts):
            return all(holds(part, item) for part in parts)
        case AnyOf(parts):
            return any(holds(part, item) for part in parts)


def _same(stored: Any, wanted: Any) -> bool:
    """Equal in type and content; Python alone would call True and 1 equal."""
    if isinstance(stored, bool) or isinstance(wanted, bool):
        return stored is wanted
    return bool(stored == wanted)
