"""Noticing that somebody else writes the replicas too: a second autoscaler, or a GitOps tool that has them in its files.

One change by another hand is a person with kubectl; the next cycle answers it. A second one that undoes the answer is a rival.
There is no fight: the pool then leaves the replicas alone until nobody else has written them for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

WINDOW = 300.0
"""Seconds within which a second change by another hand makes a rival."""

HOLD = 300.0
"""Seconds without a change by another hand after which the pool tries again."""


@dataclass(frozen=True, slots=True)
class Rivalry:
    """``expected``: values of spec.replicas that are ours, also those of a write whose reply was lost. ``answered``: we have
    written since the last foreign change. Times are monotonic seconds."""

    expected: frozenset[int] = frozenset()
    answered: bool = False
    foreign: tuple[float, ...] = ()
    held_until: float = 0.0
    theirs: int | None = None

    def is_held(self, now: float) -> bool:
        """Whether the replicas are left to the rival."""
        return now < self.held_until


def saw(state: Rivalry, replicas: int, now: float) -> Rivalry:
    """The Deployment asks for ``replicas``."""
    if not state.expected or replicas in state.expected:
        return replace(state, expected=frozenset({replicas}), answered=state.answered or replicas not in {state.theirs, None})
    foreign = (*(at for at in state.foreign if at > now - WINDOW), now)
    is_rival = state.is_held(now) or (state.answered and len(foreign) >= 2)
    return Rivalry(
        expected=frozenset({replicas}),
        foreign=foreign,
        held_until=now + HOLD if is_rival else 0.0,
        theirs=replicas,
    )


def tries(state: Rivalry, replicas: int) -> Rivalry:
    """We are about to ask for ``replicas``. Whether it went through is not known until it is seen."""
    return replace(state, expected=state.expected | {replicas})


def wrote(state: Rivalry, replicas: int) -> Rivalry:
    """We have asked for ``replicas``: from now on anything else is another hand's."""
    return replace(state, expected=frozenset({replicas}), answered=True)
