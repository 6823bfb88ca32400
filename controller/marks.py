"""What a pod carries while it is busy: its deletion cost, and the annotations by which node autoscalers leave it alone.

The ReplicaSet controller reads costs from its own cache, so a cost counts only some time after it was written
(kubernetes#126138). Until then the worst is assumed: of the old and the new cost, for a busy pod the lower, for an idle one
the higher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from controller.names import BUSY
from controller.pods import CLUSTER_AUTOSCALER, KARPENTER, Pod
from thunderagent.scaling import Candidate, deletion_cost, read_cost
from thunderagent.scaling.victims import COST_ANNOTATION

SETTLE = 2.0
"""Seconds after which a cost that was written is known to the ReplicaSet controller: its cache lags by milliseconds, and by
more only while the API server is in trouble. Grace and drain protect what runs even then."""

IDLE_BEFORE_UNMARKED = 30.0
"""Seconds of idleness after which a pod is unmarked. Not at once: under short tasks a pod is busy in every other reading, and
each change is a write to the API server."""

PROTECTION = {KARPENTER: "true", CLUSTER_AUTOSCALER: "false"}


@dataclass(frozen=True, slots=True)
class Mark:
    """Annotations to write on one pod; None removes one. ``cost`` is the deletion cost that results."""

    pod: str
    uid: str
    annotations: Mapping[str, str | None]
    cost: int


@dataclass(frozen=True, slots=True)
class Writing:
    """A cost that was written a moment ago: what it was, what it is, and when (monotonic seconds)."""

    before: int
    after: int
    at: float


@dataclass(frozen=True, slots=True)
class MarkState:
    """What is remembered between cycles, by pod uid. Losing it costs time only: a new process waits for costs to settle."""

    started: float
    idle_since: Mapping[str, float] = field(default_factory=dict)
    written: Mapping[str, Writing] = field(default_factory=dict)

    def observed(self, running: Mapping[str, int], now: float) -> MarkState:
        """After a reading: tasks that each pod, by uid, runs. Pods that are gone are forgotten."""
        idle = {uid: self.idle_since.get(uid, now) for uid, count in running.items() if count == 0}
        written = {uid: each for uid, each in self.written.items() if uid in running and each.at > now - SETTLE}
        return MarkState(self.started, idle, written)

    def wrote(self, pod: Pod, mark: Mark, now: float) -> MarkState:
        """After a mark was written, or may have been: its reply was lost."""
        writing = Writing(read_cost(pod.annotations), mark.cost, now)
        return replace(self, written={**self.written, mark.uid: writing})


def marks_due(pods: Iterable[Pod], running: Mapping[str, int], state: MarkState, *, shrinking: bool, now: float) -> list[Mark]:
    """The marks to write now. ``shrinking``: replicas are about to be taken away, so costs have to be exact."""
    due = (_mark(pod, running.get(pod.uid, 0), state, shrinking, now) for pod in pods if pod.is_active)
    return [mark for mark in due if mark is not None]


def cautious(candidates: Iterable[Candidate], state: MarkState, now: float) -> list[Candidate]:
    """The candidates with costs as bad as the ReplicaSet controller may still see them."""
    return [_cautious(candidate, state.written.get(candidate.uid), now) for candidate in candidates]


def has_settled(state: MarkState, now: float) -> bool:
    """Whether costs that an earlier process may have written have settled, too."""
    return now - state.started >= SETTLE


def _mark(pod: Pod, running: int, state: MarkState, shrinking: bool, now: float) -> Mark | None:
    return _busy(pod, running, shrinking) if running else _idle(pod, state, shrinking, now)


def _busy(pod: Pod, running: int, shrinking: bool) -> Mark | None:
    stands, due = read_cost(pod.annotations), deletion_cost(running)
    is_marked = BUSY in pod.annotations
    if is_marked and (stands == due or not shrinking):
        return None
    annotations: dict[str, str | None] = {COST_ANNOTATION: str(due)}
    if not is_marked:
        added = {name: value for name, value in PROTECTION.items() if name not in pod.annotations}
        annotations |= {**added, BUSY: ",".join(added)}
    return Mark(pod.name, pod.uid, annotations, due)


def _idle(pod: Pod, state: MarkState, shrinking: bool, now: float) -> Mark | None:
    stands = read_cost(pod.annotations)
    if BUSY not in pod.annotations and (stands == 0 or not shrinking):
        return None
    idle_for = now - state.idle_since.get(pod.uid, now)
    if idle_for < IDLE_BEFORE_UNMARKED and not (shrinking and idle_for > 0):
        return None
    added = [name for name in pod.annotations.get(BUSY, "").split(",") if name in PROTECTION]
    return Mark(pod.name, pod.uid, dict.fromkeys([COST_ANNOTATION, BUSY, *added]), 0)


def _cautious(candidate: Candidate, writing: Writing | None, now: float) -> Candidate:
    if writing is None or now - writing.at >= SETTLE:
        return candidate
    costs = (writing.before, writing.after, candidate.cost)
    return replace(candidate, cost=max(costs) if candidate.is_idle else min(costs))
