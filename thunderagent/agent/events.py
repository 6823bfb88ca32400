"""What happens in an agent, told to the log and to the metrics: a line for each change of a task's state, none for a poll."""

from __future__ import annotations

import logging
from collections import Counter

from thunderagent.agent.decisions import StopReason
from thunderagent.errors import StoreError
from thunderagent.log import say
from thunderagent.metrics import AgentMetrics
from thunderagent.store.base import CallReport
from thunderagent.task import OutcomeKind, Task
from thunderagent.transitions import Lease

log = logging.getLogger("thunderagent.agent")


class Events:
    """The agent's one mouth. ``owner`` is its lockOwner."""

    def __init__(self, metrics: AgentMetrics, owner: str) -> None:
        self._metrics = metrics
        self.owner = owner
        self._pool = metrics.pool
        self._failing: set[str] = set()
        self.counts: Counter[str] = Counter()

    # --- the agent

    def started(self, slots: int) -> None:
        self._metrics.slots.labels(self._pool).set(slots)
        say(log, logging.INFO, "agent ready", owner=self.owner, slots=slots)

    def draining(self, running: int, seconds: float) -> None:
        say(log, logging.INFO, "draining", owner=self.owner, running=running, seconds=seconds)

    def stopped(self, left: int) -> None:
        level = logging.WARNING if left else logging.INFO
        say(log, level, "agent stopped", owner=self.owner, unwritten=left or None, **self.counts)

    def heartbeat(self, busy: int, slots: int) -> None:
        failing = ", ".join(sorted(self._failing)) or None
        say(log, logging.INFO, "alive", owner=self.owner, busy=busy, slots=slots, failing=failing, **self.counts)

    def fault(self, error: BaseException) -> None:
        log.error("a fault in the agent itself; the task comes back when its lease ends", exc_info=error)

    def slots_busy(self, busy: int) -> None:
        self._metrics.slots_busy.labels(self._pool).set(busy)

    def child_replaced(self) -> None:
        self._metrics.children_replaced.labels(self._pool).inc()

    # --- reading the table

    def polled(self, found: int, at: float) -> None:
        self._metrics.polls.labels(self._pool, "found" if found else "empty").inc()
        self._metrics.last_poll.labels(self._pool).set(at)
        self.recovered("poll")

    def poll_failed(self, error: StoreError) -> None:
        self._metrics.polls.labels(self._pool, "failed").inc()
        self.trouble("poll", error)

    def trouble(self, what: str, error: Exception) -> None:
        """Say once that something fails, and once that it works again, however long it lasts."""
        if what not in self._failing:
            self._failing.add(what)
            say(log, logging.WARNING, f"{what} fails", error=str(error))

    def recovered(self, what: str) -> None:
        if what in self._failing:
            self._failing.discard(what)
            say(log, logging.INFO, f"{what} works again")

    # --- one task

    def claimed(self, lease: Lease, wait: float) -> None:
        self._count("claimed")
        self._metrics.claims.labels(self._pool, "won").inc()
        self._metrics.wait_seconds.labels(self._pool).observe(wait)
        self._say(logging.INFO, "task claimed", lease.task, wait_s=wait, retry=lease.task.retry_count or None)

    def taken_over(self, lease: Lease, lost_by: str | None) -> None:
        self._count("taken_over")
        self._metrics.take_overs.labels(self._pool).inc()
        self._say(logging.WARNING, "task taken over", lease.task, lost_by=lost_by, retry=lease.task.retry_count)

    def buried(self, task: Task) -> None:
        self._count("buried")
        self._metrics.buried.labels(self._pool).inc()
        self._say(logging.WARNING, "task buried", task, lost_by=task.lock_owner, error="LeaseExpired")

    def claim_lost(self) -> None:
        self._count("claims_lost")
        self._metrics.claims.labels(self._pool, "lost").inc()

    def claim_unknown(self, task: Task, error: StoreError) -> None:
        self._metrics.claims.labels(self._pool, "unknown").inc()
        self.trouble("claim", error)

    def claim_refused(self, task: Task, error: StoreError) -> None:
        self._metrics.claims.labels(self._pool, "lost").inc()
        self.trouble(f"claiming the task {task.task_id}", error)

    def settled(self, lease: Lease, outcome: OutcomeKind, name: str, run_s: float, error: object) -> None:
        self._count(str(outcome))
        self._metrics.tasks.labels(self._pool, str(outcome)).inc()
        self._metrics.run_seconds.labels(self._pool, str(outcome)).observe(run_s)
        level = logging.WARNING if error else logging.INFO
        text = None if error is None else str(error)[:300]
        self._say(level, f"task {_PAST.get(name, name)}", lease.task, outcome=str(outcome), run_s=run_s, error=text)

    def renewed(self, task: Task) -> None:
        self._metrics.renewals.labels(self._pool, "ok").inc()
        self.recovered("renewal")

    def renewal_failed(self, task: Task, error: StoreError) -> None:
        self._metrics.renewals.labels(self._pool, "failed").inc()
        self.trouble("renewal", error)

    def progress_refused(self, task: Task, error: StoreError) -> None:
        self._say(logging.ERROR, "progress refused by the table", task, error=str(error))

    def lease_ended(self, task: Task) -> None:
        self._say(logging.WARNING, "lease ended unrenewed", task)

    def lost(self, task: Task, reason: str, now_there: Task | None) -> None:
        self._count("lost")
        self._metrics.renewals.labels(self._pool, "lost").inc()
        self._metrics.leases_lost.labels(self._pool, reason).inc()
        outcome = OutcomeKind.CANCELLED if reason == StopReason.CANCELLED else OutcomeKind.LOST
        self._metrics.tasks.labels(self._pool, str(outcome)).inc()
        status, owner = (None, None) if now_there is None else (str(now_there.status), now_there.lock_owner)
        self._say(logging.WARNING, "task is not ours any more", task, reason=reason, status=status, now_held_by=owner)

    def write_failed(self, task: Task, error: StoreError) -> None:
        self.trouble("writing an outcome", error)

    def outcome_given_up(self, task: Task) -> None:
        self._say(logging.ERROR, "no outcome can be written; the task is left to the end of its lease", task)

    def outcome_refused(self, task: Task, error: StoreError) -> None:
        self._say(logging.ERROR, "outcome refused by the table", task, error=str(error))

    def dependency(self, result: str, task: Task, error: object = None) -> None:
        self._metrics.dependencies.labels(self._pool, result).inc()
        if result in {"unblocked", "abandoned"}:
            level = logging.WARNING if error else logging.INFO
            self._say(level, f"task {result}", task, error=None if error is None else str(error)[:300])

    # --- calls

    def called(self, report: CallReport) -> None:
        """Told of every call to DynamoDB; may come from any thread."""
        self._metrics.calls.labels(self._pool, report.operation, report.result).inc()
        self._metrics.call_seconds.labels(self._pool, report.operation).observe(report.seconds)
        if report.units:
            self._metrics.units.labels(self._pool, report.operation).inc(report.units)

    def _count(self, what: str) -> None:
        self.counts[what] += 1

    def _say(self, level: int, event: str, task: Task, **fields: object) -> None:
        say(log, level, event, task_id=task.task_id, task_type=task.task_type, owner=self.owner, **fields)


_PAST = {"complete": "ended", "fail": "failed", "retry": "goes back for a retry", "release": "released"}
