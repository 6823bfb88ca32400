"""Every metric, declared once: name, unit, help and labels. Nothing else makes one.

Names carry the prefix ``thunderagent_`` and base units; labels are few and bounded: never a task id, never a pod.
"""

from __future__ import annotations

from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

M = TypeVar("M")

WAIT_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
RUN_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
CALL_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
CYCLE_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class AgentMetrics:
    """What an agent measures, in a registry of its own. Each metric has the label ``pool`` and those that it names."""

    def __init__(self, registry: CollectorRegistry, pool: str) -> None:
        self.registry = registry
        self.pool = pool

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"thunderagent_{name}_total", text, ("pool", *labels), registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"thunderagent_{name}", text, ("pool",), registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"thunderagent_{name}", text, ("pool", *labels), buckets=buckets, registry=registry)

        self.tasks = counter("tasks", "Runs that ended, by outcome.", "outcome")
        self.claims = counter("claims", "Claims tried, by result: won, lost to another agent, or unknown.", "result")
        self.take_overs = counter("take_overs", "Tasks taken over from an agent that stopped renewing.")
        self.buried = counter("buried", "Tasks ended because the lease was lost on their last run.")
        self.renewals = counter("renewals", "Renewals of a lease, by result: ok, failed or lost.", "result")
        self.leases_lost = counter("leases_lost", "Leases lost while the task ran, by reason.", "reason")
        self.dependencies = counter(
            "dependency_looks", "Looks at a waiting task, by result: met, unblocked, deferred or abandoned.", "result"
        )
        self.wait_seconds = histogram("task_wait_seconds", "Time from ready to start of a run.", WAIT_BUCKETS)
        self.run_seconds = histogram("task_run_seconds", "Time of a run, by outcome.", RUN_BUCKETS, "outcome")
        self.slots = gauge("slots", "Slots of this agent.")
        self.slots_busy = gauge("slots_busy", "Slots that hold a task.")
        self.children_replaced = counter("children_replaced", "Child processes that were replaced.")
        self.polls = counter("polls", "Polls for work, by result: found, empty or failed.", "result")
        self.last_poll = gauge("last_poll_timestamp_seconds", "When the last poll succeeded, in the table's time.")
        self.calls = counter("dynamodb_calls", "Calls to DynamoDB, by operation and result.", "operation", "result")
        self.call_seconds = histogram("dynamodb_call_seconds", "Time of a call to DynamoDB.", CALL_BUCKETS, "operation")
        self.units = counter("dynamodb_consumed_units", "Capacity units consumed, as DynamoDB says.", "operation")
        self.clock_offset = gauge("clock_offset_seconds", "This machine's wall clock minus the table's time.")
        self.build = Info("thunderagent_build", "Version of this program.", registry=registry)


class ControllerMetrics:
    """What the operator measures, in a registry of its own. Those of a pool have the labels ``namespace`` and ``pool``, and
    are removed with it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._of_pools: list[Any] = []

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return self._of_pool(Gauge(f"thunderagent_pool_{name}", text, ("namespace", "pool", *labels), registry=registry))

        def counter(name: str, text: str, *labels: str) -> Counter:
            metric = Counter(f"thunderagent_pool_{name}_total", text, ("namespace", "pool", *labels), registry=registry)
            return self._of_pool(metric)

        self.ready = gauge("ready_tasks", "Tasks that could be claimed now.")
        self.waiting = gauge("waiting_tasks", "Tasks that wait for other tasks.")
        self.running = gauge("running_tasks", "Tasks that the pool's agents hold a lease on.")
        self.expired = gauge("expired_tasks", "Running tasks whose lease has ended.")
        self.oldest_age = gauge("oldest_ready_seconds", "Age of the oldest ready task.")
        self.cut = gauge("count_cut", "1 while the counts are lower bounds, since the reading stopped at its limit.")
        self.last_read = gauge("last_read_timestamp_seconds", "When the backlog was last read.")
        self.desired = gauge("desired_replicas", "Replicas that the Deployment is asked for.")
        self.replicas = gauge("replicas", "Pods that are there, by state: available or starting.", "state")
        self.min_replicas = gauge("min_replicas", "Fewest replicas that the pool allows.")
        self.max_replicas = gauge("max_replicas", "Most replicas that the pool allows.")
        self.condition = gauge("condition", "1 while the condition of this type is True.", "type")
        self.decisions = counter("decisions", "Decisions, by the reason that settled them.", "reason")
        self.scalings = counter("scalings", "Changes of the replicas, by direction: up or down.", "direction")
        self.marks = counter("pod_marks", "Pods on which a deletion cost was written.")
        cycle = Histogram(
            "thunderagent_pool_cycle_seconds",
            "Time of a cycle of a pool.",
            ("namespace", "pool"),
            buckets=CYCLE_BUCKETS,
            registry=registry,
        )
        self.cycle_seconds = self._of_pool(cycle)
        self.pools = Gauge("thunderagent_operator_pools", "Pools that this replica scales.", registry=registry)
        self.leader = Gauge("thunderagent_operator_leader", "1 while this replica of the operator leads.", registry=registry)
        self.calls = Counter(
            "thunderagent_operator_dynamodb_calls_total",
            "Calls of the operator to DynamoDB, by operation and result.",
            ("operation", "result"),
            registry=registry,
        )
        self.units = Counter(
            "thunderagent_operator_dynamodb_consumed_units_total",
            "Capacity units that they consumed, as DynamoDB says.",
            ("operation",),
            registry=registry,
        )
        self.build = Info("thunderagent_build", "Version of this program.", registry=registry)

    def forget(self, namespace: str, pool: str) -> None:
        """Remove every series of a pool that is gone."""
        for metric in self._of_pools:
            metric.remove_by_labels({"namespace": namespace, "pool": pool})

    def _of_pool(self, metric: M) -> M:
        self._of_pools.append(metric)
        return metric
