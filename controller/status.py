"""The status of a pool, and when it is worth a write: when something has changed that a person would care about.

An idle pool writes nothing. What moves all the time, such as the backlog under load, is written now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.conditions import Outcome, conditions, rfc3339
from thunderagent.scaling import Observation

Status = dict[str, Any]

SOON = 15.0
"""Seconds between two writes for numbers that move all the time."""

LATER = 60.0
"""Seconds between two writes for words and ages alone."""

_AT_ONCE = ("observedGeneration", "desiredReplicas", "availableReplicas")
_SOON = (*_AT_ONCE, "replicas", "backlog", "waiting", "running", "expired", "cut")


@dataclass(frozen=True, slots=True)
class Notice:
    """An event on the pool. ``kind`` is Normal or Warning."""

    kind: str
    reason: str
    message: str


def new_status(outcome: Outcome, previous: Mapping[str, Any], now: float) -> Status:
    """The status after a cycle. Numbers that this cycle did not learn stay as they were; ``now`` is in epoch seconds."""
    status: Status = {**previous, "observedGeneration": outcome.generation}
    if outcome.workload is not None:
        status |= {"replicas": outcome.workload.existing, "availableReplicas": outcome.workload.available}
        status["desiredReplicas"] = outcome.workload.replicas if outcome.replicas is None else outcome.replicas
    if outcome.observation is not None:
        status |= _numbers(outcome.observation)
    if outcome.read_at is not None:
        status["lastReadTime"] = rfc3339(outcome.read_at)
    status["conditions"] = conditions(outcome, previous.get("conditions") or (), now)
    return status


def worth_writing(status: Mapping[str, Any], written: Mapping[str, Any], seconds_ago: float) -> bool:
    """Whether to write ``status``, with ``written`` in the cluster for ``seconds_ago``."""
    if _differ(_AT_ONCE, status, written) or _verdicts(status) != _verdicts(written):
        return True
    if bool(status.get("backlog")) and not written.get("backlog"):
        return True
    if seconds_ago < SOON:
        return False
    if _differ(_SOON, status, written) or _reasons(status) != _reasons(written):
        return True
    return seconds_ago >= LATER and (_words(status) != _words(written) or _differ(("oldestReadySeconds",), status, written))


def notices(status: Mapping[str, Any], written: Mapping[str, Any]) -> list[Notice]:
    """Events for what has changed between two statuses. A new pool that is in order has none."""
    before = _by_type(written)
    changed = [
        each for kind, each in _by_type(status).items() if kind in _TOLD and _verdict(each) != _verdict(before.get(kind, {}))
    ]
    return [_notice(condition) for condition in changed if condition["type"] in before or _is_trouble(condition)]


_TOLD = ("Ready", "Paused", "Fallback")


def _numbers(seen: Observation) -> Status:
    return {
        "backlog": seen.ready + seen.expired,
        "waiting": seen.waiting,
        "running": seen.running + sum(replica.running for replica in seen.replicas if not replica.is_staying),
        "expired": seen.expired,
        "oldestReadySeconds": int(seen.oldest_ready_age or 0),
        "cut": seen.cut,
    }


def _differ(names: tuple[str, ...], one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return any(one.get(name) != other.get(name) for name in names)


def _by_type(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {condition["type"]: condition for condition in status.get("conditions") or ()}


def _verdict(condition: Mapping[str, Any]) -> tuple[Any, Any]:
    """What of a condition is news: its status, and its reason while it is not as it should be."""
    reason = condition.get("reason") if condition and _is_trouble(condition) else None
    return condition.get("status"), reason


def _is_trouble(condition: Mapping[str, Any]) -> bool:
    return bool(condition["status"] == ("False" if condition["type"] == "Ready" else "True"))


def _verdicts(status: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: _verdict(each) if kind in _TOLD else each.get("status") for kind, each in _by_type(status).items()}


def _reasons(status: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: condition.get("reason") for kind, condition in _by_type(status).items()}


def _words(status: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: condition.get("message") for kind, condition in _by_type(status).items()}


def _notice(condition: Mapping[str, Any]) -> Notice:
    kind = "Warning" if _is_trouble(condition) and condition["type"] != "Paused" else "Normal"
    reason = condition["reason"] if condition["type"] != "Fallback" or kind == "Warning" else "FallbackEnded"
    return Notice(kind, str(reason), str(condition["message"]))
