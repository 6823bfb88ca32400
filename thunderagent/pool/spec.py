"""The fields of a ``ThunderAgentPool`` (``thunderagent.dev/v1alpha1``): the one definition of them.

The local pool and the controller parse with these structs, and the CRD's schema is generated from them. Each field carries
its bounds and the description that ``kubectl explain`` prints; rules between fields stand in
:mod:`thunderagent.pool.rules`. Times are whole seconds with the unit in the name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from thunderagent.pool.annotations import pause_of
from thunderagent.pool.template import container_named, literal_env
from thunderagent.scaling import rules
from thunderagent.scaling.rules import Pause, PolicyKind, ScalingRules, SelectPolicy
from thunderagent.task import DEFAULT_QUEUE

API_VERSION = "thunderagent.dev/v1alpha1"
KIND = "ThunderAgentPool"

MAX_REPLICAS = 1000
"""The largest maxReplicas: the read of one poll is bounded by maxReplicas x tasksPerReplica."""

DAY = 86400

TaskTypeName = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:/-]+$")]
TableName = r"^[a-zA-Z0-9_.-]+$"
QUEUE_NAME = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"

_BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
"""Marks a list whose items are told apart by their name, so that several field managers can each own some."""


class _Fields(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """What all structs of the pool share: immutable, camelCase outside, no unknown fields."""


class Queue(_Fields, frozen=True, kw_only=True):
    """The task table."""

    table: Annotated[
        str,
        Meta(
            min_length=3,
            max_length=255,
            pattern=TableName,
            description="Name of the task table. Cannot be changed: make another pool for another table.",
        ),
    ]
    index: Annotated[
        str,
        Meta(
            min_length=3,
            max_length=255,
            pattern=TableName,
            description="Name of the index over status and createdAt.",
        ),
    ] = "status-createdAt-index"
    region: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=32,
                pattern=r"^[a-z0-9-]+$",
                description="AWS region of the table. Unset, the AWS configuration around the process decides.",
            ),
        ]
        | None
    ) = None
    endpoint: (
        Annotated[
            str,
            Meta(
                max_length=2048,
                pattern=r"^https?://[^\s]+$",
                description="URL of a DynamoDB other than the region's own. The operator refuses it unless told to allow it.",
            ),
        ]
        | None
    ) = None
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            pattern=QUEUE_NAME,
            description="Queue of the table that this pool serves; `thunderagent table migrate` adds one.",
        ),
    ] = DEFAULT_QUEUE
    task_types: Annotated[
        tuple[TaskTypeName, ...],
        Meta(
            max_length=64,
            description="Task types that this pool runs, and whose tasks it scales for. Empty: all, also tasks without a type.",
            extra_json_schema={"x-kubernetes-list-type": "set"},
        ),
    ] = ()


class Policy(_Fields, frozen=True, kw_only=True):
    """How far the replicas may move within a period."""

    kind: Annotated[PolicyKind, Meta(description="Whether value counts replicas (Pods) or per cent of them (Percent).")] = (
        field(name="type")
    )
    value: Annotated[int, Meta(ge=1, le=MAX_REPLICAS, description="Most replicas, or per cent of them, in one period.")]
    period_seconds: Annotated[int, Meta(ge=1, le=1800, description="Length of the period in seconds.")]


Policies = Annotated[
    tuple[Policy, ...],
    Meta(max_length=8, description="Limits on how fast the replicas may change. Empty: no limit."),
]
Select = Annotated[
    SelectPolicy,
    Meta(
        description="Which policy holds where there are several: Max, the one that allows the largest change; Min, the "
        "smallest; Disabled: no scaling in this direction."
    ),
]


class ScaleUp(_Fields, frozen=True, kw_only=True):
    """How the pool grows."""

    stabilization_window_seconds: Annotated[
        int,
        Meta(ge=0, le=3600, description="Grow only to what every reading in this many seconds asked for. 0: at once."),
    ] = 0
    policies: Policies = ()
    select_policy: Select = SelectPolicy.MAX


class ScaleDown(_Fields, frozen=True, kw_only=True):
    """How the pool shrinks. It never takes a replica that holds a running task."""

    stabilization_window_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=3600,
            description="Shrink only to the highest number asked for in this many seconds. HorizontalPodAutoscaler waits 300 s "
            "because its scale-down may hit work; this one cannot, so a short window is enough.",
        ),
    ] = 30
    policies: Policies = ()
    select_policy: Select = SelectPolicy.MAX


class Fallback(_Fields, frozen=True, kw_only=True):
    """What to do when the backlog cannot be read."""

    failed_reads: Annotated[int, Meta(ge=1, le=1000, description="Failed reads in a row after which the fallback holds.")] = 3
    replicas: Annotated[
        int,
        Meta(ge=0, le=MAX_REPLICAS, description="Replicas to have at least while it holds. It can only raise them."),
    ]


class Scaling(_Fields, frozen=True, kw_only=True):
    """How many replicas for how much work."""

    min_replicas: Annotated[int, Meta(ge=0, le=MAX_REPLICAS, description="Fewest replicas, also without any work.")] = 0
    max_replicas: Annotated[int, Meta(ge=1, le=MAX_REPLICAS, description="Most replicas, whatever the backlog.")] = 10
    tasks_per_replica: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Tasks, ready or running, that one replica is meant to have. Fewer: faster, dearer."),
    ] = 10
    poll_seconds: Annotated[int, Meta(ge=1, le=300, description="Seconds between two readings of the backlog.")] = 5
    activation_threshold: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="At 0 replicas, this many tasks do not wake the pool yet. Never applied to expired leases.",
        ),
    ] = 0
    cooldown_seconds: Annotated[
        int, Meta(ge=0, le=DAY, description="Seconds without any work before the last replica goes, where minReplicas is 0.")
    ] = 60
    tolerance_percent: Annotated[
        int,
        Meta(
            ge=0,
            le=99,
            description="A backlog within this many per cent of what the replicas are for changes nothing. "
            "HorizontalPodAutoscaler has 10.",
        ),
    ] = 0
    scale_up: Annotated[ScaleUp, Meta(description="How fast the pool grows.")] = ScaleUp()
    scale_down: Annotated[ScaleDown, Meta(description="How fast the pool shrinks, within what is safe for running tasks.")] = (
        ScaleDown()
    )
    fallback: Annotated[
        Fallback | None,
        Meta(description="Replicas to have while the backlog cannot be read. Unset: those that are there stay."),
    ] = None
    target_age_seconds: Annotated[
        int,
        Meta(
            ge=1,
            le=30 * DAY,
            description="Age of the oldest ready task from which on the alert ThunderAgentOldestTaskTooOld takes it for too "
            "old. It changes no number of replicas.",
        ),
    ] = 600


class Slots(_Fields, frozen=True, kw_only=True):
    """Tasks that one agent runs at once: processes x threads, or many async ones a process."""

    processes: Annotated[int, Meta(ge=1, le=512, description="Child processes that run handlers.")] = 1
    threads: Annotated[
        int, Meta(ge=1, le=512, description="Handlers at once in one child. Above 1, stopping one stops its siblings.")
    ] = 1
    async_tasks: Annotated[int, Meta(ge=1, le=10_000, description="Async handlers at once in one child.")] = 10


class Waits(_Fields, frozen=True, kw_only=True):
    """Seconds between polls that found nothing; each further empty poll moves on to the next."""

    busy_seconds: Annotated[int, Meta(ge=1, le=3600, description="After the first poll that found nothing.")] = 1
    quiet_seconds: Annotated[int, Meta(ge=1, le=3600, description="After the second one in a row.")] = 5
    idle_seconds: Annotated[int, Meta(ge=1, le=3600, description="After each further one.")] = 10


class Retry(_Fields, frozen=True, kw_only=True):
    """Delay before a task runs again: a random time up to base x 2^retries, at most cap."""

    base_seconds: Annotated[int, Meta(ge=1, le=DAY, description="First step of the delay.")] = 2
    cap_seconds: Annotated[int, Meta(ge=1, le=DAY, description="Longest delay.")] = 300


class TaskType(_Fields, frozen=True, kw_only=True):
    """Settings of one task type."""

    name: Annotated[TaskTypeName, Meta(description="The task type.")]
    slots: (
        Annotated[int, Meta(ge=1, le=10_000, description="Tasks of this type at once in one agent. Unset: all its slots.")]
        | None
    ) = None
    rate_per_second: (
        Annotated[
            float,
            Meta(ge=0.001, le=10_000, description="Tasks of this type that one agent starts a second. Unset: no limit."),
        ]
        | None
    ) = None
    timeout_seconds: (
        Annotated[int, Meta(ge=0, le=DAY, description="Time for one run. 0: no limit. Unset: the agent's taskTimeoutSeconds.")]
        | None
    ) = None
    retry: Annotated[Retry | None, Meta(description="Retry delays of this type. Unset: the agent's.")] = None


class Variable(_Fields, frozen=True, kw_only=True):
    """One environment variable."""

    name: Annotated[
        str, Meta(min_length=1, max_length=256, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Name of the variable.")
    ]
    value: Annotated[str, Meta(max_length=4096, description="Its value, as it is.")] = ""


class Agent(_Fields, frozen=True, kw_only=True):
    """How the pool's agents work."""

    handler: (
        Annotated[
            str,
            Meta(
                max_length=512,
                pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$",
                description="The handler or router as module:name. Unset: the container's own command or environment names it.",
            ),
        ]
        | None
    ) = None
    container: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=63,
            pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
            description="Name of the template's container that is the agent.",
        ),
    ] = "agent"
    slots: Annotated[Slots, Meta(description="Tasks that one agent runs at once.")] = Slots()
    batch: Annotated[int, Meta(ge=1, le=1000, description="Candidates read by one poll.")] = 10
    lease_seconds: Annotated[int, Meta(ge=2, le=DAY, description="How long a claim holds without a renewal.")] = 300
    renew_seconds: Annotated[int, Meta(ge=1, le=DAY, description="Seconds between renewals; at most half a lease.")] = 60
    drain_seconds: Annotated[
        int,
        Meta(ge=0, le=DAY, description="Time running tasks get to finish when an agent is stopped; no less than any time-out."),
    ] = 600
    task_timeout_seconds: Annotated[
        int, Meta(ge=0, le=DAY, description="Time for one run of a task, where its type does not say. 0: no limit.")
    ] = 0
    waits: Annotated[Waits, Meta(description="Seconds to wait after polls that found nothing.")] = Waits()
    retry: Annotated[Retry, Meta(description="Delay before a failed task runs again.")] = Retry()
    task_types: Annotated[
        tuple[TaskType, ...], Meta(max_length=64, description="Settings of single task types.", extra_json_schema=_BY_NAME)
    ] = ()
    env: Annotated[
        tuple[Variable, ...],
        Meta(
            max_length=64,
            description="Further environment of the agent. No secrets: those belong into the template, by reference.",
            extra_json_schema=_BY_NAME,
        ),
    ] = ()


