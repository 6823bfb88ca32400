"""Measuring two things side by side: A B A B, so that what else the machine does weighs on both alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Pair(NamedTuple):
    """Two measurements made one after the other."""

    ours: float
    theirs: float


def interleaved(ours: Callable[[], T], theirs: Callable[[], T], pairs: int) -> list[tuple[T, T]]:
    """Measure both in turn, ``pairs`` times. Who goes first changes, so that neither always meets a warmer machine."""
    measured = []
    for number in range(pairs):
        if number % 2 == 0:
            first = ours()
            measured.append((first, theirs()))
        else:
            second = theirs()
            measured.append((ours(), second))
    return measured


def ratios(pairs: Sequence[Pair]) -> tuple[float, ...]:
    """Ours over theirs, of each pair."""
    return tuple(pair.ours / pair.theirs for pair in pairs)


def middle(samples: Sequence[float]) -> float:
    """The median."""
    return float(median(samples))
