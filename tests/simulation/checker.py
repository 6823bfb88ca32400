"""What must never happen, checked against the table's own history of accepted writes, and against nothing that an agent says.

The rules here are written from DESIGN.md, not from the conditions that the writes carry: a write that its own condition let
through may still break one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.simulation.table import Refused, Write
from tests.simulation.trace import START, Trace, state
from tests.simulation.wire import Wire
from thunderagent.settings import AgentSettings
from thunderagent.store.layout import Layout
from thunderagent.task import Attr, ErrorType, Status, Task
from thunderagent.transitions import AllOf, AnyOf, Condition, Equals, Transition

UNDER_LEASE = frozenset({"renew", "complete", "retry", "fail", "release"})
STARTS = frozenset({"claim", "take over"})
ENDS_EXPIRED = frozenset({"take over", "bury"})
ENDED_BY_HOLDER = frozenset({"complete", "retry", "fail", "release"})


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, at so many seconds since the start."""

    rule: str
    at: float
    what: str
    task_ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule} at {self.at:.3f} s: {self.what}"


@dataclass(slots=True)
class _Ledger:
    """What the accepted writes of one task come to. ``lease_until``: nobody else may run it before this (epoch seconds)."""

    starts: int = 0
    releases: int = 0
    lease_until: float = 0.0
    last: Write | None = None
    written: list[Transition] = field(default_factory=list)


class Checker:
    """Hears of each write. ``wires`` are the ways of all processes to the table, by lockOwner."""

    def __init__(
        self,
        settings: AgentSettings,
        layout: Layout,
        wires: Mapping[str, Wire],
        tasks: Mapping[str, Task],
        trace: Trace,
        found: Callable[[Violation], None],
    ) -> None:
        self._settings = settings
        self._layout = layout
        self._wires = wires
        self._tasks = tasks
        self._trace = trace
        self._found = found
        self._ledgers: dict[str, _Ledger] = {}

    def wrote(self, write: Write) -> None:
        """A write that the table has accepted."""
        name, before = write.transition.name, state(write.before)
        self._trace.note(write.at, write.who.name, f"{name}: {before} -> {state(write.after)}", write.after.task_id)
        ledger = self._ledgers.setdefault(write.after.task_id, _Ledger())
        for rule, broken in self._rules(write, ledger):
            if broken:
                self._found(Violation(rule, write.at, f"{name} by {write.who.name}, {before}", (write.after.task_id,)))
        _account(ledger, write)

    def refused(self, refused: Refused) -> None:
        """A write that met a failed condition."""
        transition = refused.transition
        if not refused.repeated:
            what = f"{transition.name} refused: {state(refused.current)}"
            self._trace.note(refused.at, refused.who.name, what, transition.task_id)
        ledger = self._ledgers.setdefault(transition.task_id, _Ledger())
        if refused.repeated:
            if not any(_does_the_same(transition, each) for each in ledger.written):
                self._broken("a write is taken for done only if it was", refused)
        elif ledger.last is not None and _is_again(refused, ledger.last):
            self._broken("a lost reply is not a failure", refused)

    def _broken(self, rule: str, refused: Refused) -> None:
        name, task_id = refused.transition.name, refused.transition.task_id
        self._found(Violation(rule, refused.at, f"{name} by {refused.who.name}, {state(refused.current)}", (task_id,)))

    # --- rules --------------------------------------------------------------------------------------------------------------

    def _rules(self, write: Write, ledger: _Ledger) -> list[tuple[str, bool]]:
        before, name = write.before, write.transition.name
        astray = ("a task is filed where somebody will look", not self._layout.is_filed(write.after))
        if before is None or name == "enqueue":
            return [("a task is enqueued once", before is not None or name != "enqueue"), astray]
        if name == "refile":
            return [("filing changes nothing of a task", before != write.after), astray]
        rules = [
            ("what has ended is changed by a redrive alone", before.status.is_final and name != "redrive"),
            astray,
            *_shape(write),
        ]
        if name in STARTS | ENDS_EXPIRED:
            rules += self._of_takers(write, ledger)
        if name in UNDER_LEASE:
            rules += _of_holders(write)
        if name in {"defer", "unblock", "abandon"}:
            rules += self._of_waiting(write)
        if name in {"cancel", "redrive"}:
            rules += _of_people(write, ledger)
        return rules

    def _of_takers(self, write: Write, ledger: _Ledger) -> list[tuple[str, bool]]:
        before, name, now = write.before, write.transition.name, START + write.at
        assert before is not None
        starts = ledger.starts + (name in STARTS)
        return [
            ("only what is PENDING is claimed", name == "claim" and before.status is not Status.PENDING),
            ("only what is RUNNING is taken over or buried", name in ENDS_EXPIRED and before.status is not Status.RUNNING),
            ("nothing is taken before its time", not before.is_due(now)),
            ("no live lease is stolen", ledger.lease_until > now),
            ("an agent that could renew keeps its task", name in ENDS_EXPIRED and self._is_well(before, write.at)),
            ("a task waits for its dependencies", name == "claim" and not self._are_met(before)),
            ("every run counts", starts > before.max_retry + 1 + ledger.releases),
            ("a take-over charges the lost run", name == "take over" and write.after.retry_count != before.retry_count + 1),
            ("a task is buried only without a retry left", name == "bury" and before.retry_count < before.max_retry),
            ("each claim has a token of its own", name in STARTS and _token_was_used(write, ledger)),
        ]

    def _of_waiting(self, write: Write) -> list[tuple[str, bool]]:
        before, name = write.before, write.transition.name
        assert before is not None
        error = write.after.error.type if write.after.error is not None else ""
        waited = START + write.at - (before.created_at if before.waiting_since is None else before.waiting_since)
        limit = {
            ErrorType.DEPENDENCY_TIMEOUT.value: self._settings.dependency_timeout,
            ErrorType.DEPENDENCY_MISSING.value: self._settings.dependency_missing,
        }.get(error, 0.0)
        return [
            ("only what is PENDING is deferred or abandoned", before.status is not Status.PENDING),
            ("what is ready is not made to wait again", name in {"defer", "abandon"} and not before.unmet),
            ("a task is unblocked once its dependencies are met", name == "unblock" and not self._are_met(before)),
            ("a task waits as long as it may", name == "abandon" and waited < limit - 1),
        ]

    def _are_met(self, task: Task) -> bool:
        there = (self._tasks.get(task_id) for task_id in task.dependencies)
        return all(each is not None and each.status.is_met for each in there)

    def _is_well(self, before: Task, at: float) -> bool:
        """Whether the holder of a lease lives, and could have renewed it for long enough to have done so."""
        wire = self._wires.get(before.lock_owner or "")
        if wire is None or wire.process.is_over or wire.process.is_stopped or before.lock_token in wire.late:
            return False
        return at - wire.troubled_at > self._settings.renew + RENEWED_WITHIN


