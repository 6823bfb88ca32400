"""Transitions as the arguments of PutItem and UpdateItem."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import TypeSerializer

from thunderagent.task import Attr
from thunderagent.transitions import Absent, AllOf, AnyOf, AtMost, Condition, Equals, FieldEquals, OneOf, Transition
from thunderagent.values import as_stored, encode

_serialize = TypeSerializer().serialize


def to_attribute(value: Any, name: str = "value") -> dict[str, Any]:
    """A Python value as a DynamoDB attribute value."""
    return _attribute(encode(value, name))


def _attribute(encoded: Any) -> dict[str, Any]:
    """An encoded value. Most are text or numbers, for which the serialiser would first try everything else."""
    if isinstance(encoded, str):
        return {"S": encoded}
    if isinstance(encoded, Decimal):
        return {"N": str(encoded)}
    return dict(_serialize(encoded))


class _Names:
    """Placeholders for the attribute names and values of one call."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, dict[str, Any]] = {}

    def name(self, attr: str) -> str:
        self.names["#" + attr] = attr
        return "#" + attr

    def value(self, value: Any, attr: str) -> str:
        """The placeholder of a value to write."""
        return self._placeholder(to_attribute(value, attr))

    def seen(self, value: Any) -> str:
        """The placeholder of a value to compare with one that was read."""
        return self._placeholder(_attribute(as_stored(value)))

    def _placeholder(self, attribute: dict[str, Any]) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = attribute
        return placeholder


def condition_text(condition: Condition, names: _Names) -> str:
    match condition:
        case Absent(attr):
            return f"attribute_not_exists({names.name(attr)})"
        case Equals(attr, value):
            return f"{names.name(attr)} = {names.seen(value)}"
        case OneOf(attr, values):
            return f"{names.name(attr)} IN ({', '.join(names.seen(value) for value in values)})"
        case AtMost(attr, bound):
            return f"{names.name(attr)} <= {names.seen(bound)}"
        case FieldEquals(attr, key, value):
            return f"{names.name(attr)}.{names.name(key)} = {names.seen(value)}"
        case AllOf(parts):
            return " AND ".join(f"({condition_text(part, names)})" for part in parts)
        case AnyOf(parts):
            return " OR ".join(f"({condition_text(part, names)})" for part in parts)


def put_arguments(transition: Transition) -> dict[str, Any]:
    """Arguments of PutItem for a transition that creates its item."""
    names = _Names()
    arguments: dict[str, Any] = {
        "Item": {str(attr): to_attribute(value, str(attr)) for attr, value in transition.puts.items()},
        "ConditionExpression": condition_text(transition.condition, names),
        "ExpressionAttributeNames": names.names,
    }
    if names.values:
        arguments["ExpressionAttributeValues"] = names.values
    return arguments


def update_arguments(transition: Transition) -> dict[str, Any]:
    """Arguments of UpdateItem for a transition of an item that is there."""
    names = _Names()
    sets = ", ".join(f"{names.name(attr)} = {names.value(value, str(attr))}" for attr, value in transition.puts.items())
    removes = ", ".join(names.name(attr) for attr in sorted(transition.drops))
    clauses = [f"{word} {attrs}" for word, attrs in (("SET", sets), ("REMOVE", removes)) if attrs]
    return {
        "Key": {Attr.TASK_ID.value: {"S": transition.task_id}},
        "UpdateExpression": " ".join(clauses),
        "ConditionExpression": condition_text(transition.condition, names),
        "ExpressionAttributeNames": names.names,
        "ExpressionAttributeValues": names.values,
    }
