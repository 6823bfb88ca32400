"""What keeps a pool from being scaled, or its pods from running, each with a stable reason and words for a person.

The first fault of a cycle becomes the reason of the condition Ready; the words of all of them its message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from controller.errors import ClusterUnavailable, NotPermitted, ObjectChanged, Refused
from controller.pods import Pod, Workload
from thunderagent.errors import (
    IndexMissing,
    InvalidInput,
    StoreAccessDenied,
    StoreRejected,
    StoreThrottled,
    StoreUnavailable,
    TableMissing,
    ThunderAgentError,
)

EXCEEDED_QUOTA = "exceeded quota"
"""In the words with which the API server's quota admission refuses an object."""

SHOWN_CHARS = 1000
"""Characters of somebody else's words that a fault repeats."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``reason`` is a CamelCase word that programs may rely on."""

    reason: str
    message: str


def read_fault(error: Exception, region: str | None) -> Fault:
    """Why the backlog could not be read. A table that is missing may well be in another region, so the region is named.

    A table that hangs ends some readings by our limit and some by those of their calls: one reason for both, or each cycle
    would be news.
    """
    words = _cut(str(error))
    if isinstance(error, TableMissing):
        return Fault("TableMissing", f"{words} Looked in {region or 'the region of the operator'}.")
    if isinstance(error, IndexMissing):
        return Fault("IndexBuilding" if "backfilling" in words.lower() else "IndexMissing", words)
    if isinstance(error, StoreAccessDenied):
        return Fault(_access_reason(words), words)
    return Fault(_read_reason(error), words or type(error).__name__)


def cluster_fault(error: ThunderAgentError) -> Fault:
    """Why Kubernetes, or the pool itself, stopped a cycle."""
    reasons: dict[type[ThunderAgentError], str] = {
        InvalidInput: "InvalidSpec",
        Refused: "TemplateRefused",
        NotPermitted: "OperatorNotPermitted",
        ObjectChanged: "ObjectChanged",
        ClusterUnavailable: "ClusterUnavailable",
    }
    if isinstance(error, Refused) and EXCEEDED_QUOTA in str(error):
        return Fault("QuotaExceeded", _cut(str(error)))
    reason = next((reason for kind, reason in reasons.items() if isinstance(error, kind)), "ClusterError")
    return Fault(reason, _cut(str(error)))


def pod_faults(workload: Workload, pods: Iterable[Pod]) -> list[Fault]:
    """Why pods are not created, or do not become ready."""
    faults = []
    failure = workload.conditions.get("ReplicaFailure", {})
    if failure.get("status") == "True":
        words = str(failure.get("message", ""))
        faults.append(Fault("QuotaExceeded" if EXCEEDED_QUOTA in words else "PodsRefused", _cut(words)))
    troubles = [pod.trouble for pod in pods if pod.trouble is not None and pod.is_active]
    counts = Counter(trouble.reason for trouble in troubles)
    words_of = {trouble.reason: trouble.message for trouble in troubles}
    for reason, count in counts.most_common():
        faults.append(Fault(reason, _cut(f"{count} {'pod' if count == 1 else 'pods'}, for one: {words_of[reason]}")))
    return faults


def rival_fault(workload: Workload, wanted: int, theirs: int | None) -> Fault:
    """Somebody else writes the replicas."""
    who = workload.replicas_writer or "another program"
    return Fault(
        "Conflict",
        f"{who} keeps setting the replicas of Deployment {workload.name}, last to {theirs}; the pool would have {wanted} and "
        "leaves them alone until nobody else has written them for 5 minutes. Remove the other autoscaler, or replicas from "
        "the files that are applied.",
    )


def _access_reason(words: str) -> str:
    if "Expired" in words or "expired" in words:
        return "CredentialsExpired"
    return "CredentialsMissing" if words.startswith("No AWS credentials") else "AccessDenied"


def _read_reason(error: Exception) -> str:
    if isinstance(error, StoreThrottled):
        return "TableThrottled"
    if isinstance(error, StoreUnavailable):
        return "TableUnreachable"
    if isinstance(error, StoreRejected):
        return "ReadRefused"
    if isinstance(error, InvalidInput):
        return "RegionMissing"
    return "ReadFailed" if isinstance(error, ThunderAgentError) else "InternalError"


def _cut(words: str) -> str:
    words = " ".join(words.split())
    return words if len(words) <= SHOWN_CHARS else f"{words[:SHOWN_CHARS]}…"
