"""Every metric, declared once: name, unit, help and labels. Nothing else makes one.

Names carry the prefix ``thunderagent_`` and base units; labels are few and bounded: never a task id, never a pod. Counters of
which every value of a label is known begin at 0, since Prometheus sees no increase in a series that begins at 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, PlatformCollector, ProcessCollector

Instrument = Counter | Gauge | Histogram | Info
C = TypeVar("C")
I = TypeVar("I", Counter, Gauge, Histogram, Info)  # noqa: E741

WAIT_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
RUN_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
CALL_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
CYCLE_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

OUTCOMES = ("success", "done", "retry", "failed", "snoozed", "released", "lost", "cancelled")
"""The values of ``outcome``: those of :class:`thunderagent.task.OutcomeKind`."""

AGENT_OPERATIONS = ("GetItem", "BatchGetItem", "Query", "UpdateItem")
"""What an agent calls DynamoDB for."""

RETRIES = "Attempts that the client has made again by itself within a call, whatever for."
THROTTLED = "Attempts that DynamoDB has refused for throughput, whatever came of the call."

ERRORS_KEPT = 200
"""Pairs of task type and error that an agent counts apart. Both are the users' to name, so there may be any number of them:
whatever comes after these is counted as :data:`OTHER`."""

OTHER = "other"


class Call(Protocol):
    """What is told of a call to DynamoDB; :class:`thunderagent.store.base.CallReport` says what each means."""

    @property
    def operation(self) -> str: ...

    @property
    def result(self) -> str: ...

    @property
    def seconds(self) -> float: ...

    @property
    def units(self) -> float: ...

    @property
    def retries(self) -> int: ...

    @property
    def throttles(self) -> int: ...


class Children(dict[Any, C], Generic[C]):
    """A metric's children by the values of its own labels: one value, or a tuple of several. Made when first asked for, and
    found afterwards without the lock and the checks of ``labels()``, which cost ten times as much."""

    def __init__(self, make: Callable[..., C]) -> None:
        self._make = make

    def __missing__(self, key: Any) -> C:
        child = self[key] = self._make(*(key if isinstance(key, tuple) else (key,)))
        return child


class Declarations:
    """Instruments of one registry, in the order in which they are declared. Each has the labels ``common`` before its own."""

    def __init__(self, registry: CollectorRegistry, common: Sequence[str] = ()) -> None:
        self.registry = registry
        self.instruments: list[Instrument] = []
        self._common = tuple(common)

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        return self._add(Counter(f"thunderagent_{name}_total", text, (*self._common, *labels), registry=self.registry))

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return self._add(Gauge(f"thunderagent_{name}", text, (*self._common, *labels), registry=self.registry))

    def histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        labelled = (*self._common, *labels)
        return self._add(Histogram(f"thunderagent_{name}", text, labelled, buckets=buckets, registry=self.registry))

    def build(self) -> Info:
        return self._add(Info("thunderagent_build", "Version of this program.", registry=self.registry))

    def _add(self, instrument: I) -> I:
        self.instruments.append(instrument)
        return instrument


class AgentMetrics:
    """What an agent measures, in a registry of its own.

    ``pool`` is the first part of its lockOwner: the pool's name, on Kubernetes after its namespace and a dot. All metrics but
    the build have the labels ``namespace`` and ``pool``, which are filled in here.
    """

    def __init__(self, registry: CollectorRegistry, pool: str) -> None:
        self.registry = registry
        self.pool = pool
        self._labels = pool_labels(pool)
        declare = Declarations(registry, ("namespace", "pool"))
        self.instruments = declare.instruments
        self._declare_tasks(declare)
        self._declare_claims(declare)
        self._declare_itself(declare)
        self._declare_calls(declare)
        self.build = declare.build()
        self._begin()

    def error(self, task_type: str | None, error: str, outcome: str) -> None:
        """Count a run that ended with an error, and keep the number of series within bounds."""
        key = (task_type or "", error, outcome)
        if key not in self.errors and len(self.errors) >= ERRORS_KEPT:
            key = (OTHER, OTHER, outcome)
        self.errors[key].inc()

    def samples(self, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
        """The series of a name as they would be scraped now: their labels and values."""
        for instrument in self.instruments:
            for family in instrument.collect():
                yield from ((sample.labels, sample.value) for sample in family.samples if sample.name == name)

    def _declare_tasks(self, declare: Declarations) -> None:
        self.tasks = self._by(declare.counter("tasks", "Runs that ended, by outcome.", "outcome"))
        text = f"Runs that ended with an error, by task type, type of the error and outcome. {ERRORS_KEPT} such are told apart."
        self.errors = self._by(declare.counter("task_errors", text, "task_type", "error", "outcome"))
        self.wait_seconds = self._one(
            declare.histogram("task_wait_seconds", "Time from ready to start of a run.", WAIT_BUCKETS)
        )
        self.run_seconds = self._by(declare.histogram("task_run_seconds", "Time of a run, by outcome.", RUN_BUCKETS, "outcome"))
        text = "How long this agent has held the task that it has held for the longest time; 0: it holds none."
        self.longest_run = self._one(declare.gauge("longest_run_seconds", text))

    def _declare_claims(self, declare: Declarations) -> None:
        text = "Claims tried, by result: won, lost to another agent, refused by the table, or unknown."
        self.claims = self._by(declare.counter("claims", text, "result"))
        self.take_overs = self._one(declare.counter("take_overs", "Tasks taken over from an agent that stopped renewing."))
        self.buried = self._one(declare.counter("buried", "Tasks ended because the lease was lost on their last run."))
        self.renewals = self._by(declare.counter("renewals", "Renewals of a lease, by result: ok, failed or lost.", "result"))
        text = "Leases lost while the task ran, by reason: taken_over or cancelled."
        self.leases_lost = self._by(declare.counter("leases_lost", text, "reason"))
        text = "Looks at a waiting task, by result: met, unblocked, deferred or abandoned."
        self.dependencies = self._by(declare.counter("dependency_looks", text, "result"))

    def _declare_itself(self, declare: Declarations) -> None:
        self.slots = self._one(declare.gauge("slots", "Slots of this agent."))
        self.slots_busy = self._one(declare.gauge("slots_busy", "Slots that hold a task."))
        self.children_replaced = self._one(declare.counter("children_replaced", "Child processes that were replaced."))
        self.polls = self._by(declare.counter("polls", "Polls for work, by result: found, empty or failed.", "result"))
        text = "When the last poll succeeded, in the table's time."
        self.last_poll = self._one(declare.gauge("last_poll_timestamp_seconds", text))
        text = "This machine's wall clock minus the table's time."
        self.clock_offset = self._one(declare.gauge("clock_offset_seconds", text))

    def _declare_calls(self, declare: Declarations) -> None:
        text = "Calls to DynamoDB, by operation and result: ok, condition_failed, throttled or the name of an error."
        self.calls = self._by(declare.counter("dynamodb_calls", text, "operation", "result"))
        text = "Time of a call to DynamoDB."
        self.call_seconds = self._by(declare.histogram("dynamodb_call_seconds", text, CALL_BUCKETS, "operation"))
        text = "Capacity units consumed, as DynamoDB says."
        self.units = self._by(declare.counter("dynamodb_consumed_units", text, "operation"))
        self.retries = self._by(declare.counter("dynamodb_retries", RETRIES, "operation"))
        self.throttled = self._by(declare.counter("dynamodb_throttled_attempts", THROTTLED, "operation"))

    def _one(self, instrument: I) -> I:
        return instrument.labels(*self._labels)

    def _by(self, instrument: I) -> Children[I]:
        def make(*own: str) -> I:
            return instrument.labels(*self._labels, *own)

        return Children(make)

    def _begin(self) -> None:
        _touch(self.tasks, OUTCOMES)
        _touch(self.run_seconds, ("success",))
        _touch(self.claims, ("won", "lost", "refused", "unknown"))
        _touch(self.renewals, ("ok", "failed", "lost"))
        _touch(self.leases_lost, ("taken_over", "cancelled"))
        _touch(self.dependencies, ("met", "unblocked", "deferred", "abandoned"))
        _touch(self.polls, ("found", "empty", "failed"))
        _touch(self.calls, [(operation, result) for operation in AGENT_OPERATIONS for result in ("ok", "throttled")])
        for by_operation in (self.units, self.retries, self.throttled):
            _touch(by_operation, AGENT_OPERATIONS)


class PoolMetrics:
    """What scales pools measures of them: the operator, or a pool on one machine.

    Each metric has the labels ``namespace``, empty on one machine, and ``pool``. A pool that is gone takes its series with it.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = registry or CollectorRegistry()
        declare = Declarations(registry, ("namespace", "pool"))
        self.pool_instruments = declare.instruments
        self._declare_backlog(declare)
        self._declare_replicas(declare)
        self._declare_cycles(declare)
        rest = Declarations(registry)
        self._declare_calls(rest)
        self.build = rest.build()
        self.process_instruments = rest.instruments
        self._known: set[tuple[str, str]] = set()

    def begin(self, pool: tuple[str, str]) -> None:
        """Have the counters of a pool (namespace, name) begin at 0. Nothing happens where they have."""
        if pool in self._known:
            return
        self._known.add(pool)
        self.reads.labels(*pool, "ok")
        self.marks.labels(*pool)
        for direction in ("up", "down"):
            self.scalings.labels(*pool, direction, "ok")

    def forget(self, namespace: str, pool: str) -> None:
        """Remove every series of a pool that is gone."""
        self._known.discard((namespace, pool))
        for metric in self.pool_instruments:
            metric.remove_by_labels({"namespace": namespace, "pool": pool})

    def called(self, call: Call) -> None:
        """Note a call to DynamoDB; may come from any thread."""
        self._calls.labels(call.operation, call.result).inc()
        self._call_seconds.labels(call.operation).observe(call.seconds)
        self._units.labels(call.operation).inc(call.units)
        self._retries.labels(call.operation).inc(call.retries)
        self._throttled.labels(call.operation).inc(call.throttles)

    @property
    def instruments(self) -> list[Instrument]:
        return [*self.pool_instruments, *self.process_instruments]

    def _declare_calls(self, declare: Declarations) -> None:
        text = "Calls to DynamoDB for readings of the backlog, by operation and result, as those of agents."
        self._calls = declare.counter("scaling_dynamodb_calls", text, "operation", "result")
        text = "Time of such a call."
        self._call_seconds = declare.histogram("scaling_dynamodb_call_seconds", text, CALL_BUCKETS, "operation")
        text = "Capacity units that such calls consumed, as DynamoDB says."
        self._units = declare.counter("scaling_dynamodb_consumed_units", text, "operation")
        self._retries = declare.counter("scaling_dynamodb_retries", RETRIES, "operation")
        self._throttled = declare.counter("scaling_dynamodb_throttled_attempts", THROTTLED, "operation")
        for by_operation in (self._units, self._retries, self._throttled):
            by_operation.labels("Query")
        for result in ("ok", "throttled"):
            self._calls.labels("Query", result)

    def _declare_backlog(self, declare: Declarations) -> None:
        self.ready = declare.gauge("pool_ready_tasks", "Tasks that could be claimed now.")
        self.waiting = declare.gauge("pool_waiting_tasks", "Tasks that wait for other tasks.")
        self.running = declare.gauge("pool_running_tasks", "Tasks that the pool's agents hold a lease on.")
        self.expired = declare.gauge("pool_expired_tasks", "Running tasks whose lease has ended.")
        self.oldest_age = declare.gauge("pool_oldest_ready_seconds", "Age of the oldest ready task; 0: there is none.")
        text = "Age from which on the oldest ready task is too old, as the pool's scaling.targetAgeSeconds says."
        self.target_age = declare.gauge("pool_target_age_seconds", text)
        text = "1 while the counts are lower bounds, since the reading stopped at its limit."
        self.cut = declare.gauge("pool_count_cut", text)
        text = "Readings of the backlog, by result: ok, or the reason why it failed."
        self.reads = declare.counter("pool_reads", text, "result")
        self.last_read = declare.gauge("pool_last_read_timestamp_seconds", "When the backlog was last read.")

    def _declare_replicas(self, declare: Declarations) -> None:
        self.wanted = declare.gauge("pool_wanted_replicas", "Replicas that the backlog asks for, before bounds and delays.")
        self.desired = declare.gauge("pool_desired_replicas", "Replicas that are asked for.")
        self.replicas = declare.gauge("pool_replicas", "Replicas that are there, by state: available or starting.", "state")
        self.min_replicas = declare.gauge("pool_min_replicas", "Fewest replicas that the pool allows.")
        self.max_replicas = declare.gauge("pool_max_replicas", "Most replicas that the pool allows.")

    def _declare_cycles(self, declare: Declarations) -> None:
        text = "1 while the condition of this type is True: Ready, Active, Paused or Fallback."
        self.condition = declare.gauge("pool_condition", text, "type")
        self.decisions = declare.counter("pool_decisions", "Decisions, by the reason that settled them.", "reason")
        text = "Changes of the replicas, by direction (up, down) and result: ok, refused, or left to a conflict with another."
        self.scalings = declare.counter("pool_scalings", text, "direction", "result")
        self.marks = declare.counter("pool_marks", "Pods on which a deletion cost was written.")
        self.cycle_seconds = declare.histogram("pool_cycle_seconds", "Time of a cycle of a pool.", CYCLE_BUCKETS)
        self.last_cycle = declare.gauge("pool_last_cycle_timestamp_seconds", "When a cycle of the pool last ended.")


