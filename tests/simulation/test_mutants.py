"""The simulation bites: with one rule taken away, one of CI's seeds breaks a rule that it does not break otherwise.

``NOTICED`` says at which seed that was seen, so that a test need not try all those before it. Where the code has changed since,
all seeds are tried in turn; ``python -m tests.simulation --mutants`` gives new numbers.
"""

from __future__ import annotations

import itertools

import pytest

from tests.simulation.history import simulate
from tests.simulation.known import known
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.noticed import NOTICED, UNNOTICED
from tests.simulation.plan import plan
from tests.simulation.test_histories import SEEDS

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize(
    "mutant",
    [mutant for mutant in MUTANTS if mutant.name in NOTICED],
    ids=lambda mutant: f"{mutant.rule}, {mutant.name}",
)
def test_a_rule_that_is_taken_away_is_missed(mutant: Mutant) -> None:
    seeds = itertools.chain([NOTICED[mutant.name]], range(SEEDS))
    assert any(_notices(seed, mutant) for seed in seeds), "no seed notices it"


def test_it_is_known_of_every_mutant_whether_it_is_noticed() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names))
    assert NOTICED.keys() | UNNOTICED.keys() == set(names)
    assert not NOTICED.keys() & UNNOTICED.keys()


def _notices(seed: int, mutant: Mutant) -> bool:
    """Whether a seed breaks a rule with the mutant, and none without."""
    history = simulate(plan(seed), mutant.mutation)
    if not history.violations or known(history.violations[0]) is not None:
        return False
    return not simulate(plan(seed)).violations
