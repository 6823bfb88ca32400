"""What a pool's owner has asked for, as the decision needs it.

The words are those of the HorizontalPodAutoscaler (``autoscaling/v2``, HPAScalingRules) and of KEDA's ScaledObject
(activation, cooldown, fallback, pause), so that their users find what they know. Nothing here has a default that scales:
without a setting there is no window, no limit a period, no tolerance. The defaults that users see are the pool's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from thunderagent.errors import InvalidInput


class PolicyKind(StrEnum):
    """What a policy's value counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class SelectPolicy(StrEnum):
    """Which policy holds where there are several: the one that allows most, the one that allows least, or no scaling."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class Policy:
    """At most ``value`` replicas, or per cent of the replicas, within any ``period_seconds``."""

    kind: PolicyKind
    value: int
    period_seconds: int

    def __post_init__(self) -> None:
        _require(self.value >= 1, "A policy's value must be at least 1")
        _require(self.period_seconds >= 1, "A policy's period must be at least 1 s")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How fast one direction may go.

    ``window_seconds``: the target is the least change that was asked for at any time in this window. ``policies``: none
    means no limit a period (HorizontalPodAutoscaler has built-in ones; a pool goes from 0 to what it needs in one step).
    """

    window_seconds: int = 0
    policies: tuple[Policy, ...] = ()
    select: SelectPolicy = SelectPolicy.MAX

    def __post_init__(self) -> None:
        _require(self.window_seconds >= 0, "A stabilization window must not be negative")

    @property
    def longest_period(self) -> int:
        """Seconds for which changes have to be remembered."""
        return max((policy.period_seconds for policy in self.policies), default=0)


@dataclass(frozen=True, slots=True)
class Fallback:
    """At least ``replicas`` once the backlog could not be read ``failed_reads`` times in a row."""

    failed_reads: int
    replicas: int

    def __post_init__(self) -> None:
        _require(self.failed_reads >= 1, "Fallback needs at least one failed read")
        _require(self.replicas >= 0, "Fallback replicas must not be negative")


@dataclass(frozen=True, slots=True)
class Pause:
    """What a person has put on hold. ``at_replicas`` pins the pool and wins over the others."""

    scale_in: bool = False
    scale_out: bool = False
    at_replicas: int | None = None

    @classmethod
    def everything(cls) -> Pause:
        return cls(scale_in=True, scale_out=True)

    def __bool__(self) -> bool:
        return self.scale_in or self.scale_out or self.at_replicas is not None


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """Everything :func:`~thunderagent.scaling.decide.decide` needs to know of a pool's wishes.

    ``tasks_per_replica``: tasks that one replica is meant to have in front of it. ``activation_threshold``: at 0
    replicas, this many tasks do not wake the pool yet. ``cooldown_seconds``: time without any work before the last
    replica goes. ``tolerance_percent``: a backlog this near to what the replicas are for changes nothing.
    """

    max_replicas: int
    min_replicas: int = 0
    tasks_per_replica: int = 1
    activation_threshold: int = 0
    cooldown_seconds: float = 0
    tolerance_percent: int = 0
    scale_up: Behaviour = field(default_factory=Behaviour)
    scale_down: Behaviour = field(default_factory=Behaviour)
    fallback: Fallback | None = None
    pause: Pause = field(default_factory=Pause)

    def __post_init__(self) -> None:
        _require(self.tasks_per_replica >= 1, "tasks_per_replica must be at least 1")
        _require(0 <= self.min_replicas <= self.max_replicas, "min_replicas must be 0 or more, and not above max_replicas")
        _require(self.max_replicas >= 1, "max_replicas must be at least 1")
        _require(self.activation_threshold >= 0, "activation_threshold must not be negative")
        _require(self.cooldown_seconds >= 0, "cooldown_seconds must not be negative")
        _require(0 <= self.tolerance_percent < 100, "tolerance_percent must be at least 0 and below 100")

    def bounded(self, replicas: int) -> int:
        """The nearest number between minReplicas and maxReplicas."""
        return min(self.max_replicas, max(self.min_replicas, replicas))

    @property
    def longest_window(self) -> float:
        return max(self.scale_up.window_seconds, self.scale_down.window_seconds)

    @property
    def longest_period(self) -> int:
        return max(self.scale_up.longest_period, self.scale_down.longest_period)


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise InvalidInput(f"{rule}.")
