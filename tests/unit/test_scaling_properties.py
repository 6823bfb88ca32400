"""What must hold for any rules and any history, found out by chance."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from thunderagent.scaling import (
    Behaviour,
    Candidate,
    Counts,
    Decision,
    FailedRead,
    Fallback,
    Observation,
    Pause,
    Policy,
    PolicyKind,
    Replica,
    ReplicaState,
    ScalingRules,
    SelectPolicy,
    decide,
    deletion_cost,
    initial_state,
    observe,
    replicas_now,
    victim_order,
)

POLL = 5.0
SEEDED = settings(deadline=None, derandomize=True)

policies = st.lists(st.builds(Policy, st.sampled_from(PolicyKind), st.integers(1, 200), st.integers(1, 120)), max_size=3).map(
    tuple
)


def behaviours(selects: st.SearchStrategy[SelectPolicy]) -> st.SearchStrategy[Behaviour]:
    return st.builds(Behaviour, st.integers(0, 60), policies, selects)


ways = behaviours(st.sampled_from(SelectPolicy))
moving = behaviours(st.sampled_from([SelectPolicy.MAX, SelectPolicy.MIN]))


def rules_with(ways: st.SearchStrategy[Behaviour]) -> st.SearchStrategy[ScalingRules]:
    bounds = st.tuples(st.integers(0, 8), st.integers(1, 20)).map(lambda pair: (min(pair), max(pair)))
    return bounds.flatmap(
        lambda bound: st.builds(
            ScalingRules,
            min_replicas=st.just(bound[0]),
            max_replicas=st.just(bound[1]),
            tasks_per_replica=st.integers(1, 12),
            activation_threshold=st.integers(0, 5),
            cooldown_seconds=st.integers(0, 60),
            tolerance_percent=st.integers(0, 50),
            scale_up=ways,
            scale_down=ways,
            fallback=st.none() | st.builds(Fallback, st.integers(1, 4), st.integers(0, 30)),
        )
    )


any_pause = st.builds(Pause, st.booleans(), st.booleans(), st.none() | st.integers(0, 30))
replicas = st.lists(st.builds(Replica, st.uuids().map(str), st.sampled_from(ReplicaState), st.integers(0, 3)), max_size=25).map(
    tuple
)
observations = st.builds(
    Observation,
    desired=st.integers(0, 25),
    replicas=replicas,
    ready=st.integers(0, 300),
    waiting=st.integers(0, 300),
    waiting_due=st.integers(0, 3),
    expired=st.integers(0, 5),
    running_gone=st.integers(0, 5),
    cut=st.booleans(),
)
failed_reads = st.builds(FailedRead, st.integers(0, 25), st.just("StoreUnavailable"))
histories = st.lists(st.tuples(observations | failed_reads, st.floats(0.5, 30)), min_size=1, max_size=25)


@settings(SEEDED, max_examples=150)
@given(rules_with(ways), any_pause, histories, st.integers(0, 25))
def test_what_every_decision_keeps(
    rules: ScalingRules, pause: Pause, history: list[tuple[Observation | FailedRead, float]], replicas: int
) -> None:
    rules = replace(rules, pause=pause)
    state, now = initial_state(replicas, 0.0), 0.0
    for seen, wait in history:
        now += wait
        decision = decide(rules, state, seen, now)
        state = decision.state
        if isinstance(seen, FailedRead):
            assert decision.target >= seen.desired
            assert decision.target <= max(rules.max_replicas, seen.desired)
        else:
            assert decision.target >= min(seen.floor, seen.desired)
            assert decision.target <= max(rules.max_replicas, seen.floor, seen.desired if pause else 0)
        if not pause and not isinstance(seen, FailedRead):
            assert max(rules.min_replicas, seen.floor) <= decision.target
        assert decision.reasons
        assert decision.sentence.endswith(".")


@settings(SEEDED, max_examples=150)
@given(rules_with(ways), observations, st.integers(0, 20))
def test_one_reading_alone_takes_nothing_away(rules: ScalingRules, seen: Observation, replicas: int) -> None:
    desired = min(replicas, rules.max_replicas)
    decision = decide(rules, initial_state(desired, 0.0), replace(seen, desired=desired), POLL)
    assert decision.target >= desired


def followed(rules: ScalingRules, desired: int, ready: int, cycles: int) -> list[int]:
    """Targets under a constant backlog, with replicas that follow at once."""
    state, targets = initial_state(desired, 0.0), [desired]
    for cycle in range(1, cycles + 1):
        decision = decide(rules, state, Observation(targets[-1], ready=ready), cycle * POLL)
        state = decision.state
        targets.append(decision.target)
    return targets


@settings(SEEDED, max_examples=150)
@given(rules_with(ways), st.integers(0, 25), st.integers(0, 250))
def test_no_flapping_on_a_constant_backlog(rules: ScalingRules, desired: int, ready: int) -> None:
    targets = followed(rules, desired, ready, 60)
    inside = targets[1:]  # the first may bring the pool inside its bounds
    steps = [later - earlier for earlier, later in pairwise(inside)]
    assert all(step >= 0 for step in steps) or all(step <= 0 for step in steps)


@settings(SEEDED, max_examples=40)
@given(rules_with(moving), st.integers(0, 25))
def test_an_idle_pool_ends_at_min_replicas(rules: ScalingRules, desired: int) -> None:
    # 20 replicas, one at a time in the longest period, after the longest window and cooldown
    assert followed(rules, desired, 0, 20 * 120 // 5 + 30)[-1] == rules.min_replicas


@settings(SEEDED, max_examples=40)
@given(rules_with(moving), st.integers(0, 25), st.integers(200, 400))
def test_a_large_backlog_ends_at_max_replicas(rules: ScalingRules, desired: int, ready: int) -> None:
    asked = replace(rules, tolerance_percent=0, tasks_per_replica=min(rules.tasks_per_replica, 10))
    assert followed(asked, desired, ready, 20 * 120 // 5 + 30)[-1] == asked.max_replicas


class World:
    """A pool whose agents take tasks, finish them, and are removed by a ReplicaSet in its own order."""

    def __init__(self, rules: ScalingRules) -> None:
        self.rules, self.now, self.queued = rules, 0.0, 0
        self.running: dict[str, int] = {}
        self.state, self.desired, self.born = initial_state(0, 0.0), 0, 0
        self.removed_while_busy: list[str] = []

    def cycle(self, arriving: int, finishing: list[int], failing: bool) -> Decision:
        self.now += POLL
        self.queued += arriving
        self._work(finishing)
        decision = decide(self.rules, self.state, self._seen(failing), self.now)
        self.state = decision.state
        self.desired = replicas_now(decision, self._candidates())
        self._replica_set()
        return decision

    def _work(self, finishing: list[int]) -> None:
        for name, done in zip(sorted(self.running), finishing, strict=False):
            taken = 1 if self.queued and not self.running[name] else 0
            self.queued -= taken
            self.running[name] = max(0, self.running[name] - done) + taken

    def _seen(self, failing: bool) -> Observation | FailedRead:
        if failing:
            return FailedRead(self.desired, "StoreUnavailable")
        counts = Counts(ready=self.queued, leases={f"pool/{name}/1-x": count for name, count in self.running.items() if count})
        members = [Replica(f"pool/{name}/1") for name in self.running]
        return observe(pool="pool", counts=counts, replicas=members, desired=self.desired)

    def _candidates(self) -> list[Candidate]:
        return [Candidate(name, count, cost=deletion_cost(count), uid=name) for name, count in self.running.items()]

    def _replica_set(self) -> None:
        while len(self.running) < self.desired:
            self.born += 1
            self.running[f"{self.born:05}"] = 0
        for victim in victim_order(self._candidates(), self.now)[: max(0, len(self.running) - self.desired)]:
            self.removed_while_busy += [victim.name] * (victim.running > 0)
            del self.running[victim.name]


turns = st.tuples(st.integers(0, 12), st.lists(st.integers(0, 1), min_size=20, max_size=20), st.booleans())


@settings(SEEDED, max_examples=60)
@given(rules_with(ways), st.lists(turns, max_size=40), st.integers(1, 20))
def test_no_busy_replica_is_ever_removed(
    rules: ScalingRules, history: list[tuple[int, list[int], bool]], lowered_max: int
) -> None:
    world = World(rules)
    for number, (arriving, finishing, failing) in enumerate(history):
        if number == len(history) // 2:
            lowered = min(lowered_max, rules.max_replicas)
            world.rules = replace(rules, max_replicas=lowered, min_replicas=min(rules.min_replicas, lowered))
        before = world.desired
        world.cycle(arriving, finishing, failing)
        assert not (failing and world.desired < before)
    assert world.removed_while_busy == []