RENEWED_WITHIN = 12.0
"""Seconds beyond a renewal interval in which an agent has renewed again after trouble: a call that was given up, the longest
back-off, and a call that worked."""


def _shape(write: Write) -> list[tuple[str, bool]]:
    """The rules of the item, DESIGN.md section 3."""
    before, after, record = write.before, write.after, write.after.record
    runs = after.status is Status.RUNNING
    token = before.lock_token if before is not None and before.status is Status.RUNNING and not runs else None
    return [
        ("only what has ended expires", (Attr.EXPIRES_AT in record) != after.status.is_final),
        ("only a lease has an owner", runs != (after.lock_owner is not None)),
        ("only a lease has a token", runs != (after.lock_token is not None)),
        ("a lease has an end", runs and after.lock_time is None),
        ("the last token is kept", token is not None and after.last_token != token),
        ("history is bounded", len(after.history) > 5),
        ("retries are bounded", after.retry_count > after.max_retry),
    ]


def _of_holders(write: Write) -> list[tuple[str, bool]]:
    before, name = write.before, write.transition.name
    assert before is not None
    token = _token(write.transition.condition)
    charged = write.after.retry_count - before.retry_count
    return [
        ("no write with a stale token is accepted", before.status is not Status.RUNNING or before.lock_token != token),
        ("only the owner writes under a lease", before.status is Status.RUNNING and before.lock_owner != write.who.name),
        ("a retry is charged, a release is not", charged != (name == "retry")),
        ("a renewal lengthens the lease", name == "renew" and (write.after.lock_time or 0) < (before.lock_time or 0)),
    ]


def _of_people(write: Write, ledger: _Ledger) -> list[tuple[str, bool]]:
    before, after, name = write.before, write.after, write.transition.name
    assert before is not None
    kept = before.lock_time if before.status is Status.RUNNING else after.lock_time
    starts_at = after.lock_time or 0
    return [
        ("a cancel leaves the lease until its agent has stopped", name == "cancel" and after.lock_time != kept),
        ("a redrive waits for the lease that was left", name == "redrive" and starts_at < math.floor(ledger.lease_until)),
        ("only what has failed is redriven", name == "redrive" and before.status is not Status.FAILED),
    ]


def _account(ledger: _Ledger, write: Write) -> None:
    name = write.transition.name
    ledger.last = write
    ledger.written.append(write.transition)
    if name == "redrive":
        ledger.starts = ledger.releases = 0
    ledger.starts += name in STARTS
    ledger.releases += name == "release"
    if name in STARTS or name == "renew":
        ledger.lease_until = write.after.lock_time or 0.0
    elif name in ENDED_BY_HOLDER or name == "bury":
        ledger.lease_until = 0.0


def _token_was_used(write: Write, ledger: _Ledger) -> bool:
    return any(each.puts.get(Attr.LOCK_TOKEN) == write.after.lock_token for each in ledger.written)


def _token(condition: Condition) -> object:
    """The lockToken that a condition asks for."""
    match condition:
        case Equals(Attr.LOCK_TOKEN, value):
            return value
        case AllOf(parts) | AnyOf(parts):
            return next((token for part in parts if (token := _token(part)) is not None), None)
        case _:
            return None


def _is_again(refused: Refused, last: Write) -> bool:
    """Whether a write is the one that went through last, sent once more: the task has not been touched by anybody since."""
    write, other = refused.transition, last.transition
    if refused.who is not last.who or write.name != other.name:
        return False
    return write is other or (write.name in ENDED_BY_HOLDER and _does_the_same(write, other))


def _does_the_same(write: Transition, other: Transition) -> bool:
    """The same write, tried again perhaps a second later, or one that leaves the task in the same state for the same reason."""
    if write is other or write == other:
        return True
    if write.name in {"defer", "unblock"}:
        return True  # whoever wrote it, the task waits as this write would have it
    if write.name != other.name:
        return False
    if write.name in {"cancel", "bury", "abandon"}:
        return bool(write.puts[Attr.UPDATED_AT] == other.puts[Attr.UPDATED_AT])
    if write.name == "refile":
        return True
    if write.name in ENDED_BY_HOLDER:
        return _token(write.condition) == _token(other.condition)
    same = (Attr.LOCK_TOKEN, Attr.ENQUEUE_TOKEN) if write.name != "renew" else (Attr.LOCK_TIME,)
    return _token(write.condition) == _token(other.condition) and all(
        write.puts.get(each) == other.puts.get(each) for each in same
    )
