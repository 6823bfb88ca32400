"""Every metric, declared once: name, unit, help and labels. Nothing else makes one.

Names carry the prefix ``thunderagent_`` and base units; labels are few and bounded: never a task id, never a pod.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

WAIT_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
RUN_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
CALL_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


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
