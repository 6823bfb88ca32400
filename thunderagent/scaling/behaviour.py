"""The arithmetic of HorizontalPodAutoscaler's ``behavior``: stabilization windows, and policies over a period.

Source: kubernetes/kubernetes, pkg/controller/podautoscaler/horizontal.go, since 1.22: stabilizeRecommendationWithBehaviors,
getReplicasChangePerPeriod, calculateScaleUpLimitWithScalingRules, calculateScaleDownLimitWithBehaviors and
convertDesiredReplicasWithBehaviorRate. Two things differ: without policies there is no limit, and a policy that would
allow nothing at 0 replicas allows one (HorizontalPodAutoscaler does not work at 0, KEDA goes to 1 by itself).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from thunderagent.scaling.rules import Behaviour, Policy, PolicyKind, SelectPolicy
from thunderagent.scaling.state import Change


def stabilized(current: int, proposed: int, recommended: Mapping[int, float], now: float, up: float, down: float) -> int:
    """The number nearest to ``current`` that the recommendations of both windows (seconds) agree to.

    Growing needs every recommendation of the ``up`` window, shrinking every one of the ``down`` window.
    """
    least = min([proposed, *(count for count, at in recommended.items() if at > now - up)])
    most = max([proposed, *(count for count, at in recommended.items() if at > now - down)])
    return min(max(current, least), most)


def limit_up(current: int, changes: Iterable[Change], behaviour: Behaviour, now: float) -> int | None:
    """The most replicas that the policies allow now, never below ``current``; None where there is no limit."""
    if behaviour.select is SelectPolicy.DISABLED:
        return current
    if not behaviour.policies:
        return None
    changes = tuple(changes)
    allowed = [_grown(_at_period_start(current, changes, policy, now), policy) for policy in behaviour.policies]
    return max(current, min(allowed) if behaviour.select is SelectPolicy.MIN else max(allowed))


def limit_down(current: int, changes: Iterable[Change], behaviour: Behaviour, now: float) -> int | None:
    """The fewest replicas that the policies allow now, never above ``current``; None where there is no limit."""
    if behaviour.select is SelectPolicy.DISABLED:
        return current
    if not behaviour.policies:
        return None
    changes = tuple(changes)
    allowed = [_shrunk(_at_period_start(current, changes, policy, now), policy) for policy in behaviour.policies]
    return min(current, max(allowed) if behaviour.select is SelectPolicy.MIN else min(allowed))


def _at_period_start(current: int, changes: Iterable[Change], policy: Policy, now: float) -> int:
    return current - sum(change.by for change in changes if change.at > now - policy.period_seconds)


def _grown(start: int, policy: Policy) -> int:
    if policy.kind is PolicyKind.PODS:
        return start + policy.value
    return max(1, -(-start * (100 + policy.value) // 100))  # rounded up, in whole numbers: 1.1 * 10 is 11.000000000000002


def _shrunk(start: int, policy: Policy) -> int:
    if policy.kind is PolicyKind.PODS:
        return start - policy.value
    return start * (100 - policy.value) // 100
