"""From a mapping to a :class:`~thunderagent.pool.spec.Pool`, or to a list of everything that is wrong with it.

msgspec stops at the first error. A person who edits a file wants them all, with the paths that they typed; so each field
is held against its own type first, and the rules of a struct once its fields are in order.
"""

from __future__ import annotations

import difflib
import functools
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import FieldInfo

from thunderagent.errors import InvalidPool
from thunderagent.pool.rules import RULES
from thunderagent.pool.spec import Pool

KUBERNETES_METADATA = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Fields of metadata that the API server adds. They say nothing about the pool and are not looked at."""

_NAME = re.compile(r"[\w./-]{1,60}")

SHOWN_CHARS = 60
"""Characters of an offending value that an error repeats."""


def parse_pool(mapping: Mapping[str, Any], *, on_kubernetes: bool = False) -> Pool:
    """The pool that a file's or a resource's mapping describes. ``status`` and the API server's metadata are left out.

    Null counts as absent, as it does for the API server. ``on_kubernetes`` asks for template or targetRef as well, which
    a pool on this machine can do without.

    Raises InvalidPool with one line a problem, each beginning with the path of the field.
    """
    mapping = _own_part(mapping)
    problems = list(dict.fromkeys(_problems(mapping, Pool, "", on_kubernetes)))
    if problems:
        raise InvalidPool("\n".join(problems))
    return msgspec.convert(mapping, Pool)


def _own_part(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Without nulls, ``status`` and what the API server adds to metadata; ``template`` untouched."""
    own = {key: value for key, value in _pruned(mapping).items() if key != "status"}
    if isinstance(own.get("metadata"), dict):
        own["metadata"] = {key: value for key, value in own["metadata"].items() if key not in KUBERNETES_METADATA}
    spec = mapping.get("spec")
    if isinstance(spec, Mapping) and spec.get("template") is not None:
        own["spec"]["template"] = spec["template"]
    return own


def _pruned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return value


def _problems(value: Any, kind: Any, path: str, on_kubernetes: bool) -> Iterator[str]:
    """Everything wrong with ``value`` as a ``kind``: what is inside first, then the whole, then the rules of the whole."""
    inner = [
        problem
        for item, item_kind, item_path in _parts(value, kind, path)
        for problem in _problems(item, item_kind, item_path, on_kubernetes)
    ]
    struct = _struct(kind)
    if struct is not None and isinstance(value, Mapping):
        inner += _misplaced(value, struct, path)
    if inner:
        yield from inner
        return
    try:
        built = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        yield _told(error, value, kind, path)
    except UnicodeEncodeError:
        yield f"{path}: {_shown(value)} has a lone surrogate, which is not valid Unicode text."
    else:
        if isinstance(value, str) and value.endswith("\n") and _has_pattern(kind):
            yield f"{path}: must not end with a line break, but it is {_shown(value)}."
        yield from _broken_rules(built, path, on_kubernetes)


def _parts(value: Any, kind: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """The parts of a value that are judged by themselves, with their types and paths."""
    struct, inside = _struct(kind), _base(kind)
    if struct is not None and isinstance(value, Mapping):
        fields = _fields(struct)
        yield from ((item, fields[key].type, _join(path, key)) for key, item in value.items() if key in fields)
    elif inside == dict[str, str] and isinstance(value, Mapping):
        yield from ((item, str, f"{path}[{key!r}]") for key, item in value.items())
    elif typing.get_origin(inside) is tuple and isinstance(value, list | tuple):
        yield from ((item, typing.get_args(inside)[0], f"{path}[{number}]") for number, item in enumerate(value))


def _misplaced(value: Mapping[str, Any], struct: type[msgspec.Struct], path: str) -> Iterator[str]:
    """Fields that are not known, and required ones that are not there."""
    fields = _fields(struct)
    for key in value:
        if key not in fields:
            yield f"{_join(path, _named(key))}: is not a field; {_did_you_mean(str(key), fields)}"
    for name, info in fields.items():
        if info.required and name not in value:
            yield f"{_join(path, name)}: is required."


def _broken_rules(built: Any, path: str, on_kubernetes: bool) -> Iterator[str]:
    for rule in RULES.get(type(built), ()):
        is_asked = rule.holds is not None and (on_kubernetes or not rule.on_kubernetes)
        if is_asked and rule.holds is not None and not rule.holds(built):
            yield f"{_join(path, rule.field)}: {rule.message}."


def _told(error: msgspec.ValidationError, value: Any, kind: Any, path: str) -> str:
    """msgspec's words with our path: ``spec.scaling.minReplicas: expected int >= 0, but it is -1.``"""
    words = str(error).partition(" - at ")[0].replace("`", "")
    if words.startswith("Invalid enum value"):
        words = f"expected {' or '.join(_choices(kind))}"
    hint = "; put it in quotes" if words.startswith("Expected str, got ") and isinstance(value, bool | int | float) else ""
    return f"{path}: {words[:1].lower()}{words[1:]}, but it is {_shown(value)}{hint}."


def _choices(kind: Any) -> list[str]:
    """The values of an enum or a Literal, in the order in which they are declared."""
    inside = _base(kind)
    return [str(choice) for choice in (typing.get_args(inside) or inside)]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _named(key: object) -> str:
    """A key as it was typed, or quoted where it is no name: an error is one line, whatever a file's keys are made of."""
    text = str(key)
    return text if _NAME.fullmatch(text) else _shown(text)


def _did_you_mean(key: str, known: Iterable[str]) -> str:
    lowered = {name.lower(): name for name in known}
    near = difflib.get_close_matches(key.lower(), lowered, n=1, cutoff=0.7)
    return f"did you mean {lowered[near[0]]}?" if near else f"known are {', '.join(sorted(lowered.values()))}."


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path and key else path or key


@functools.cache
def _fields(struct: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    return {info.encode_name: info for info in msgspec.structs.fields(struct)}


def _base(kind: Any) -> Any:
    """The type inside ``Annotated`` and ``| None``."""
    if typing.get_origin(kind) is Annotated:
        return _base(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        (kind,) = (arg for arg in typing.get_args(kind) if arg is not types.NoneType)
        return _base(kind)
    return kind


def _has_pattern(kind: Any) -> bool:
    """Whether the type names a pattern. Python's ``$`` lets a line break pass that the API server's does not."""
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return any(_has_pattern(arg) for arg in typing.get_args(kind))
    metas = typing.get_args(kind)[1:] if typing.get_origin(kind) is Annotated else ()
    return any(isinstance(meta, msgspec.Meta) and meta.pattern is not None for meta in metas)


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    inside = _base(kind)
    return inside if isinstance(inside, type) and issubclass(inside, msgspec.Struct) else None
