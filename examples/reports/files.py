"""Names and files: safe file names from any text, and files that appear whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

SLUG_CHARS = 60
"""Characters kept of a name; with a suffix and an ending it stays far below the 255 bytes of common file systems."""


def slug(text: str, fallback: str = "item") -> str:
    """The text as lower-case letters, digits and hyphens, fit for a file name, a taskId and an HTML id."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:SLUG_CHARS].rstrip("-") or fallback


def unique_slugs(texts: Iterable[str], fallback: str = "item") -> list[str]:
    """A slug for each text, in order; those that would collide (``A/B`` and ``a-b``) get ``-2``, ``-3`` and so on."""
    taken: set[str] = set()
    names: list[str] = []
    for text in texts:
        base = slug(text, fallback)
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        names.append(name)
    return names


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new path beside ``path``; when the block ends well it becomes ``path``, else it is removed.

    The name differs for every call, so an agent that has lost its lease and the one that took over never write to the same
    file, and readers see either the old or the new one. The names of :mod:`tempfile` would do too, but its files can be
    read by their owner alone, and pages are made to be served.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text so that nobody ever sees half of it."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