class TargetRef(_Fields, frozen=True, kw_only=True):
    """A Deployment that is there already."""

    api_version: Annotated[Literal["apps/v1"], Meta(description="API version of the target.")] = "apps/v1"
    kind: Annotated[Literal["Deployment"], Meta(description="Kind of the target.")] = "Deployment"
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=253,
            pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
            description="Name of the Deployment, in the pool's namespace.",
        ),
    ]


class Spec(_Fields, frozen=True, kw_only=True):
    """What the pool should be."""

    queue: Annotated[Queue, Meta(description="Where the tasks are, and which of them this pool runs.")]
    scaling: Annotated[Scaling, Meta(description="How many replicas for how much work.")] = Scaling()
    agent: Annotated[Agent, Meta(description="How the agents in the pods work.")] = Agent()
    template: Annotated[
        dict[str, Any] | None,
        Meta(
            description="The pods, as in a Deployment's template. The agent's settings, probes and safe defaults are added "
            "where they are absent. Exclusive with targetRef.",
            extra_json_schema={"x-kubernetes-preserve-unknown-fields": True},
        ),
    ] = None
    target_ref: Annotated[
        TargetRef | None,
        Meta(description="A Deployment of the same namespace that is only scaled, not rendered. Exclusive with template."),
    ] = None


