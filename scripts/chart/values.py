"""The table of values in the chart's README, from the comments in ``values.yaml``.

A comment that begins with ``# --`` describes the next key, with all of its further lines. Keys without one are groups.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from scripts.chart import CHART
from scripts.reference.markdown import code, table

README = CHART / "README.md"
BEGIN, END = "<!-- values: made from values.yaml by `make manifests` -->", "<!-- end of values -->"

_KEY = re.compile(r"(?P<indent> *)(?P<name>\w+):")


@dataclass(frozen=True, slots=True)
class Value:
    """One described value. ``path``: its keys, joined by dots."""

    path: str
    description: str
    default: Any


def described_values() -> list[Value]:
    """All values of the chart that have a description, in order."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    return [Value(path, words, _at(yaml.safe_load(text), path)) for path, words in _descriptions(text)]


def readme() -> str:
    """The README with its table made anew."""
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    rows = ((code(value.path), code(json.dumps(value.default)), value.description) for value in described_values())
    return f"{before}{BEGIN}\n\n{table(('Value', 'Default', 'Meaning'), rows)}\n\n{END}{after}"


def _descriptions(text: str) -> Iterator[tuple[str, str]]:
    words: list[str] = []
    parents: list[tuple[int, str]] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("# -- "):
            words = [stripped.removeprefix("# -- ")]
        elif words and stripped.startswith("# "):
            words.append(stripped.removeprefix("# "))
        elif key := _KEY.match(line):
            parents = [*(parent for parent in parents if parent[0] < len(key["indent"])), (len(key["indent"]), key["name"])]
            if words:
                yield ".".join(name for _, name in parents), " ".join(words)
            words = []


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values
