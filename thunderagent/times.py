"""Times as people read and write them: ``90``, ``90s``, ``5m``, ``1h30m`` for spans, epoch or ISO 8601 for moments."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from thunderagent.errors import InvalidInput

MINUTE, HOUR, DAY = 60, 3600, 86400

EPOCH_LIMIT = 10**11
"""Epoch seconds from here on are the year 5138: a time that large was written in milliseconds."""

_SECONDS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY}
_PART = r"(\d+(?:\.\d+)?)([smhd])"
_SPAN = re.compile(rf"(?:{_PART})+", re.ASCII)
_PARTS = re.compile(_PART, re.ASCII)
_UNITS = (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", 1))


def parse_span(text: str) -> float:
    """Seconds, from ``90``, ``90s``, ``5m``, ``2h``, ``1d`` or several such parts. Raises InvalidInput."""
    compact = text.strip().lower()
    if _SPAN.fullmatch(compact):
        return sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(compact))
    seconds = _finite(compact)
    if seconds is None or seconds < 0:
        raise InvalidInput(f"{text!r} is not a time span. Write seconds, or a number with s, m, h or d: 90, 90s, 5m, 1h30m.")
    return seconds


def parse_moment(text: str) -> float:
    """Epoch seconds, from such a number or from ISO 8601 with a zone. Raises InvalidInput."""
    seconds = _finite(text.strip())
    if seconds is None:
        seconds = _parse_iso(text)
    if not 0 <= seconds < EPOCH_LIMIT:
        raise InvalidInput(f"{text!r} is no time from 1970 on in epoch seconds; milliseconds must be divided by 1000.")
    return seconds


def span(seconds: float) -> str:
    """A span in its two largest units: ``45 s``, ``2 min 5 s``, ``3 d 4 h``."""
    return " ".join(f"{count} {name}" for count, name in _largest(seconds))


def brief(seconds: float) -> str:
    """The same in few columns, as :func:`parse_span` reads it: ``45s``, ``2m5s``, ``3d4h``."""
    return "".join(f"{count}{name[0]}" for count, name in _largest(seconds))


def moment(epoch: float) -> str:
    """Epoch seconds as ``2026-12-01 09:40:12Z``; a number that is no date a calendar has, as it is."""
    try:
        return f"{datetime.fromtimestamp(epoch, UTC):%Y-%m-%d %H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"epoch {epoch:.0f}"


def ago(epoch: float, now: float) -> str:
    """A moment as seen from ``now``: ``5 min ago``, ``in 2 h``, ``now``."""
    if round(epoch) == round(now):
        return "now"
    return f"{span(now - epoch)} ago" if epoch < now else f"in {span(epoch - now)}"


def _largest(seconds: float) -> list[tuple[int, str]]:
    left = round(abs(seconds))
    parts: list[tuple[int, str]] = []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append((count, name))
        elif parts:
            break
    return parts[:2] or [(0, "s")]


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _parse_iso(text: str) -> float:
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{text!r} is no time. Write epoch seconds, or ISO 8601 with a zone: 2026-12-31T08:00Z.") from None
    if at.tzinfo is None:
        raise InvalidInput(f"{text!r} has no time zone. Add Z for UTC, or an offset such as +02:00.")
    return at.timestamp()