class Metadata(_Fields, frozen=True, kw_only=True):
    """What is used of a resource's metadata."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    namespace: Annotated[str, Meta(max_length=63)] | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Pool(_Fields, frozen=True, kw_only=True):
    """A set of identical agents that scales with the backlog of a task table."""

    api_version: Literal["thunderagent.dev/v1alpha1"]
    kind: Literal["ThunderAgentPool"]
    metadata: Metadata
    spec: Annotated[Spec, Meta(description="What the pool should be.")]

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str | None:
        return self.metadata.namespace

    def pause(self) -> Pause:
        """What the pause annotations hold back. Raises InvalidPool for one that cannot be understood."""
        return pause_of(self.metadata.annotations)

    def scaling_rules(self) -> ScalingRules:
        """The rules for :func:`thunderagent.scaling.decide`. Raises InvalidPool for a malformed pause annotation."""
        scaling = self.spec.scaling
        fallback = scaling.fallback
        return ScalingRules(
            min_replicas=scaling.min_replicas,
            max_replicas=scaling.max_replicas,
            tasks_per_replica=scaling.tasks_per_replica,
            activation_threshold=scaling.activation_threshold,
            cooldown_seconds=scaling.cooldown_seconds,
            tolerance_percent=scaling.tolerance_percent,
            scale_up=_behaviour(scaling.scale_up),
            scale_down=_behaviour(scaling.scale_down),
            fallback=None if fallback is None else rules.Fallback(fallback.failed_reads, fallback.replicas),
            pause=self.pause(),
        )

    def table_settings(self) -> dict[str, Any]:
        """What ``spec.queue`` sets of the fields of TableSettings, by their names."""
        queue = self.spec.queue
        given = {"table": queue.table, "index": queue.index, "region": queue.region, "endpoint": queue.endpoint}
        return {name: value for name, value in given.items() if value is not None}

    def agent_settings(self) -> dict[str, Any]:
        """What the spec sets of the fields of AgentSettings, by their names. The pool's own name is not among them: which
        name tells it from pools of other namespaces or machines is for who runs it to say."""
        agent = self.spec.agent
        return {
            "queue": self.spec.queue.name,
            "task_types": ",".join(self.spec.queue.task_types),
            "batch": agent.batch,
            "wait_busy": agent.waits.busy_seconds,
            "wait_quiet": agent.waits.quiet_seconds,
            "wait_idle": agent.waits.idle_seconds,
            "lease": agent.lease_seconds,
            "renew": agent.renew_seconds,
            "drain": agent.drain_seconds,
            "processes": agent.slots.processes,
            "threads": agent.slots.threads,
            "async_tasks": agent.slots.async_tasks,
            "timeout": agent.task_timeout_seconds,
            "retry_base": agent.retry.base_seconds,
            "retry_cap": agent.retry.cap_seconds,
            "types": _types_json(agent.task_types),
        }

    def agent_container(self) -> Mapping[str, Any] | None:
        """The agent's container inside ``template``; None where there is no such container or no template."""
        return container_named(self.spec.template or {}, self.spec.agent.container)

    def literal_env(self) -> dict[str, str]:
        """The agent's environment as far as it is written out: ``agent.env``, over it the template's entries with a value.

        Entries that refer to secrets, config maps or fields are left out. Raises InvalidPool where the template has no
        agent's container, or one whose ``env`` is not a list of named strings.
        """
        given = {variable.name: variable.value for variable in self.spec.agent.env}
        if self.spec.template is None:
            return given
        return {**given, **literal_env(self.spec.template, self.spec.agent.container)}


def _behaviour(way: ScaleUp | ScaleDown) -> rules.Behaviour:
    policies = tuple(rules.Policy(policy.kind, policy.value, policy.period_seconds) for policy in way.policies)
    return rules.Behaviour(way.stabilization_window_seconds, policies, way.select_policy)


def _types_json(task_types: Iterable[TaskType]) -> str:
    """Settings of task types in the form of ``AgentSettings.types``; empty where there are none."""
    settings = {kind.name: _type_settings(kind) for kind in task_types}
    return json.dumps(settings) if settings else ""


def _type_settings(kind: TaskType) -> dict[str, float]:
    retry = kind.retry
    given = {
        "slots": kind.slots,
        "rate": kind.rate_per_second,
        "timeout": kind.timeout_seconds,
        "retry_base": None if retry is None else retry.base_seconds,
        "retry_cap": None if retry is None else retry.cap_seconds,
    }
    return {name: value for name, value in given.items() if value is not None}
