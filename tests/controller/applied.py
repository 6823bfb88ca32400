"""Server-side apply in small: who owns which field, and what becomes of an object when one owner applies.

Source of the rules: https://kubernetes.io/docs/reference/using-api/server-side-apply/ (conflicts, transfer of ownership).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.errors import ObjectChanged, Refused

Path = tuple[str, ...]
Leaves = dict[Path, Any]

IDENTIFYING = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid"))
_KEYED = "name="


def leaves(value: Any, path: Path = ()) -> Leaves:
    """Every value with its path. Items of a list of named things are told apart by their names, as the API server does."""
    if isinstance(value, Mapping) and value:
        return {p: v for key, item in value.items() for p, v in leaves(item, (*path, key)).items()}
    if isinstance(value, list) and value and all(isinstance(item, Mapping) and "name" in item for item in value):
        names = [item["name"] for item in value]
        for name in names:
            if names.count(name) > 1:
                raise Refused(f'failed to create typed patch object: duplicate entries for key [name="{name}"]', 500)
        return {p: v for item in value for p, v in leaves(dict(item), (*path, _KEYED + item["name"])).items()}
    return {path: value}


def rebuilt(fields: Leaves) -> Any:
    """The object that has these leaves."""
    if set(fields) == {()}:
        return fields[()]
    parts: dict[str, Leaves] = {}
    for path, value in fields.items():
        parts.setdefault(path[0], {})[path[1:]] = value
    if all(key.startswith(_KEYED) for key in parts):
        return [rebuilt(part) for part in parts.values()]
    return {key: rebuilt(part) for key, part in parts.items()}


def apply(current: Leaves, owned: dict[str, set[Path]], manager: str, body: Mapping[str, Any], *, force: bool) -> Leaves:
    """The leaves after ``manager`` has applied ``body``; ``owned`` is changed with them. Raises ObjectChanged on a conflict."""
    named = {path: value for path, value in leaves(dict(body)).items() if path not in IDENTIFYING}
    others = {path: who for who, paths in owned.items() if who != manager for path in paths}
    for path, value in named.items():
        if path in others and path in current and current[path] != value:
            if not force:
                raise ObjectChanged(f"Apply failed with 1 conflict: conflict with {others[path]}: {'.'.join(path)}", 409)
            owned[others[path]].discard(path)
    given_up = owned.get(manager, set()) - named.keys()
    kept = {path: value for path, value in current.items() if path not in given_up or path in others}
    owned[manager] = set(named)
    return {**kept, **named}
