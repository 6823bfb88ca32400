"""Numbers, times and names as a person reads them."""

from __future__ import annotations

import calendar
import re
from datetime import datetime


def number(value: float) -> str:
    """No more digits than a reader needs: 142,859 and 1,204.5 and −7.05 and 0.012."""
    size = abs(value)
    if value == 0 or not 1e-4 <= size < 1e15:
        text = f"{value:.3g}"
    elif float(value).is_integer() or size >= 10_000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:,.{1 if size >= 1000 else 2 if size >= 1 else 3 if size >= 0.01 else 4}f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def change(first: float, last: float) -> str:
    """The change from one value to another with its sign, in per cent; a dash where the first is not above zero."""
    return f"{100 * (last - first) / first:+,.1f} %".replace("-", "−") if first > 0 else "–"


def moment(iso: str) -> str:
    """``5 Jan 2012``, with the time of day unless that is midnight; other text unchanged."""
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    day = f"{at.day} {at:%b %Y}"
    return day if (at.hour, at.minute, at.second) == (0, 0, 0) else f"{day}, {at:%H:%M}"


def period(key: str) -> str:
    """``2012-01`` as ``January 2012``; anything else unchanged."""
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", key, re.ASCII):
        return key
    return f"{calendar.month_name[int(key[5:])]} {key[:4]}"


def label(name: str) -> str:
    """A column's name for a heading: underscores as spaces."""
    return name.replace("_", " ").strip() or name


def capital(text: str) -> str:
    """The text with its first letter as a capital; the others stay as they are."""
    return text[:1].upper() + text[1:]


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
