"""Which way to a cluster is taken: a table of what is asked for and what the machine offers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cluster.choice import Choice, Surroundings, choose
from tests.cluster.errors import ClusterError

DEBIAN = Surroundings(context=None, terminal=False, docker=False, kind=True, debian=True, root=True)
LAPTOP = Surroundings(context="work", terminal=True, docker=True, kind=True, debian=False, root=False)


@pytest.mark.parametrize(
    ("wanted", "confirmed", "seen", "choice"),
    [
        pytest.param(None, False, DEBIAN, Choice("built"), id="a bare Debian machine builds one"),
        pytest.param(None, False, replace(DEBIAN, docker=True), Choice("kind"), id="a Docker engine is preferred"),
        pytest.param(
            None, False, replace(DEBIAN, docker=True, kind=False), Choice("built"), id="an engine without kind is no way"
        ),
        pytest.param("built", False, replace(DEBIAN, docker=True), Choice("built"), id="what is asked for wins"),
        pytest.param(None, False, LAPTOP, Choice("current", True, "kind"), id="a person is offered the current context first"),
        pytest.param(None, False, replace(LAPTOP, docker=False), Choice("current", True), id="and may have nothing else"),
        pytest.param(
            None, True, LAPTOP, Choice("current", True, "kind"), id="a stray CONFIRM alone does not choose the context"
        ),
        pytest.param(
            None, True, replace(LAPTOP, terminal=False), Choice("kind"), id="a context is never taken by a script unasked"
        ),
        pytest.param("current", False, LAPTOP, Choice("current", True), id="a named context is confirmed at the terminal"),
        pytest.param("current", True, replace(LAPTOP, terminal=False), Choice("current"), id="or by CONFIRM in a script"),
    ],
)
def test_a_way_is_chosen(wanted: str | None, confirmed: bool, seen: Surroundings, choice: Choice) -> None:
    assert choose(wanted, confirmed, seen) == choice


@pytest.mark.parametrize(
    ("wanted", "seen", "complaint"),
    [
        pytest.param("current", replace(LAPTOP, terminal=False), "CONFIRM=yes", id="a context without consent"),
        pytest.param("current", replace(LAPTOP, context=None), "use-context", id="a context that is not there"),
        pytest.param("kind", replace(LAPTOP, docker=False), "docker info", id="kind without an engine"),
        pytest.param("kind", replace(LAPTOP, kind=False), "neither kind nor go", id="kind that cannot be had"),
        pytest.param("built", LAPTOP, "no Debian", id="built elsewhere than on Debian"),
        pytest.param("built", replace(DEBIAN, root=False), "root", id="built without being root"),
        pytest.param(
            None, replace(DEBIAN, root=False), "(?s)kind: .*built: .*current: ", id="nothing at all, each way's obstacle told"
        ),
    ],
)
def test_an_impossible_way_is_refused_with_the_reason(wanted: str | None, seen: Surroundings, complaint: str) -> None:
    with pytest.raises(ClusterError, match=complaint):
        choose(wanted, False, seen)
