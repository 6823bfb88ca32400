"""From a backlog to a number of replicas: pure functions, no input or output, no clock of their own.

A cycle of a pool, on one machine or on Kubernetes, reads like this::

    seen = observe(pool=..., counts=..., replicas=..., desired=...)   # or FailedRead(...)
    decision = decide(rules, state, seen, now)
    state = decision.state
    set_replicas(replicas_now(decision, candidates))

Start reading at :mod:`~thunderagent.scaling.decide`.
"""

from thunderagent.scaling.decide import Decision, ReasonCode, decide
from thunderagent.scaling.observe import Counts, FailedRead, Observation, Replica, ReplicaState, observe, owner_of
from thunderagent.scaling.rules import (
    Behaviour,
    Fallback,
    Pause,
    Policy,
    PolicyKind,
    ScalingRules,
    SelectPolicy,
)
from thunderagent.scaling.state import ScalingState, initial_state
from thunderagent.scaling.victims import (
    Candidate,
    Phase,
    deletion_cost,
    deletion_costs,
    read_cost,
    replicas_now,
    safe_to_remove,
    victim_order,
    victims,
)

__all__ = [
    "Behaviour",
    "Candidate",
    "Counts",
    "Decision",
    "FailedRead",
    "Fallback",
    "Observation",
    "Pause",
    "Phase",
    "Policy",
    "PolicyKind",
    "ReasonCode",
    "Replica",
    "ReplicaState",
    "ScalingRules",
    "ScalingState",
    "SelectPolicy",
    "decide",
    "deletion_cost",
    "deletion_costs",
    "initial_state",
    "observe",
    "owner_of",
    "read_cost",
    "replicas_now",
    "safe_to_remove",
    "victim_order",
    "victims",
]
