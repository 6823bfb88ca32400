"""The stress test in small: ``make stress`` runs it with a million tasks."""

from __future__ import annotations

import pytest

from tests.simulation.stress import SLOTS, stress

pytestmark = pytest.mark.simulation


def test_no_task_runs_twice_while_all_agents_live() -> None:
    result = stress(agents=5, tasks=300)
    assert result.twice == 0
    assert sum(result.claims) == 300


def test_agents_that_are_killed_cost_the_runs_that_they_had_and_no_more() -> None:
    result = stress(agents=5, tasks=1200, kills=True)
    assert result.kills > 0
    assert result.twice <= result.kills * SLOTS
    assert sum(result.claims) <= 1200 + result.kills * SLOTS


def test_agents_that_share_a_backlog_rarely_want_the_same_task() -> None:
    """Four that all took the head of the index would lose every other claim."""
    assert stress(agents=4, tasks=1000).lost_share < 0.25
