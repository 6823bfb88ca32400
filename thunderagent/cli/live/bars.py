"""Charts of block characters: rows of text that show how a number changed over time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"
"""An empty cell, then one filled by an eighth more each."""


def columns(values: Sequence[int], width: int) -> list[int]:
    """At most ``width`` values for the whole series: each is the largest of its part, so that no peak is lost."""
    if len(values) <= width:
        return list(values)
    bounds = [len(values) * number // width for number in range(width + 1)]
    return [max(values[start:end]) for start, end in itertools.pairwise(bounds)]


def bar_rows(values: Sequence[int], top: int, rows: int = 1) -> list[str]:
    """Lines of blocks, the upper ones first; ``top`` is the value that fills all ``rows``. What is not zero shows."""
    eighths = [_eighths(value, top, rows) for value in values]
    return ["".join(BLOCKS[min(8, max(0, each - 8 * row))] for each in eighths) for row in reversed(range(rows))]


def _eighths(value: int, top: int, rows: int) -> int:
    return 0 if value <= 0 else max(1, math.floor(8 * rows * min(value, top) / max(top, 1)))
