"""Which tables, regions and endpoints the pools of a namespace may name.

IAM bounds what the operator's identity can read; these rules can narrow it for each namespace. An endpoint is refused unless
a rule allows it: the operator would sign requests to whatever host a pool names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from thunderagent.errors import InvalidSettings
from thunderagent.pool import Pool

_FIELDS = ("namespaces", "tables", "regions", "endpoints")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What pools of some namespaces may name: shell patterns, of which one has to match each name.

    A pool without a region has the operator's own, which is always allowed; so is to have no endpoint.
    """

    namespaces: tuple[str, ...] = ("*",)
    tables: tuple[str, ...] = ("*",)
    regions: tuple[str, ...] = ("*",)
    endpoints: tuple[str, ...] = ()


DEFAULT = (Allowance(),)


def parse_allowed(text: str) -> tuple[Allowance, ...]:
    """The rules in a JSON list of objects; empty text: the default. Raises InvalidSettings."""
    if not text.strip():
        return DEFAULT
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise InvalidSettings(f"allowed is not valid JSON: {error}.") from None
    if not isinstance(entries, list):
        raise InvalidSettings('allowed must be a list, such as [{"namespaces": ["team-a"], "tables": ["team-a-*"]}].')
    return tuple(_allowance(entry, f"allowed[{number}]") for number, entry in enumerate(entries))


def objection(pool: Pool, namespace: str, allowed: Sequence[Allowance]) -> str | None:
    """Why the pool may not have what its ``queue`` names, or None where it may."""
    rules = [rule for rule in allowed if _matches(namespace, rule.namespaces)]
    queue = pool.spec.queue
    if not rules:
        return f"The operator's settings allow no table to pools of the namespace {namespace}."
    if any(_permits(rule, queue.table, queue.region, queue.endpoint) for rule in rules):
        return None
    named = [("table", queue.table), ("region", queue.region), ("endpoint", queue.endpoint)]
    told = ", ".join(f"{what} {name}" for what, name in named if name is not None)
    return f"The operator's settings do not allow this to pools of the namespace {namespace}: {told}."


def _permits(rule: Allowance, table: str, region: str | None, endpoint: str | None) -> bool:
    return (
        _matches(table, rule.tables)
        and (region is None or _matches(region, rule.regions))
        and (endpoint is None or _matches(endpoint, rule.endpoints))
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _allowance(entry: Any, path: str) -> Allowance:
    if not isinstance(entry, dict):
        raise InvalidSettings(f"{path} must be an object with {', '.join(_FIELDS)}.")
    for name, patterns in entry.items():
        if name not in _FIELDS:
            raise InvalidSettings(f"{path}.{name} is not known; known are {', '.join(_FIELDS)}.")
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise InvalidSettings(f'{path}.{name} must be a list of patterns, such as ["team-a-*"].')
    return Allowance(**{name: tuple(patterns) for name, patterns in entry.items()})
