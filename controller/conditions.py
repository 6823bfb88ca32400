"""The conditions of a pool: Ready, Active, Paused and Fallback, from how a cycle ended.

All are worked out anew each cycle, so none can get stuck; only lastTransitionTime is carried over while a status stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controller.faults import Fault
from controller.pods import Workload
from thunderagent.scaling import Decision, Observation, Pause, ReasonCode

Condition = dict[str, Any]

_PAUSES = {
    ReasonCode.PAUSED: "Scaling is paused by an annotation; the replicas stay as they are.",
    ReasonCode.PAUSED_IN: "Scaling in is paused by an annotation; the pool may still grow.",
    ReasonCode.PAUSED_OUT: "Scaling out is paused by an annotation; the pool may still shrink.",
    ReasonCode.PAUSED_AT_REPLICAS: "The replicas are pinned by an annotation.",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a cycle ended. ``decision`` is None where none was made; ``observation`` where the backlog was not read.

    ``replicas`` is what the Deployment is asked for now. ``notes`` tell a person what else held the replicas back.
    """

    generation: int
    faults: tuple[Fault, ...] = ()
    decision: Decision | None = None
    observation: Observation | None = None
    workload: Workload | None = None
    replicas: int | None = None
    pause: Pause = Pause()  # noqa: RUF009 - a frozen value
    has_fallback: bool = False
    notes: tuple[str, ...] = ()
    read_at: float | None = None


def conditions(outcome: Outcome, previous: Iterable[Mapping[str, Any]], now: float) -> list[Condition]:
    """The four conditions. ``previous`` are those of the last status; ``now`` is in epoch seconds."""
    earlier = {condition["type"]: condition for condition in previous}
    fresh = (_ready(outcome), _active(outcome), _paused(outcome), _fallback(outcome))
    return [_dated(condition, earlier.get(condition["type"]), outcome.generation, now) for condition in fresh]


def rfc3339(now: float) -> str:
    """Epoch seconds as the API server writes them."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ready(outcome: Outcome) -> Condition:
    if not outcome.faults:
        return _condition("Ready", "True", "Scaling", "The backlog is read, and the replicas follow it.")
    return _condition("Ready", "False", outcome.faults[0].reason, _sentences(fault.message for fault in outcome.faults))


def _active(outcome: Outcome) -> Condition:
    decision, seen = outcome.decision, outcome.observation
    if decision is None or seen is None:
        words = "The backlog was not read." if decision is None else decision.sentence
        return _condition("Active", "Unknown", "BacklogUnknown", words)
    is_active = seen.work > 0 and ReasonCode.BELOW_ACTIVATION not in decision.reasons
    telling = [reason for reason in decision.reasons if reason not in _PAUSES]
    words = _sentences((decision.sentence, *outcome.notes))
    return _condition("Active", "True" if is_active else "False", str(telling[-1]), words)


def _paused(outcome: Outcome) -> Condition:
    code = pause_code(outcome.pause)
    if code is None:
        return _condition("Paused", "False", "NotPaused", "No annotation pauses the pool.")
    return _condition("Paused", "True", str(code), _PAUSES[code])


def pause_code(pause: Pause) -> ReasonCode | None:
    """Which pause holds; pinned replicas win over the others, as in the decision."""
    if pause.at_replicas is not None:
        return ReasonCode.PAUSED_AT_REPLICAS
    if pause.scale_in and pause.scale_out:
        return ReasonCode.PAUSED
    if pause.scale_in:
        return ReasonCode.PAUSED_IN
    return ReasonCode.PAUSED_OUT if pause.scale_out else None


def _fallback(outcome: Outcome) -> Condition:
    if outcome.decision is not None and outcome.decision.fallback:
        return _condition("Fallback", "True", "FallbackReplicas", outcome.decision.sentence)
    if not outcome.has_fallback:
        return _condition("Fallback", "False", "NotConfigured", "While the backlog cannot be read, the replicas stay.")
    return _condition("Fallback", "False", "NotNeeded", "The backlog is read, or has failed too few times so far.")


def _condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _dated(condition: Condition, earlier: Mapping[str, Any] | None, generation: int, now: float) -> Condition:
    same = earlier is not None and earlier.get("status") == condition["status"]
    since = earlier["lastTransitionTime"] if earlier is not None and same else rfc3339(now)
    return {**condition, "observedGeneration": generation, "lastTransitionTime": since}


def _sentences(messages: Iterable[str]) -> str:
    return " ".join(message if message.endswith(".") else f"{message}." for message in _present(messages))


def _present(messages: Iterable[str]) -> Sequence[str]:
    return [message for message in messages if message]
