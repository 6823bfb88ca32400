"""Numbers, spans and moments as the page writes them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from thunderagent.report.record import Period
from thunderagent.times import DAY, span

NONE = "–"


def count(value: float | None, digits: int = 0) -> str:
    """``1,234``; with ``digits``, as many behind the point where they say something."""
    if value is None:
        return NONE
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value: float | None) -> str:
    """``0.2 s``, ``45 s``, ``2 min 5 s``."""
    if value is None:
        return NONE
    return f"{count(value, 1 if value >= 0.1 else 2)} s" if value < 10 else span(value)


def clock(period: Period, step: int) -> str:
    """When a step ended, in UTC: the time of day, with the day where the period has several."""
    at = datetime.fromtimestamp(period.ends[step], UTC)
    return f"{at:%m-%d %H:%M}" if _days(period) else f"{at:%H:%M:%S}"


def tick(at: float, period: Period) -> str:
    """A moment of the axis of time."""
    moment = datetime.fromtimestamp(at, UTC)
    if _days(period):
        return f"{moment:%m-%d}" if period.seconds >= 4 * DAY else f"{moment:%m-%d %H:%M}"
    return f"{moment:%H:%M}" if period.seconds >= 600 else f"{moment:%H:%M:%S}"


def _days(period: Period) -> bool:
    return math.floor(period.start / DAY) != math.floor((period.end - 1) / DAY)
