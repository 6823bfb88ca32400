"""How much a poll reads beyond what its agent can use, so that agents which share a backlog do not all want the same tasks."""

from __future__ import annotations

import pytest

from thunderagent.agent.candidates import WIDEST, next_width


@pytest.mark.parametrize(
    ("width", "won", "lost", "then"),
    [
        pytest.param(1, 10, 0, 1, id="an agent that is alone reads what it can use"),
        pytest.param(1, 5, 5, 2, id="one that loses half its claims reads twice as much"),
        pytest.param(1, 0, 3, 2, id="so does one that loses all"),
        pytest.param(4, 8, 2, 8, id="also where only one in five is lost"),
        pytest.param(WIDEST, 0, 10, WIDEST, id="but never more than that"),
        pytest.param(4, 9, 1, 4, id="with few lost it stays as it is"),
        pytest.param(4, 20, 1, 2, id="with hardly any lost it reads half"),
        pytest.param(4, 0, 0, 4, id="without a claim nothing is known"),
    ],
)
def test_the_next_poll_reads_by_what_the_last_claims_came_to(width: int, won: int, lost: int, then: int) -> None:
    assert next_width(width, won, lost) == then
