"""The state machine under everything that hypothesis can think of, against a model that knows what must never happen.

Two agents share a table. Each acts on what it read last, however long ago; any of its writes may be carried out and its reply
lost, or travel for an hour and arrive when nobody expects it. Meanwhile tasks are cancelled and redriven, leases end, and a
program of somebody else claims and finishes tasks to the published format, without tokens.

The model keeps a ledger of its own: who may believe to hold what, and how many runs were charged. It never looks at
a condition.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.builders import DAY, LEASE, NOW, Time
from thunderagent import transitions
from thunderagent.store.memory import MemoryStore
from thunderagent.task import ErrorType, Outcome, OutcomeKind, Status, Task, TaskError
from thunderagent.transitions import Lease, Transition

AGENTS = ("a", "b")
TASKS = ("t0", "t1")

task_ids = st.sampled_from(["t0", "t0", "t0", "t1"])
views = st.sampled_from([None, None, *AGENTS])
"""Whose reading of a task somebody goes by; None: their own, made just now."""

pauses = st.sampled_from([0, 0, 0, 0, 0, 1, 20, LEASE])
"""Seconds before an agent does something."""

fates = st.sampled_from(["arrives", "arrives", "reply lost", "travels"])
"""What becomes of a write: most arrive; some do and the reply is lost, so they are tried again; some arrive much later."""

SUCCESS = Outcome(OutcomeKind.SUCCESS, result={"ok": True})
DONE = Outcome(OutcomeKind.DONE)
BROKEN = Outcome(OutcomeKind.FAILED, error=TaskError("ValueError", "broken", NOW))
RETRIED = Outcome(OutcomeKind.RETRY, error=TaskError("OSError", "reset", NOW))
RELEASED = Outcome(OutcomeKind.RELEASED)
PUBLISHED = {"taskId", "status", "payload", "retryCount", "maxRetry", "createdAt", "updatedAt"}

UNDER_LEASE = {"renew", "complete", "retry", "fail", "release"}
CHARGED = {"take over", "bury", "complete", "retry", "fail"}


@dataclass
class Ledger:
    """What the model knows of one task. ``foreign``: a program without tokens has touched it since it was last made PENDING by
    us, so that no promise but the one about its own lease holds."""

    token: str | None = None
    lease_end: int = 0
    last_token: str | None = None
    charged: int = 0
    retries: int = 0
    releases: int = 0
    ready_at: int = 0
    foreign: bool = False


@dataclass
class Mind:
    """What one agent believes: the tasks as it read them, the leases it holds, and a write that has not been answered."""

    seen: dict[str, Task] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    travelling: dict[str, Transition] = field(default_factory=dict)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.time = Time()
        self.store = MemoryStore(self.time)
        self.rng = random.Random(0)
        self.tokens = 0
        self.ledgers: dict[str, Ledger] = {}
        self.minds = {name: Mind() for name in AGENTS}
        self.applied: list[Transition] = []
        self.shared = False

    @initialize(
        retries=st.tuples(st.integers(0, 2), st.integers(0, 2)),
        delay=st.sampled_from([0, 0, 50]),
        depends=st.booleans(),
        shared=st.booleans(),
    )
    def begin(self, retries: tuple[int, int], delay: int, depends: bool, shared: bool) -> None:
        """Two tasks, of which the second may depend on the first, in a table that may be shared with another program."""
        self.shared = shared
        for task_id, max_retry, payload in zip(TASKS, retries, ({}, {"dependsOn": "t0"} if depends else {}), strict=True):
            write = transitions.enqueue(
                task_id, payload, now=self.now, token=self.token(), not_before=self.now + delay, max_retry=max_retry
            )
            assert self.store.apply(write).ok
            self.ledgers[task_id] = Ledger(ready_at=self.now + delay)

    # --- what happens ---------------------------------------------------------------------------------------------------
    # hypothesis leaves rules out of a run at random, so what makes sense only together is one rule.

    @rule(pause=pauses, task_id=task_ids, data=st.data())
    def agent_a_acts(self, pause: int, task_id: str, data: st.DataObject) -> None:
        self.time.now += pause
        self.act("a", task_id, data)

    @rule(pause=pauses, task_id=task_ids, data=st.data())
    def agent_b_acts(self, pause: int, task_id: str, data: st.DataObject) -> None:
        self.time.now += pause
        self.act("b", task_id, data)

    @precondition(lambda self: self.held())
    @rule(data=st.data())
    def a_paused_agent_renews_after_the_other_has_seen_its_lease_end(self, data: st.DataObject) -> None:
        """Rare by chance, and the moment at which a lease could be stolen."""
        name, task_id = data.draw(st.sampled_from(self.held()))
        lease = self.minds[name].leases[task_id]
        self.time.now = max(self.time.now, lease.ends)
        self.everybody_reads(task_id)
        self.send(name, self.renew(lease, name), "arrives")

    @precondition(lambda self: self.travelling())
    @rule(data=st.data())
    def a_write_arrives_after_all(self, data: st.DataObject) -> None:
        name, task_id = data.draw(st.sampled_from(self.travelling()))
        self.deliver(name, self.minds[name].travelling.pop(task_id))

    @rule(task_id=task_ids, stale=views, does=st.sampled_from(["cancel", "redrive", "redrive", "both", "both twice"]))
    def somebody_cancels_or_redrives(self, task_id: str, stale: str | None, does: str) -> None:
        """From what the table says now, or from what an agent has read of it some time ago."""
        task = self.task(task_id) if stale is None else self.minds[stale].seen.get(task_id)
        for _ in range(2 if does == "both twice" else 1):
            if task is not None and does != "redrive":
                self.cancel(task)
            if task is not None and does != "cancel":
                self.redrive(task if does == "redrive" else self.task(task_id))
            task = self.task(task_id)
        if does in {"both", "both twice"}:
            self.everybody_reads(task_id)

    def cancel(self, task: Task) -> None:
        if not task.status.is_final and self.apply(transitions.cancel(task, now=self.now, expires_at=self.now + DAY)):
            self.end(task.task_id, charged=False)

    def redrive(self, task: Task) -> None:
        write = transitions.redrive(task, now=self.now, token=self.token())
        if task.status is Status.FAILED and self.apply(write):
            old = self.ledgers[task.task_id]
            self.ledgers[task.task_id] = Ledger(last_token=old.last_token, releases=old.releases, foreign=old.foreign)

    @precondition(lambda self: self.shared)
    @rule(task_id=task_ids, status=st.sampled_from(["SUCCESS", "FAILED", "PENDING"]))
    def another_program_acts(self, task_id: str, status: str) -> None:
        """It claims by the published condition, knowing of no token and no dependency, and later writes the outcome without a
        condition, whoever has the task by then."""
        record, ledger = self.store.records()[task_id], self.ledgers[task_id]
        if ledger.foreign:
            change: dict[str, Any] = {"status": status}
        elif record["status"] == "PENDING" and record["lockTime"] < self.now:
            change = {"status": "RUNNING", "lockTime": self.now + LEASE}
        else:
            return
        self.store.put_record(record | change | {"updatedAt": self.now})
        ledger.token, ledger.lease_end = None, 0 if ledger.foreign else self.now + LEASE
        ledger.foreign = True

    # --- what an agent can do -------------------------------------------------------------------------------------------

    def act(self, name: str, task_id: str, data: st.DataObject) -> None:
        mind = self.minds[name]
        if task_id in mind.travelling:  # writes of one task are serialised in its agent
            return
        if task_id in mind.leases:
            lease = mind.leases[task_id]
            write = data.draw(st.sampled_from(["renew", "renew", SUCCESS, BROKEN, RETRIED, RETRIED, RELEASED, DONE]))
            self.send(
                name, self.settle(lease, write) if isinstance(write, Outcome) else self.renew(lease, name), data.draw(fates)
            )
            return
        read = data.draw(st.sampled_from(["long ago", "just now", "for later"]), "read")
        if read != "long ago" or task_id not in mind.seen:
            mind.seen[task_id] = self.task(task_id)
        if read == "for later":
            return
        work = self.work_on(mind.seen[task_id], name, free_slot=data.draw(st.sampled_from([True, True, False]), "free slot"))
        if work is not None:
            self.send(name, work, data.draw(fates))

    def everybody_reads(self, task_id: str) -> None:
        for mind in self.minds.values():
            mind.seen[task_id] = self.task(task_id)

    def held(self) -> list[tuple[str, str]]:
        """Agents with a task that they believe to hold, however long ago that was, and no write under way for it."""
        return [
            (name, task_id) for name, mind in self.minds.items() for task_id in mind.leases if task_id not in mind.travelling
        ]

    def travelling(self) -> list[tuple[str, str]]:
        return [(name, task_id) for name, mind in self.minds.items() for task_id in mind.travelling]

    # --- how agents decide and write ------------------------------------------------------------------------------------

    def work_on(self, task: Task, name: str, *, free_slot: bool) -> Transition | None:
        """What an agent does with a task that it read, now or long ago."""
        end, token = self.now + LEASE, self.token()
        if not task.is_due(self.now) or task.status.is_final:
            return None
        if task.status is Status.RUNNING:
            if task.retries_left:
                return transitions.take_over(task, now=self.now, lease_end=end, owner=name, token=token)
            return transitions.bury(task, now=self.now, expires_at=self.now + DAY)
        unmet = self.unmet(task)
        if unmet is None:
            error = TaskError(ErrorType.DEPENDENCY_FAILED, "A dependency failed.", self.now)
            return transitions.abandon(task, error, now=self.now, expires_at=self.now + DAY)
        if unmet:
            return transitions.defer(task, now=self.now, wait=5, unmet=unmet)
        if free_slot:
            return transitions.claim(task, now=self.now, lease_end=end, owner=name, token=token)
        return transitions.unblock(task, now=self.now) if task.is_waiting else None

    def unmet(self, task: Task) -> tuple[str, ...] | None:
        """Dependencies that are not met; None: one has failed."""
        read = self.store.get_many(task.unmet).found
        if any(each.status is Status.FAILED for each in read.values()):
            return None
        return tuple(each for each in task.unmet if each not in read or not read[each].status.is_met)

    def renew(self, lease: Lease, name: str) -> Transition:
        trying = self.minds[name].leases[lease.task_id] = lease.trying(self.now + LEASE)
        return transitions.renew(trying, lease_end=self.now + LEASE, progress={"at": self.now})

    def settle(self, lease: Lease, outcome: Outcome) -> Transition:
        end = self.now + DAY
        if outcome.kind in {OutcomeKind.SUCCESS, OutcomeKind.DONE}:
            return transitions.complete(lease, outcome, now=self.now, expires_at=end)
        if outcome.kind is OutcomeKind.RELEASED:
            return transitions.release(lease, outcome, now=self.now, delay=self.rng.choice([0, 30]))
        if outcome.kind is OutcomeKind.RETRY and lease.task.retries_left:
            return transitions.retry(lease, outcome, now=self.now, delay=self.rng.choice([0, 10]))
        return transitions.fail(lease, outcome, now=self.now, expires_at=end)

    def send(self, name: str, write: Transition, fate: str) -> None:
        if fate == "travels":
            self.minds[name].travelling[write.task_id] = write
            return
        arrived = fate == "reply lost" and self.apply(write)
        if arrived:
            self.account(write, name)
        assert self.deliver(name, write) or not arrived, f"{write.name} had gone through and was not recognised"

    def deliver(self, name: str, write: Transition) -> bool:
        """The write arrives, and its agent learns what became of it: whether it went through."""
        mind, task_id = self.minds[name], write.task_id
        applied = self.store.apply(write, want_task=True)
        self.check_proof(write, applied.ok, applied.repeated)
        if applied.ok and not applied.repeated:
            self.account(write, name)
        if write.name in {"claim", "take over"} and applied.ok:
            assert applied.task is not None
            token, end = write.puts["lockToken"], write.puts["lockTime"]
            mind.leases[task_id] = Lease(applied.task, token, name, self.now, (end,))
        elif write.name == "renew" and applied.ok:
            mind.leases[task_id] = mind.leases[task_id].renewed(write.puts["lockTime"])
        elif write.name in UNDER_LEASE:
            mind.leases.pop(task_id, None)
        return applied.ok

    def apply(self, write: Transition) -> bool:
        applied = self.store.apply(write)
        self.check_proof(write, applied.ok, applied.repeated)
        return applied.ok and not applied.repeated

    def check_proof(self, write: Transition, ok: bool, repeated: bool) -> None:
        """A write that is called a repetition must have gone through before: this one, or one that does the very same."""
        if not repeated:
            self.applied += [write] if ok else []
            return
        if write.name in {"defer", "unblock"}:  # whoever wrote it, the task waits as this write would have it
            return
        assert any(does_the_same(write, each) for each in self.applied), f"{write.name} was taken for done and was not"

    # --- the ledger -----------------------------------------------------------------------------------------------------

    def account(self, write: Transition, name: str) -> None:
        """Enter a write of an agent that has just gone through; it must have been allowed."""
        ledger = self.ledgers[write.task_id]
        if write.name in UNDER_LEASE:
            lease = self.minds[name].leases[write.task_id]
            assert lease.token == ledger.token, f"{write.name} went through with the token of a run that is over"
        if write.name in {"claim", "take over", "bury"}:
            self.check_nobody_runs_it(write, name)
        if write.name == "renew":
            ledger.lease_end = write.puts["lockTime"]
        elif write.name in {"claim", "take over"}:
            ledger.charged += write.name == "take over"
            ledger.retries += write.name == "take over"
            ledger.token, ledger.lease_end = write.puts["lockToken"], write.puts["lockTime"]
        elif write.name in {"retry", "release"}:
            ledger.retries += write.name == "retry"
            ledger.releases += write.name == "release"
            self.end(write.task_id, charged=write.name == "retry")
            ledger.ready_at = write.puts["lockTime"]
        elif write.name in {"complete", "fail", "bury", "abandon"}:
            self.end(write.task_id, charged=write.name in CHARGED)

    def check_nobody_runs_it(self, write: Transition, name: str) -> None:
        ledger = self.ledgers[write.task_id]
        assert ledger.lease_end <= self.now, f"{write.name} took a task under a live lease"
        if ledger.foreign:
            return
        for other, mind in self.minds.items():
            lease = mind.leases.get(write.task_id)
            assert other == name or lease is None or lease.ends <= self.now, f"{name} took a task that {other} may be running"
        if write.name == "claim":
            assert ledger.ready_at <= self.now, "a task was claimed before its time"
            assert self.unmet(self.task(write.task_id)) == (), "a dependency was not met"

    def end(self, task_id: str, *, charged: bool) -> None:
        ledger = self.ledgers[task_id]
        if ledger.token is not None:
            ledger.last_token = ledger.token
        ledger.token, ledger.lease_end = None, 0
        ledger.charged += charged

    @property
    def now(self) -> int:
        return self.store.now()

    def token(self) -> str:
        self.tokens += 1
        return f"token-{self.tokens}"

    def task(self, task_id: str) -> Task:
        task = self.store.get(task_id)
        assert task is not None
        return task

    # --- what must always hold ------------------------------------------------------------------------------------------

    @invariant()
    def attributes_follow_the_rules_of_the_item(self) -> None:
        for task_id, record in self.store.records().items():
            ledger = self.ledgers[task_id]
            assert record.keys() >= PUBLISHED
            assert len(record.get("history", [])) <= 5
            if not ledger.foreign:
                check_record(record, ledger)


def does_the_same(write: Transition, other: Transition) -> bool:
    """The same write, or one that ends the task for the same reason in the same second."""
    same_end = write.name in {"cancel", "bury", "abandon"} and write.puts["updatedAt"] == other.puts.get("updatedAt")
    return other == write or (other.name == write.name and other.task_id == write.task_id and same_end)


def check_record(record: dict[str, Any], ledger: Ledger) -> None:
    """The rules of DESIGN.md, sections 3 and 3.1, for a task that only our agents have touched."""
    status = Status(record["status"])
    cancelled = record.get("error", {}).get("type") == ErrorType.CANCELLED
    assert ("expiresAt" in record) == status.is_final, "final items have expiresAt, and only they"
    assert ("lockTime" in record) or status.is_final
    assert ("lockTime" not in record) or not status.is_final or cancelled, "only a cancel leaves lockTime"
    running = status is Status.RUNNING
    assert [("lockOwner" in record), ("lockToken" in record)] == [running, running]
    assert record.get("lockToken") == ledger.token
    assert record.get("lastToken") == ledger.last_token
    assert not running or record["lockTime"] == ledger.lease_end
    assert not running or record["waitingFor"] == []
    assert ("waitingSince" in record) == (status is Status.PENDING and bool(record["waitingFor"]))
    assert (status is Status.FAILED) <= ("error" in record)
    assert "error" not in record or status not in {Status.SUCCESS, Status.DONE}
    assert "result" not in record or status in {Status.SUCCESS, Status.DONE}
    assert record["retryCount"] == ledger.retries <= record["maxRetry"]
    assert record.get("releaseCount", 0) == ledger.releases
    assert ledger.charged <= record["maxRetry"] + 1, "a task has at most maxRetry + 1 charged runs"


TestStateMachine = Machine.TestCase
TestStateMachine.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
