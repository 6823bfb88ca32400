"""What happens in an agent, told to the log and to the metrics: a line for each change of a task's state, none for a poll."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

from thunderagent.agent.decisions import StopReason
from thunderagent.errors import StoreError
from thunderagent.log import say
from thunderagent.metrics import OTHER, AgentMetrics
from thunderagent.store.base import CallReport
from thunderagent.task import ErrorType, OutcomeKind, Status, Task, TaskError
from thunderagent.transitions import Lease

log = logging.getLogger("thunderagent.agent")


class Events:
    """The agent's one mouth. ``owner`` is its lockOwner; ``monotonic`` gives seconds.

    All of it but :meth:`called` is for the event loop's thread. What happens once a task costs a look-up and an addition, and a
    line of the log only where somebody listens.
    """

    def __init__(self, metrics: AgentMetrics, owner: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self.owner = owner
        self._pool = metrics.pool or None
        self._monotonic = monotonic
        self._failing: set[str] = set()
        self._held: dict[str, float] = {}
        """When each task was claimed that is held now, in the order of the claims: the first one is the oldest."""
        self._lost_by: dict[str, str | None] = {}
        self.counts: Counter[str] = Counter()
        metrics.longest_run.set_function(self._longest_run)

    # --- the agent

    def started(self, slots: int) -> None:
        self._metrics.slots.set(slots)
        self._say_of_agent(logging.INFO, "agent ready", slots=slots)

    def draining(self, running: int, seconds: float) -> None:
        self._say_of_agent(logging.INFO, "draining", running=running, seconds=seconds)

    def stopped(self, left: int) -> None:
        level = logging.WARNING if left else logging.INFO
        self._say_of_agent(level, "agent stopped", unwritten=left or None, **self.counts)

    def heartbeat(self, busy: int, slots: int) -> None:
        failing = ", ".join(sorted(self._failing)) or None
        self._say_of_agent(logging.INFO, "alive", busy=busy, slots=slots, failing=failing, **self.counts)

    def fault(self, error: BaseException) -> None:
        log.error("a fault in the agent itself; the task comes back when its lease ends", exc_info=error)

    def slots_busy(self, busy: int) -> None:
        self._metrics.slots_busy.set(busy)

    def child_replaced(self) -> None:
        self._metrics.children_replaced.inc()

    # --- reading the table

    def polled(self, found: int, at: float) -> None:
        self._metrics.polls["found" if found else "empty"].inc()
        self._metrics.last_poll.set(at)
        self.recovered("poll")

    def poll_failed(self, error: StoreError) -> None:
        self._metrics.polls["failed"].inc()
        self.trouble("poll", error)

    def trouble(self, what: str, error: Exception) -> None:
        """Say once that something fails, and once that it works again, however long it lasts."""
        if what not in self._failing:
            self._failing.add(what)
            self._say_of_agent(logging.WARNING, f"{what} fails", error=str(error))

    def recovered(self, what: str) -> None:
        if what in self._failing:
            self._failing.discard(what)
            self._say_of_agent(logging.INFO, f"{what} works again")

    # --- one task

    def claimed(self, lease: Lease, wait: float) -> None:
        self.counts["claimed"] += 1
        self._held[lease.task.task_id] = self._monotonic()
        self._metrics.claims["won"].inc()
        self._metrics.wait_seconds.observe(wait)
        if lease.token in self._lost_by:  # one change of state, one line
            lost_by = self._lost_by.pop(lease.token)
            self._say(logging.WARNING, "task taken over", lease.task, Status.RUNNING, lost_by=lost_by)
        else:
            self._say(logging.INFO, "task claimed", lease.task, Status.RUNNING, wait_s=wait)

    def taken_over(self, lease: Lease, lost_by: str | None) -> None:
        """The claim that :meth:`claimed` is told of next is a take-over."""
        self.counts["taken_over"] += 1
        self._metrics.take_overs.inc()
        self._lost_by[lease.token] = lost_by

    def buried(self, task: Task) -> None:
        self.counts["buried"] += 1
        self._metrics.buried.inc()
        self._metrics.error(task.task_type, ErrorType.LEASE_EXPIRED, OutcomeKind.FAILED)
        self._say(
            logging.WARNING, "task buried", task, Status.FAILED, lost_by=task.lock_owner, error=str(ErrorType.LEASE_EXPIRED)
        )

    def claim_lost(self) -> None:
        self.counts["claims_lost"] += 1
        self._metrics.claims["lost"].inc()

    def claim_unknown(self, task: Task, error: StoreError) -> None:
        self._metrics.claims["unknown"].inc()
        self.trouble("claim", error)

    def claim_refused(self, task: Task, error: StoreError) -> None:
        self._metrics.claims["refused"].inc()
        self.trouble(f"claiming the task {task.task_id}", error)

    def settled(self, lease: Lease, outcome: OutcomeKind, name: str, run_s: float, error: object) -> None:
        """The run was written down. ``name`` is that of the transition; ``error`` a TaskError, or None."""
        kind = outcome.value
        self.counts[kind] += 1
        self._held.pop(lease.task.task_id, None)
        self._metrics.tasks[kind].inc()
        self._metrics.run_seconds[kind].observe(run_s)
        text = None
        if error is not None:
            self._metrics.error(
                lease.task.task_type, error.type if isinstance(error, TaskError) else type(error).__name__, kind
            )
            text = str(error)[:ERROR_CHARS]
        words, status = _ENDS.get(name, (name, None))
        level = logging.INFO if error is None else logging.WARNING
        self._say(level, words, lease.task, status or _STATUS_OF[outcome], outcome=kind, run_s=run_s, error=text)

    def renewed(self, task: Task) -> None:
        self._metrics.renewals["ok"].inc()
        self.recovered("renewal")

    def renewal_failed(self, task: Task, error: StoreError) -> None:
        self._metrics.renewals["failed"].inc()
        self.trouble("renewal", error)

    def progress_refused(self, task: Task, error: StoreError) -> None:
        self._say(logging.ERROR, "progress refused by the table", task, Status.RUNNING, error=str(error))

    def lease_ended(self, task: Task) -> None:
        self._say(logging.WARNING, "lease ended unrenewed", task, Status.RUNNING)

    def lost(self, task: Task, reason: str, now_there: Task | None) -> None:
        self.counts["lost"] += 1
        self._held.pop(task.task_id, None)
        is_cancelled = reason == StopReason.CANCELLED
        self._metrics.renewals["lost"].inc()
        self._metrics.leases_lost["cancelled" if is_cancelled else "taken_over"].inc()
        self._metrics.tasks[OutcomeKind.CANCELLED.value if is_cancelled else OutcomeKind.LOST.value].inc()
        status, owner = (None, None) if now_there is None else (now_there.status, now_there.lock_owner)
        self._say(logging.WARNING, "task is not ours any more", task, status, reason=reason, now_held_by=owner)

    def write_failed(self, task: Task, error: StoreError) -> None:
        self.trouble("writing an outcome", error)

    def outcome_given_up(self, task: Task) -> None:
        self._held.pop(task.task_id, None)
        self._say(logging.ERROR, "no outcome can be written; the task is left to the end of its lease", task, Status.RUNNING)

    def outcome_refused(self, task: Task, error: StoreError) -> None:
        self._say(logging.ERROR, "outcome refused by the table", task, Status.RUNNING, error=str(error))

    def dependency(self, result: str, task: Task, error: object = None) -> None:
        self._metrics.dependencies[result].inc()
        if result == "unblocked":
            self._say(logging.INFO, "task unblocked", task, Status.PENDING)
        elif result == "abandoned":
            kind = error.type if isinstance(error, TaskError) else OTHER
            self._metrics.error(task.task_type, kind, OutcomeKind.FAILED)
            self._say(logging.WARNING, "task abandoned", task, Status.FAILED, error=str(error)[:ERROR_CHARS])

    # --- calls

    def called(self, report: CallReport) -> None:
        """Told of every call to DynamoDB; may come from any thread."""
        self._metrics.calls[report.operation, report.result].inc()
        self._metrics.call_seconds[report.operation].observe(report.seconds)
        if report.units:
            self._metrics.units[report.operation].inc(report.units)
        if report.retries:
            self._metrics.retries[report.operation].inc(report.retries)
        if report.throttles:
            self._metrics.throttled[report.operation].inc(report.throttles)

    def _longest_run(self) -> float:
        """Asked for by a scrape, from its thread. Tasks come in the order of their claims, so the first is the oldest."""
        began = next(iter(self._held.copy().values()), None)
        return 0.0 if began is None else max(0.0, self._monotonic() - began)

    def _say(self, level: int, event: str, task: Task, status: Status | None, **fields: object) -> None:
        """A line about a task. The same keys everywhere, and never the payload, the result or the progress."""
        if log.isEnabledFor(level):
            of_task = {"task_id": task.task_id, "task_type": task.task_type, "pool": self._pool, "owner": self.owner}
            say(log, level, event, **of_task, status=status, retry=task.retry_count or None, **fields)

    def _say_of_agent(self, level: int, event: str, **fields: object) -> None:
        say(log, level, event, owner=self.owner, pool=self._pool, **fields)


ERROR_CHARS = 300
"""Characters of an error that a line carries; the table holds the rest."""

_ENDS: dict[str, tuple[str, Status | None]] = {
    "complete": ("task ended", None),
    "fail": ("task failed", Status.FAILED),
    "retry": ("task goes back for a retry", Status.PENDING),
    "release": ("task released", Status.PENDING),
}
"""What the log says of a run by the transition that ended it, and the status that the task has then."""

_STATUS_OF = {
    OutcomeKind.SUCCESS: Status.SUCCESS,
    OutcomeKind.DONE: Status.DONE,
    OutcomeKind.RETRY: Status.PENDING,
    OutcomeKind.FAILED: Status.FAILED,
    OutcomeKind.SNOOZED: Status.PENDING,
    OutcomeKind.RELEASED: Status.PENDING,
}
