"""Faults that the simulation has found and that are not mended yet, each with a seed that shows it.

A history that ends in one of them does not fail the tests; but a test of its own fails as soon as a seed no longer shows it, so
that nothing stays on this list for longer than the fault is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.checker import Violation


@dataclass(frozen=True, slots=True)
class Known:
    """``shows`` says whether a violation is this fault; ``seed`` is one that has it."""

    seed: int
    cause: str
    shows: Callable[[Violation], bool]


KNOWN: tuple[Known, ...] = ()


def known(violation: Violation) -> Known | None:
    """The known fault that a violation shows."""
    return next((each for each in KNOWN if each.shows(violation)), None)
