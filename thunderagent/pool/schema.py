"""The CRD's schema, generated from the pool's fields and rules.

Kubernetes asks for a *structural* schema: OpenAPI v3 without references, without ``anyOf`` for what is only absent, with a
type everywhere. msgspec writes JSON Schema; :func:`crd_schema` turns the one into the other and adds the CEL rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from thunderagent.pool.rules import RULES, Rule
from thunderagent.pool.spec import Pool

Schema = dict[str, Any]

_FROM_THE_API = {
    "apiVersion": {"type": "string", "description": "The version of this schema: thunderagent.dev/v1alpha1."},
    "kind": {"type": "string", "description": "The kind of this resource: ThunderAgentPool."},
    "metadata": {"type": "object"},
}
"""Properties that the API server knows by itself; a CRD may not say more about them."""

_NOT_STRUCTURAL = ("title", "$ref")


def crd_schema() -> Schema:
    """``openAPIV3Schema`` of the pool, without its status. Made anew at each call; the caller may change it."""
    _, components = msgspec.json.schema_components((Pool,), ref_template="{name}")
    root = _structural(components["Pool"], components)
    root["properties"] = {**root["properties"], **{name: dict(schema) for name, schema in _FROM_THE_API.items()}}
    root["required"] = ["spec"]
    root["x-kubernetes-validations"] = _validations(RULES[Pool])
    fresh: Schema = msgspec.json.decode(msgspec.json.encode(root))  # plain lists, and nothing shared with the structs
    return fresh


def _structural(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Schema:
    """One node, written out: references resolved, optional types unwrapped, then everything below it."""
    node = _unwrapped(schema, components)
    if "enum" in node:
        node["type"] = "string"
    if node.get("type") == "integer":
        node["format"] = "int32"
    if node.get("additionalProperties") is False:
        del node["additionalProperties"]  # with properties, Kubernetes prunes what is unknown and forbids saying so
    if not node.get("required", True):
        del node["required"]
    for place in ("items", "additionalProperties"):
        if isinstance(node.get(place), Mapping):
            node[place] = _structural(node[place], components)
    if "properties" in node:
        node["properties"] = {name: _structural(item, components) for name, item in node["properties"].items()}
    return {name: value for name, value in node.items() if name not in _NOT_STRUCTURAL}


def _unwrapped(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Schema:
    """The node that ``$ref`` and ``anyOf`` with null stand for. What stands beside them, as its description, wins."""
    node = dict(schema)
    if "anyOf" in node:
        (only,) = (kind for kind in node.pop("anyOf") if kind != {"type": "null"})
        del node["default"]  # null: absent is absent
        node = {**_unwrapped(only, components), **node}
    if "$ref" in node:
        name = node["$ref"]
        validations = _validations(_RULES_BY_NAME.get(name, ()))
        if isinstance(node.get("default"), Mapping):
            node["default"] = _written_out(node["default"])
        node = {**components[name], **({"x-kubernetes-validations": validations} if validations else {}), **node}
    return node


def _written_out(default: Mapping[str, Any]) -> Schema:
    """A default with all that is in it, but for what is absent.

    ``{}`` would do for objects, which get the defaults below it filled in; but the API server holds the CEL rules against a
    default as it stands, when the CRD is written.
    """
    present = {name: value for name, value in default.items() if value is not None}
    return {name: _written_out(value) if isinstance(value, Mapping) else value for name, value in present.items()}


_RULES_BY_NAME = {struct.__name__: rules for struct, rules in RULES.items()}


def _validations(rules: Iterable[Rule]) -> list[Schema]:
    return [_validation(rule) for rule in rules]


def _validation(rule: Rule) -> Schema:
    """One CEL rule. The API server shows the path itself where ``fieldPath`` may name it; metadata may not be named."""
    subject = rule.field.rpartition(".")[2]
    validation = {"rule": rule.cel, "message": f"{subject} {rule.message}" if subject else f"it {rule.message}"}
    if rule.field and not rule.field.startswith("metadata"):
        validation["fieldPath"] = f".{rule.field}"
    return validation
