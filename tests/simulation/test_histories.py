"""A thousand histories under faults: nothing may happen in them that must not, and in the end all has to come to rest.

A failing test names the seed, and shows what led to the violation with as few kinds of faults and tasks as it needs.
``make sim`` runs more of them, and replays one.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.history import History, simulate
from tests.simulation.known import KNOWN, Known, known
from tests.simulation.plan import plan
from tests.simulation.shrink import shrink

pytestmark = pytest.mark.simulation

SEEDS = 1000
CHUNK = 20


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK), ids=lambda first: f"seeds {first} to {first + CHUNK - 1}")
def test_no_history_breaks_a_rule(first: int) -> None:
    broken = [history for seed in range(first, first + CHUNK) if _is_new(history := simulate(plan(seed)))]
    assert not broken, _told(broken[0])


@pytest.mark.parametrize("each", KNOWN, ids=lambda each: each.cause)
def test_a_fault_that_is_known_is_still_there(each: Known) -> None:
    """Once it is mended, this fails: then take it off the list in known.py, and keep its seed as a test of its own."""
    history = simulate(plan(each.seed))
    assert history.violations, "no longer: take it off the list"
    assert each.shows(history.violations[0])


@pytest.mark.parametrize("seed", [0, 1, 3], ids=["more tasks than slots", "hosts", "a pool"])
def test_a_seed_is_one_history_whatever_the_process(seed: int) -> None:
    """Sets and dicts are ordered otherwise in another process, and objects lie elsewhere; a history must not depend on it."""
    here = simulate(plan(seed)).digest
    assert simulate(plan(seed)).digest == here
    code = (
        "from tests.simulation.history import simulate; from tests.simulation.plan import plan; "
        f"print(simulate(plan({seed})).digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    there = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here


def _is_new(history: History) -> bool:
    return bool(history.violations) and known(history.violations[0]) is None


def _told(history: History) -> str:
    small = shrink(history)
    lines = [f"seed {history.plan.seed}: {history.violations[0]}", "", small.story(), "", f"make sim SEED={history.plan.seed}"]
    return "\n".join(lines)
