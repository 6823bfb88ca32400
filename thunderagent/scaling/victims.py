"""Which replicas go first when a Deployment is lowered, and how many can go without touching a running task.

A Deployment cannot be told which pod to remove; its ReplicaSet chooses. So the controller writes a deletion cost on each
pod, works out the ReplicaSet's order from what the pods look like, and lowers by as many as the first of that order are
idle. The local pool, which chooses itself, uses the same functions.

Source of the order: kubernetes/kubernetes, pkg/controller/controller_utils.go, ActivePodsWithRanks.Less, and
getPodsRankedByRelatedPodsOnSameNode of pkg/controller/replicaset; of the cost's form: GetDeletionCostFromPodAnnotations of
pkg/apis/core/helper.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cmp_to_key
from itertools import takewhile

from thunderagent.scaling.decide import Decision

COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
MAX_COST = 2**31 - 1


class Phase(StrEnum):
    """The phases that an active pod can be in."""

    PENDING = "Pending"
    UNKNOWN = "Unknown"
    RUNNING = "Running"


_PHASE_RANK = {Phase.PENDING: 0, Phase.UNKNOWN: 1, Phase.RUNNING: 2}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An active replica (not terminating, not ended) as the ReplicaSet sees it, and the tasks that it runs.

    ``node``: empty while the pod is unassigned. ``cost``: as it stands on the pod, not as it is about to be. Times are
    epoch seconds; ``ready_since`` is None for a pod that never was ready.
    """

    name: str
    running: int = 0
    node: str = "node"
    phase: Phase = Phase.RUNNING
    ready: bool = True
    cost: int = 0
    ready_since: float | None = None
    restarts: int = 0
    created: float | None = None
    uid: str = ""

    @property
    def is_idle(self) -> bool:
        return self.running == 0


def deletion_cost(running: int) -> int:
    """The cost of a replica that runs so many tasks: 0 for none, then one more for each doubling.

    Any idle one goes before any busy one, and a slightly busy one before a very busy one; yet not every claim is a write
    to the API server, which Kubernetes asks not to be burdened with costs that change all the time.
    """
    return min(running.bit_length(), MAX_COST)


def deletion_costs(candidates: Iterable[Candidate]) -> dict[str, int]:
    """The costs to write, by name: only those that differ from what stands on the pod. Empty: the costs have settled."""
    costs = {candidate.name: (candidate.cost, deletion_cost(candidate.running)) for candidate in candidates}
    return {name: due for name, (stands, due) in costs.items() if stands != due}


def read_cost(annotations: Mapping[str, str]) -> int:
    """The cost on a pod as Kubernetes reads it: 0 where it is absent or not a plain 32-bit number (``+5``, ``05``)."""
    text = annotations.get(COST_ANNOTATION, "")
    if not re.fullmatch(r"-[0-9]+|0|[1-9][0-9]*", text):
        return 0
    cost = int(text)
    return cost if -MAX_COST - 1 <= cost <= MAX_COST else 0


def victim_order(candidates: Sequence[Candidate], now: float) -> list[Candidate]:
    """The candidates in the order in which their ReplicaSet would remove them at ``now`` (epoch seconds).

    Unassigned before assigned; pending before unknown before running; not ready before ready; lower deletion cost; more
    active pods of the set on the same node; ready for a shorter time; more restarts; created later. The two ages are
    compared by powers of two (feature LogarithmicScaleDown, on since 1.22), and then by uid.
    """
    nodes = Counter(candidate.node for candidate in candidates)

    def compare(one: Candidate, other: Candidate) -> int:
        keys = [(*_settled_key(pod), -nodes[pod.node]) for pod in (one, other)]
        if keys[0] != keys[1]:
            return -1 if keys[0] < keys[1] else 1
        return _compare_ages(one, other, now)

    return sorted(candidates, key=cmp_to_key(compare))


def safe_to_remove(candidates: Iterable[Candidate]) -> int:
    """How many can be removed so that every victim is idle, whichever the ReplicaSet takes among equals.

    Below the deletion cost the order depends on ages by the ReplicaSet's own clock and on what it last saw of the nodes, so
    nothing is built on it: among pods of one cost the busy ones are taken to go first. Once costs have settled, busy and
    idle never share one.
    """
    worst_case = sorted(candidates, key=lambda candidate: (_settled_key(candidate), candidate.is_idle))
    return sum(1 for _ in takewhile(lambda candidate: candidate.is_idle, worst_case))


def replicas_now(decision: Decision, candidates: Sequence[Candidate]) -> int:
    """The replicas to ask for now: the target when that is not lower, else as near to it as idle victims allow.

    ``candidates`` are all active replicas. They may be more than were asked for (a removal is under way and takes the first
    victims as well) or fewer (pods that are not created yet are lowered freely).
    """
    if decision.target >= decision.current:
        return decision.target
    keep = len(candidates) - safe_to_remove(candidates)
    return min(decision.current, max(decision.target, keep))


def victims(candidates: Sequence[Candidate], replicas: int, now: float) -> list[Candidate]:
    """For who removes replicas itself: those to stop so that ``replicas`` stay, never a busy one."""
    excess = max(0, len(candidates) - replicas)
    return [candidate for candidate in victim_order(candidates, now) if candidate.is_idle][:excess]


def _settled_key(candidate: Candidate) -> tuple[bool, int, bool, int]:
    return (bool(candidate.node), _PHASE_RANK[candidate.phase], candidate.ready, candidate.cost)


def _compare_ages(one: Candidate, other: Candidate, now: float) -> int:
    if one.ready and other.ready and one.ready_since != other.ready_since:
        return _compare_times(one, other, one.ready_since, other.ready_since, now)
    if one.restarts != other.restarts:
        return other.restarts - one.restarts
    if one.created != other.created:
        return _compare_times(one, other, one.created, other.created, now)
    return 0


def _compare_times(one: Candidate, other: Candidate, began: float | None, other_began: float | None, now: float) -> int:
    if began is None or other_began is None:
        return -1 if began is None else 1
    difference = _age_rank(now - began) - _age_rank(now - other_began)
    return difference or (-1 if one.uid < other.uid else 1)


def _age_rank(seconds: float) -> int:
    """The whole power of two of the age in nanoseconds; -1 for no age at all."""
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1
