"""Elements of the page that hold a text of whatever origin."""

from __future__ import annotations

from xml.etree.ElementTree import Element


def text(tag: str, content: str, kind: str = "", **attributes: str) -> Element:
    """An element with that text; ``kind`` is its class."""
    element = Element(tag, {**({"class": kind} if kind else {}), **attributes})
    element.text = printable(content)
    return element


def printable(content: str) -> str:
    """Without control characters, which no page may hold: labels and errors are anybody's to choose."""
    return "".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in content)
