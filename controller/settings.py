"""The operator's settings, declared as those of the agent are (:mod:`thunderagent.settings`)."""

from __future__ import annotations

from dataclasses import dataclass

from controller.allowed import Allowance, parse_allowed
from thunderagent.errors import InvalidSettings
from thunderagent.settings import check, setting


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What the operator needs to know beside what the pools say. Times in seconds."""

    namespaces: str = setting(
        "", "Namespaces to serve, separated by commas; unset, all of them.", env="THUNDERAGENT_OPERATOR_NAMESPACES"
    )
    own_namespace: str = setting(
        "default", "Namespace of the operator itself, where its Lease is.", env="THUNDERAGENT_OPERATOR_NAMESPACE"
    )
    identity: str = setting("", "Name of this replica in the Lease; unset, the host's name.", env="THUNDERAGENT_POD_NAME")
    election: bool = setting(
        True,
        "Whether replicas of the operator elect a leader. Without, there must never be two.",
        env="THUNDERAGENT_OPERATOR_ELECTION",
    )
    lease_name: str = setting("thunderagent-operator", "Name of the Lease.", env="THUNDERAGENT_OPERATOR_LEASE")
    allowed: str = setting(
        "",
        'Tables, regions and endpoints that pools may name, by namespace, as JSON: [{"namespaces": ["team-a"], "tables": '
        '["team-a-*"], "regions": ["*"], "endpoints": []}]. Unset: any table and region, no endpoint.',
        env="THUNDERAGENT_OPERATOR_ALLOWED",
    )

    list_seconds: float = setting(
        30.0,
        "Time between two listings of all pools: what events have missed is found then.",
        above=0,
        env="THUNDERAGENT_OPERATOR_LIST_SECONDS",
    )
    cycle_limit: float = setting(
        60.0,
        "Time that one cycle of a pool may take before it is given up.",
        above=0,
        env="THUNDERAGENT_OPERATOR_CYCLE_LIMIT",
    )
    stall: float = setting(
        60.0,
        "Time beyond its poll and the limit of a cycle without the end of a cycle, after which the operator calls itself "
        "unhealthy and is restarted.",
        above=0,
        env="THUNDERAGENT_OPERATOR_STALL",
    )
    read_threads: int = setting(
        64,
        "Tables that are read at once. A table that hangs holds one of them.",
        minimum=1,
        maximum=1000,
        env="THUNDERAGENT_OPERATOR_READ_THREADS",
    )
    api_threads: int = setting(
        16, "Calls to the API server at once.", minimum=1, maximum=256, env="THUNDERAGENT_OPERATOR_API_THREADS"
    )
    port: int = setting(
        8080,
        "Port of /healthz, /readyz and /metrics; 0: a free one.",
        minimum=0,
        maximum=65535,
        env="THUNDERAGENT_OPERATOR_PORT",
    )
    host: str = setting("0.0.0.0", "Address that they listen on.", env="THUNDERAGENT_OPERATOR_HOST")

    def __post_init__(self) -> None:
        check(self)
        self.allowances()
        if any(not name for name in self.served_namespaces()):
            raise InvalidSettings("namespaces must be names separated by commas, without an empty one between them.")

    def served_namespaces(self) -> tuple[str, ...]:
        """The namespaces by name; empty: all of them."""
        return tuple(name.strip() for name in self.namespaces.split(",")) if self.namespaces.strip() else ()

    def allowances(self) -> tuple[Allowance, ...]:
        """Raises InvalidSettings."""
        return parse_allowed(self.allowed)
