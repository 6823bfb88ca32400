"""Rules between the fields of a pool, each once in Python and once in CEL, side by side.

A rule belongs to a struct of :mod:`thunderagent.pool.spec` and sees that struct as ``self``. Python holds it when a file or
a resource is parsed; the API server holds the CEL text, which goes into the CRD beside the struct's schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from thunderagent.pool.spec import Agent, Pool, Queue, Retry, Scaling, Spec, Waits

POOL_NAME = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""Narrower than the API server's own rule for names by its length and by dots; the CEL text adds just these two."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``field``: the one to name in the error, as it is spelled outside; empty: the struct itself.

    ``holds`` is None for a rule about a change, which only the API server sees. ``on_kubernetes``: the rule is for
    resources; a file for the local pool may break it.
    """

    field: str
    message: str
    holds: Callable[[Any], bool] | None
    cel: str
    on_kubernetes: bool = False


def _named(self: Pool) -> bool:
    return re.fullmatch(POOL_NAME, self.metadata.name) is not None


def _all_differ(names: Iterable[str]) -> bool:
    names = list(names)
    return len(set(names)) == len(names)


def _type_timeouts_within_drain(self: Agent) -> bool:
    return all((kind.timeout_seconds or 0) <= self.drain_seconds for kind in self.task_types)


RULES: dict[type[Struct], tuple[Rule, ...]] = {
    Pool: (
        Rule(
            "metadata.name",
            "must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at either end: it is part of lockOwner",
            _named,
            "size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",
        ),
    ),
    Queue: (
        Rule("table", "cannot be changed; make another pool for another table", None, "self.table == oldSelf.table"),
        Rule(
            "taskTypes",
            "must not name a task type twice",
            lambda self: _all_differ(self.task_types),
            "self.taskTypes.all(one, self.taskTypes.exists_one(other, other == one))",
        ),
    ),
    Scaling: (
        Rule(
            "minReplicas",
            "must not be above maxReplicas",
            lambda self: self.min_replicas <= self.max_replicas,
            "self.minReplicas <= self.maxReplicas",
        ),
        Rule(
            "fallback.replicas",
            "must not be above maxReplicas",
            lambda self: self.fallback is None or self.fallback.replicas <= self.max_replicas,
            "!has(self.fallback) || self.fallback.replicas <= self.maxReplicas",
        ),
    ),
    Agent: (
        Rule(
            "renewSeconds",
            "must be at most half of leaseSeconds, so that one renewal may fail",
            lambda self: self.renew_seconds * 2 <= self.lease_seconds,
            "self.renewSeconds * 2 <= self.leaseSeconds",
        ),
        Rule(
            "drainSeconds",
            "must be at least taskTimeoutSeconds, so that a stopped agent can finish what it runs",
            lambda self: self.drain_seconds >= self.task_timeout_seconds,
            "self.drainSeconds >= self.taskTimeoutSeconds",
        ),
        Rule(
            "drainSeconds",
            "must be at least timeoutSeconds of every task type, so that a stopped agent can finish what it runs",
            _type_timeouts_within_drain,
            "self.taskTypes.all(kind, !has(kind.timeoutSeconds) || kind.timeoutSeconds <= self.drainSeconds)",
        ),
        Rule(
            "taskTypes",
            "must not have two entries of one name",
            lambda self: _all_differ(kind.name for kind in self.task_types),
            "self.taskTypes.all(one, self.taskTypes.exists_one(other, other.name == one.name))",
        ),
        Rule(
            "env",
            "must not have two entries of one name",
            lambda self: _all_differ(variable.name for variable in self.env),
            "self.env.all(one, self.env.exists_one(other, other.name == one.name))",
        ),
    ),
    Waits: (
        Rule(
            "",
            "must not shrink from busySeconds to quietSeconds to idleSeconds",
            lambda self: self.busy_seconds <= self.quiet_seconds <= self.idle_seconds,
            "self.busySeconds <= self.quietSeconds && self.quietSeconds <= self.idleSeconds",
        ),
    ),
    Retry: (
        Rule(
            "baseSeconds",
            "must not be above capSeconds",
            lambda self: self.base_seconds <= self.cap_seconds,
            "self.baseSeconds <= self.capSeconds",
        ),
    ),
    Spec: (
        Rule(
            "",
            "has both template and targetRef; they exclude each other: a pool renders its Deployment or scales an existing one",
            lambda self: self.template is None or self.target_ref is None,
            "!(has(self.template) && has(self.targetRef))",
        ),
        Rule(
            "",
            "needs a template for the pods, or a targetRef to an existing Deployment",
            lambda self: self.template is not None or self.target_ref is not None,
            "has(self.template) || has(self.targetRef)",
            on_kubernetes=True,
        ),
    ),
}
