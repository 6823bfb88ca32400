"""Where an axis has its ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from thunderagent.report.charts import Unit
from thunderagent.report.record import Period

_TIMES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


def value_ticks(highest: float, unit: Unit, most: int = 4) -> list[float]:
    """From 0 to at least the highest value, at numbers that people count in: 1, 2 and 5 times a power of ten, or times."""
    size = highest / most
    if unit is Unit.SECONDS and size > 1:
        step: float = next((each for each in _TIMES if each >= size), _round(size / 86_400) * 86_400)
    else:
        step = _round(size) if size > 0 else 1.0
    if unit is Unit.COUNT:
        step = max(1.0, step)
    return [step * number for number in range(max(1, math.ceil(highest / step - 1e-9)) + 1)]


def time_ticks(period: Period, most: int = 6) -> list[float]:
    """Round moments within the period, in epoch seconds."""
    size = period.seconds / most
    step = next((each for each in _TIMES if each >= size), math.ceil(size / 86_400) * 86_400)
    first = math.ceil(period.start / step) * step
    return [float(at) for at in range(int(first), int(period.end) + 1, int(step))]


def _round(size: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(size))
    steps: Sequence[float] = (1, 2, 5, 10)
    return power * next(each for each in steps if each * power >= size * (1 - 1e-9))
