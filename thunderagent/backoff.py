"""Waits between tries."""

from __future__ import annotations

import random


def full_jitter(rng: random.Random, used: int, *, base: float, cap: float) -> float:
    """Seconds to wait after ``used`` earlier waits: uniform between 0 and base x 2^used, at most ``cap``.

    Full jitter spreads clients that failed together over the whole interval; M. Brooker, "Exponential backoff and jitter" (AWS
    Architecture Blog, 2015), compares it with the alternatives.
    """
    return rng.uniform(0.0, min(cap, base * 2.0 ** min(used, 60)))
