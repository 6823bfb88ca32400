"""The table's time is always between the two bounds, however slow replies are and however two clocks drift apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thunderagent.errors import ClockUnknown
from thunderagent.store.clock import MAX_DRIFT, TableClock

START = 1_800_000_000.25


class World:
    """A server's clock and a process's monotonic one, at rates that differ by no more than two disciplined clocks may."""

    def __init__(self, offset: float = 0.0) -> None:
        self.server = START + offset
        self.local = 1000.0
        self.clock = TableClock(lambda: self.local)

    def pass_time(self, seconds: float, drift: float = 0.0) -> None:
        """Let ``seconds`` pass on the process's clock; the server's gains ``drift`` seconds a second."""
        self.local += seconds
        self.server += seconds * (1 + drift)

    def call(self, there: float, back: float, drift: float = 0.0) -> None:
        """One call: the reply is made ``there`` seconds after sending, its Date in whole seconds, and takes ``back`` more."""
        sent = self.local
        self.pass_time(there, drift)
        date = math.floor(self.server)
        self.pass_time(back, drift)
        self.clock.observe(date, sent, self.local)

    @property
    def error(self) -> float:
        """How far the server's time is outside the bounds, but for the last digits of floats."""
        return max(self.clock.earliest() - self.server, self.server - self.clock.latest()) - 1e-6


drifts = st.floats(-MAX_DRIFT, MAX_DRIFT)


@dataclass(frozen=True)
class Turn:
    """A pause and a call after it."""

    pause: float
    there: float
    back: float
    drift: float


turns = st.builds(Turn, st.floats(0, 50_000), st.floats(0, 30), st.floats(0, 30), drifts)


@settings(deadline=None)
@given(offset=st.floats(-1e6, 1e6), calls=st.lists(turns, min_size=1, max_size=8), idle=st.floats(0, 1e6), drift=drifts)
def test_the_servers_time_is_always_within_the_bounds(offset: float, calls: list[Turn], idle: float, drift: float) -> None:
    world = World(offset)
    for turn in calls:
        if world.clock.known:
            world.pass_time(turn.pause, turn.drift)
            assert world.error <= 0
        world.call(turn.there, turn.back, turn.drift)
        assert world.error <= 0
    world.pass_time(idle, drift)

    assert world.error <= 0
    assert world.clock.now() <= world.server
    assert world.clock.lease_end(10) >= world.server + 10 - 1e-6
    assert world.clock.jumps == 0


@pytest.mark.parametrize("drift", [-MAX_DRIFT, MAX_DRIFT])
@pytest.mark.parametrize("part", [0.0, 0.999999], ids=["as a second begins", "as a second ends"])
@pytest.mark.parametrize(("there", "back"), [(0, 30), (30, 0), (0, 0)], ids=["a slow reply", "a slow request", "neither"])
def test_the_bounds_are_true_at_their_edges(there: float, back: float, part: float, drift: float) -> None:
    world = World()
    world.server = math.floor(START) + part - there * (1 + drift)
    world.call(there, back, drift)
    assert world.error <= 0

    world.pass_time(10_000, drift)
    assert world.error <= 0


def test_before_the_first_reply_the_time_is_not_known() -> None:
    clock = World().clock

    assert not clock.known
    assert clock.uncertainty() == math.inf
    for ask in (clock.now, clock.earliest, clock.latest, lambda: clock.lease_end(5)):
        with pytest.raises(ClockUnknown, match="Date"):
            ask()


def test_one_reply_leaves_a_second_and_the_time_it_took() -> None:
    world = World()
    world.call(0.25, 0.25)

    assert world.clock.uncertainty() == pytest.approx(1.5, abs=0.001)


def test_replies_at_different_parts_of_a_second_narrow_the_bounds() -> None:
    world = World()
    for _ in range(20):
        world.call(0.005, 0.005)
        world.pass_time(1.06)

    assert world.clock.uncertainty() < 0.15
    assert world.error <= 0


def test_a_slow_reply_does_not_widen_what_is_known() -> None:
    world = World()
    world.call(0.01, 0.01)
    before = world.clock.uncertainty()
    world.call(20, 20)

    assert world.clock.uncertainty() <= before + 2 * 40 * MAX_DRIFT + 1e-6


def test_without_replies_the_bounds_widen_by_what_clocks_may_drift() -> None:
    world = World()
    world.call(0, 0)
    before = world.clock.uncertainty()
    world.pass_time(3600)

    assert world.clock.uncertainty() == pytest.approx(before + 2 * 3600 * MAX_DRIFT)


@pytest.mark.parametrize("jump", [-3600, -30, 30, 3600])
def test_a_clock_that_was_set_is_believed_and_counted(jump: float) -> None:
    world = World()
    world.call(0.01, 0.01)
    world.server += jump
    world.call(0.01, 0.01)

    assert world.error <= 0
    assert world.clock.jumps == 1


def test_replies_taken_in_out_of_order_keep_the_bounds_true() -> None:
    world = World()
    sent_first, date_first = world.local, math.floor(world.server)
    world.pass_time(0.4)
    received_first = world.local
    world.call(0.2, 0.2)
    world.clock.observe(date_first, sent_first, received_first)  # a thread that was slow to say what it saw

    world.pass_time(100, MAX_DRIFT)
    assert world.error <= 0


def test_the_time_is_rounded_to_the_cautious_side() -> None:
    world = World()
    world.call(0, 0)

    assert world.clock.now() == math.floor(world.clock.earliest())
    assert world.clock.lease_end(0.5) == math.ceil(world.clock.latest() + 0.5)
