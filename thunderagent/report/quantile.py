"""Quantiles of a histogram, as Prometheus's ``histogram_quantile`` has them: a straight line within a bucket."""

from __future__ import annotations

import math
from collections.abc import Mapping


def quantile(share: float, buckets: Mapping[str, float | None]) -> float | None:
    """The value that ``share`` of the observations do not exceed; None where there are none.

    ``buckets``: how many observations are at most the bound, by the bound as text, one of them ``+Inf``. What lies beyond the
    last finite bound counts as that bound.
    """
    bounds = sorted((float(bound), count or 0.0) for bound, count in buckets.items())
    if not bounds or not bounds[-1][1] > 0:
        return None
    rank = share * bounds[-1][1]
    below, counted = 0.0, 0.0
    for bound, count in bounds:
        if count >= rank and count > counted:
            return below if math.isinf(bound) else below + (bound - below) * max(0.0, rank - counted) / (count - counted)
        below, counted = (below if math.isinf(bound) else bound), max(counted, count)
    return below