class ControllerMetrics(PoolMetrics):
    """What the operator measures beside its pools."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        declare = Declarations(registry)
        self.pools = declare.gauge("operator_pools", "Pools that this replica scales.")
        self.leader = declare.gauge("operator_leader", "1 while this replica of the operator leads.")
        self.operator_instruments = declare.instruments

    @property
    def instruments(self) -> list[Instrument]:
        return [*super().instruments, *self.operator_instruments]


def pool_labels(identity: str) -> tuple[str, str]:
    """Namespace and name of a pool, from the first part of its agents' lockOwner. Neither has a dot on Kubernetes."""
    namespace, dot, name = identity.partition(".")
    return (namespace, name) if dot else ("", identity)


def error_name(labels: Mapping[str, str]) -> str:
    """How people are told of an error that was counted: ``ValueError (retry), report``."""
    task_type = labels.get("task_type", "")
    return f"{labels.get('error', '')} ({labels.get('outcome', '')}){f', {task_type}' if task_type else ''}"


def add_process_metrics(registry: CollectorRegistry) -> None:
    """Let a registry tell of the process itself, too: processor time, memory, open files, Python.

    The ``_created`` series are left out: one for each counter, and nothing looks at them.
    """
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)


def exposed_name(instrument: Instrument) -> str:
    """The name under which an instrument is scraped: what it is declared as, with the suffix of its type."""
    (family,) = instrument.describe()
    return family.name + _SUFFIX.get(type(instrument), "")


_SUFFIX: dict[type, str] = {Counter: "_total", Info: "_info"}


def _touch(children: Children[Any], keys: Iterable[Any]) -> None:
    for key in keys:
        children[key]
