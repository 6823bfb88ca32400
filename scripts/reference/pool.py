"""``docs/pool.md``, from the CRD's schema, which is made from the fields of the pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripts.reference.markdown import bullets, code, page, table
from thunderagent.pool import API_VERSION, KIND, crd_schema
from thunderagent.pool.annotations import PAUSED, PAUSED_AT_REPLICAS, PAUSED_IN, PAUSED_OUT

Schema = Mapping[str, Any]

_INTRODUCTION = f"""# The fields of a pool

The file that `thunderagent pool run` reads and the resource that the operator takes are the same: a `{KIND}`,
`apiVersion: {API_VERSION}`. A field that is not listed here is an error, and only those marked as required have to be there."""

_ANNOTATIONS = (
    (PAUSED, '`"true"` or `"all"`: neither grow nor shrink.'),
    (PAUSED_IN, '`"true"`: do not shrink.'),
    (PAUSED_OUT, '`"true"`: do not grow.'),
    (PAUSED_AT_REPLICAS, 'A number such as `"3"`: hold this many replicas.'),
)


def pool_page() -> str:
    """The page."""
    schema = crd_schema()
    fields = schema["properties"]["spec"]["properties"]
    sections = (block for name, field in fields.items() for block in _section(f"spec.{name}", field))
    return page(
        "thunderagent/pool",
        _INTRODUCTION,
        *sections,
        "## Rules between fields",
        bullets(f"{code(path)}: {message}." for path, message in _rules(schema, "")),
        "## Annotations",
        "These hold the scaling of a pool for as long as they are on it. Values of annotations are text: quote them.",
        table(("Annotation", "Value and meaning"), [(code(name), meaning) for name, meaning in _ANNOTATIONS]),
    )


def _section(path: str, schema: Schema) -> Iterator[str]:
    yield f"## {code(path)}"
    yield schema["description"]
    rows = list(_rows(schema, ""))
    if rows:
        yield table(("Field", "Type", "Default", "Bounds", "Meaning"), rows)


def _rows(schema: Schema, prefix: str) -> Iterator[Sequence[str]]:
    """A row for each field below ``schema``, those of nested objects and of the items of lists after their own."""
    for name, field in schema.get("properties", {}).items():
        path = prefix + name
        yield code(path), _type(field), _default(name, field, schema), _bounds(field), field.get("description", "")
        yield from _rows(field, f"{path}.")
        yield from _rows(field.get("items", {}), f"{path}[].")


def _type(field: Schema) -> str:
    if field["type"] == "array":
        return f"list of {_type(field['items'])}s"
    return {"string": "text", "integer": "whole number", "number": "number", "object": "object"}[field["type"]]


def _default(name: str, field: Schema, parent: Schema) -> str:
    if name in parent.get("required", ()):
        return "**required**"
    default = field.get("default")
    return "" if default in (None, "", [], {}) else code(default)


def _bounds(field: Schema) -> str:
    return "; ".join(_bounds_in_words(field))


def _bounds_in_words(field: Schema) -> Iterator[str]:
    if "enum" in field:
        yield ", ".join(map(code, field["enum"]))
    if "minimum" in field:
        yield f"{field['minimum']:,} to {field['maximum']:,}"
    if "maxLength" in field:
        yield f"{field.get('minLength', 0)} to {field['maxLength']:,} characters"
    if "pattern" in field:
        yield code(field["pattern"])
    if "maxItems" in field:
        yield f"at most {field['maxItems']}"
        yield from (f"each: {words}" for words in [_bounds(field["items"])] if words)


def _rules(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Each rule below a schema as the API server tells it, and the object that it is about."""
    yield from ((path or KIND, rule["message"]) for rule in schema.get("x-kubernetes-validations", ()))
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}".removeprefix("."))
    if "items" in schema:
        yield from _rules(schema["items"], f"{path}[]")
