"""Every setting, declared once: its default, its environment variable, its bounds and the reason for it.

Settings are frozen dataclasses, read from the environment once, at the edge (:func:`from_environment`). The flags of the
command line and ``docs/settings.md`` are made from the same declarations.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from thunderagent.errors import InvalidSettings
from thunderagent.task import DEFAULT_QUEUE

ENV_PREFIX = "THUNDERAGENT_"

S = TypeVar("S")


def setting(
    default: Any,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    env: str | None = None,
) -> Any:
    """A field of a settings dataclass. ``doc`` gives unit and reason; ``above`` is an exclusive lower bound."""
    metadata = {"doc": doc, "minimum": minimum, "maximum": maximum, "above": above, "env": env}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Where the task table is and how it is spoken to."""

    table: str = setting("TaskTable", "Name of the task table.")
    index: str = setting("status-createdAt-index", "Name of the index over status and createdAt, part of the published format.")
    region: str | None = setting(None, "AWS region; unset, the AWS configuration decides.", env="AWS_REGION")
    endpoint: str | None = setting(None, "URL of a DynamoDB other than the region's own, such as `thunderagent dynamodb`.")
    connect_timeout: float = setting(3.0, "Seconds to wait for a connection to DynamoDB.", above=0)
    read_timeout: float = setting(
        10.0, "Seconds to wait for a reply. boto3's own 60 s would hold a slot for a minute after a lost packet.", above=0
    )
    attempts: int = setting(
        3, "Tries of one call inside boto3, before ThunderAgent backs off by itself.", minimum=1, maximum=10
    )
    connections: int = setting(
        32, "Connections kept open; more calls at once than this open and drop extra ones.", minimum=1, maximum=1000
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What an application's TaskQueue needs beside the table."""

    max_retry: int = setting(
        3, "Retries allowed where enqueue does not say: at most four charged runs.", minimum=0, maximum=1000
    )
    keep_days: float = setting(
        14.0, "Days that a task stays in the table after it ended; DynamoDB's TTL then removes it.", above=0
    )
    parallel: int = setting(16, "Writes under way at once in enqueue_many and redrive of many.", minimum=1, maximum=256)

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How an agent polls, holds, runs and drains. Times in seconds."""

    pool: str = setting("", "Name of the pool this agent belongs to; first part of lockOwner, and a metric label.")
    queue: str = setting(DEFAULT_QUEUE, "Queue of the table to take tasks from.")
    task_types: str = setting("", "Task types to claim, separated by commas; unset, all that the handler takes.")

    batch: int = setting(10, "Candidates read by one poll. 30 is common under a steady backlog.", minimum=1, maximum=1000)
    wait_busy: float = setting(1.0, "Wait after a poll that found nothing, the first time.", above=0)
    wait_quiet: float = setting(5.0, "Wait after a second poll in a row that found nothing.", above=0)
    wait_idle: float = setting(10.0, "Wait after each further poll that found nothing.", above=0)
    start_delay_min: float = setting(
        1.0, "Least wait before the first poll, so that agents started together spread.", minimum=0
    )
    start_delay_max: float = setting(3.0, "Longest wait before the first poll.", minimum=0)
    expired_look: float = setting(30.0, "Mean time between two looks for expired leases of others (jittered by half).", above=0)

    lease: float = setting(300.0, "How long a claim holds without a renewal.", minimum=2)
    renew: float = setting(60.0, "Time between renewals of a lease; several fit in one lease, so that some may fail.", above=0)
    checkpoint: float = setting(5.0, "Least time between two writes of one task's saved progress.", minimum=0)

    processes: int = setting(1, "Child processes that run handlers.", minimum=1, maximum=512)
    threads: int = setting(
        1, "Handlers at once in one child. Above 1, stopping one of them stops its siblings.", minimum=1, maximum=512
    )
    async_tasks: int = setting(10, "Async handlers at once in one child.", minimum=1, maximum=10000)
    recycle_tasks: int = setting(0, "Tasks after which a child is replaced, for handlers that leak; 0: never.", minimum=0)
    memory_mb: int = setting(
        0,
        "Memory limit of one child in MiB of address space; 0: none. Most kubelets kill a whole container for one process "
        "over the container's own limit, so set this below it.",
        minimum=0,
    )
    child_start: float = setting(60.0, "Time a child may take to import the handler before it is given up.", above=0)

    timeout: float = setting(0.0, "Time one run of a task may take where its type does not say; 0: no limit.", minimum=0)
    retry_base: float = setting(2.0, "First step of the retry delay: a random time up to base x 2^retries.", above=0)
    retry_cap: float = setting(300.0, "Longest retry delay.", above=0)
    types: str = setting(
        "", 'Settings of single task types as JSON: {"report": {"slots": 2, "rate": 5, "timeout": 600, "retry_base": 1}}.'
    )

    dependency_wait_max: float = setting(30.0, "Longest time between two looks at a waiting task's dependencies.", above=0)
    dependency_missing: float = setting(
        300.0, "Time after which a dependency that is not in the table counts as missing.", minimum=0
    )
    dependency_timeout: float = setting(86400.0, "Time a task may wait for its dependencies; cycles end by it too.", above=0)

    drain: float = setting(600.0, "Time running tasks get to finish after SIGTERM. At least the longest time-out.", minimum=0)
    stop_grace: float = setting(
        5.0, "Time between asking a handler to stop (SIGTERM, cancellation) and killing its child.", minimum=0
    )
    keep_days: float = setting(
        14.0, "Days that a task stays in the table after it ended; DynamoDB's TTL then removes it.", above=0
    )

    port: int = setting(9464, "Port of /healthz and /metrics; 0: a free one; -1: none.", minimum=-1, maximum=65535)
    host: str = setting("0.0.0.0", "Address that /healthz and /metrics listen on.")
    stall: float = setting(60.0, "Time without a turn of the poll loop after which /healthz fails.", above=0)

    def __post_init__(self) -> None:
        check(self)
        _require(self.renew * 2 <= self.lease, "renew", f"must be at most half of lease ({self.lease:g} s)")
        _require(self.start_delay_min <= self.start_delay_max, "start_delay_min", "must not be above start_delay_max")
        _require(self.wait_busy <= self.wait_quiet <= self.wait_idle, "wait_busy", "waits must not shrink: busy, quiet, idle")
        _require(self.retry_base <= self.retry_cap, "retry_base", "must not be above retry_cap")
        _require(self.timeout <= self.drain, "drain", f"must be at least the time-out of a task ({self.timeout:g} s)")

    @property
    def poll_waits(self) -> tuple[float, float, float]:
        return (self.wait_busy, self.wait_quiet, self.wait_idle)


def environment_variable(field: dataclasses.Field[Any]) -> str:
    """The environment variable that a setting is read from."""
    return field.metadata.get("env") or ENV_PREFIX + field.name.upper()


def from_environment(cls: type[S], environ: Mapping[str, str], **given: Any) -> S:
    """Build settings: what is ``given`` and not None wins, then the environment, then the default.

    Raises InvalidSettings, naming the variable, for text that is not of the setting's type.
    """
    kinds = typing.get_type_hints(cls)
    values = {name: value for name, value in given.items() if value is not None}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        text = environ.get(environment_variable(field), "")
        if field.name not in values and text:
            values[field.name] = parse(text, kinds[field.name], environment_variable(field))
    return cls(**values)


def parse(text: str, kind: Any, name: str) -> Any:
    """The text as the type of a setting. Raises InvalidSettings naming the setting."""
    kind = base_type(kind)
    try:
        return text if kind is str else kind(text)
    except ValueError:
        raise InvalidSettings(f"{name} is {text!r}, which is not {_NOUNS[kind]}.") from None


def base_type(kind: Any) -> type:
    """str, int or float, also from an optional type."""
    if isinstance(kind, types.UnionType):
        (kind,) = (arg for arg in typing.get_args(kind) if arg is not types.NoneType)
    return typing.cast("type", kind)


def check(settings: Any) -> None:
    """Hold every field against the bounds it declares. Raises InvalidSettings for the first that is out of them."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, int | float):
            _check_bounds(field, value)


def _check_bounds(field: dataclasses.Field[Any], value: float) -> None:
    bounds = field.metadata
    if bounds["minimum"] is not None:
        _require(value >= bounds["minimum"], field.name, f"is {value:g}; it must be at least {bounds['minimum']:g}")
    if bounds["above"] is not None:
        _require(value > bounds["above"], field.name, f"is {value:g}; it must be above {bounds['above']:g}")
    if bounds["maximum"] is not None:
        _require(value <= bounds["maximum"], field.name, f"is {value:g}; it must be at most {bounds['maximum']:g}")


def _require(condition: bool, name: str, rule: str) -> None:
    if not condition:
        raise InvalidSettings(f"The setting {name} {rule} ({ENV_PREFIX}{name.upper()}, --{name.replace('_', '-')}).")


_NOUNS = {int: "a whole number", float: "a number"}
