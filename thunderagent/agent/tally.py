"""What an agent has done since its start, told to the pool on this machine that started it.

An agent on Kubernetes is scraped. One of a local pool may serve no port, so it sends its counts to the socket on which it says
that it is ready. sd_notify(3) leaves names that begin with ``X_`` to programs, and service managers pass over them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from thunderagent.metrics import AgentMetrics, error_name

NAME = "X_THUNDERAGENT_TALLY"

EVERY = 2.0
"""Seconds between two looks at whether there is something new to tell."""

ERRORS_TOLD = 20
"""Errors that are told, those that were met most often; their names are cut to :data:`NAME_CHARS`."""

NAME_CHARS = 120


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts since the start: runs by outcome, with them tasks that were abandoned or
    buried without one, runs that ended with an error by its name, and waits by the upper bound of their
    bucket in seconds, each bucket with all below it."""

    tasks: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    waits: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: Tally) -> Tally:
        return Tally(_sum(self.tasks, other.tasks), _sum(self.errors, other.errors), _sum(self.waits, other.waits))


def tally_of(metrics: AgentMetrics) -> Tally:
    """What the metrics of an agent say."""
    tasks = {labels["outcome"]: value for labels, value in metrics.samples("thunderagent_tasks_total")}
    looks = {labels["result"]: value for labels, value in metrics.samples("thunderagent_dependency_looks_total")}
    tasks["abandoned"] = looks["abandoned"]
    tasks["buried"] = sum(value for _, value in metrics.samples("thunderagent_buried_total"))
    waits = {labels["le"]: value for labels, value in metrics.samples("thunderagent_task_wait_seconds_bucket")}
    errors: Counter[str] = Counter()
    for labels, value in metrics.samples("thunderagent_task_errors_total"):
        errors[error_name(labels)[:NAME_CHARS]] += int(value)
    return Tally(tasks, dict(errors.most_common(ERRORS_TOLD)), waits)


def as_state(tally: Tally) -> str:
    """The line for the socket."""
    return f"{NAME}={json.dumps({'tasks': tally.tasks, 'errors': tally.errors, 'waits': tally.waits}, separators=(',', ':'))}"


def from_state(line: str) -> Tally | None:
    """The tally of a line from the socket; None for every other line."""
    name, _, text = line.partition("=")
    return Tally(**json.loads(text)) if name == NAME else None  # from our own agent: nobody else has the socket's path


def _sum(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in {**one, **other}}
