"""The little Markdown that the pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTHING = "–"


def page(source: str, *blocks: str) -> str:
    """A whole page: a note on where it comes from, then its blocks, with an empty line between each two."""
    note = f"<!-- Made from {source} by `make docs`: change that, not this. -->"
    return "\n\n".join([note, *blocks]) + "\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; an empty cell is shown as a dash."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def code(value: object) -> str:
    return f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or NOTHING
