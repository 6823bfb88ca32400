"""Rules taken away one at a time, to see that the simulation notices: one that it does not notice, it does not check.

Nothing in the source is edited: a mutant changes a write just before the table carries it out, or puts other code in the place
of a decision for as long as a history lasts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from controller.election import Election
from controller.pods import Pod
from controller.reading import Reading, Readings
from tests.simulation.history import Mutation
from tests.simulation.wire import Wire
from thunderagent.agent import claims as claims_module
from thunderagent.agent import dependencies as dependencies_module
from thunderagent.agent.claims import Claims
from thunderagent.agent.decisions import Met
from thunderagent.agent.table import Contact, Table
from thunderagent.errors import StoreError, StoreUnavailable
from thunderagent.scaling import Candidate, Observation
from thunderagent.store.backlog import Backlog
from thunderagent.store.clock import TableClock
from thunderagent.store.dispatch import DispatchFinder
from thunderagent.store.layout import Layout, Mark
from thunderagent.task import Attr
from thunderagent.transitions import Absent, AllOf, AnyOf, AtMost, Condition, Equals, OneOf, Transition

decide_module = importlib.import_module("thunderagent.scaling.decide")  # the package has a function of this name
ALWAYS = AllOf(())
NEVER = AnyOf(())


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule, by its section of DESIGN.md or its number in 3.2, and what was done to it."""

    rule: str
    mutation: Mutation

    @property
    def name(self) -> str:
        return self.mutation.name


# --- what is done to a write ------------------------------------------------------------------------------------------


def _on(names: str, change: Callable[[Transition], Transition]) -> Callable[[Transition], Transition]:
    wanted = {name.strip() for name in names.split(",")}
    return lambda transition: change(transition) if transition.name in wanted else transition


def _without(*attrs: Attr) -> Callable[[Transition], Transition]:
    """The same write without the parts of its condition about these attributes."""
    return lambda transition: replace(transition, condition=_pruned(transition.condition, frozenset(attrs)))


def _pruned(condition: Condition, attrs: frozenset[Attr]) -> Condition:
    match condition:
        case AllOf(parts):
            return AllOf(tuple(_pruned(part, attrs) for part in parts))
        case AnyOf(parts):
            return ALWAYS if any(_pruned(part, attrs) == ALWAYS for part in parts) else condition
        case Absent(attr) | Equals(attr) | OneOf(attr) | AtMost(attr):
            return ALWAYS if attr in attrs else condition
        case _:
            return condition


def _unconditional(transition: Transition) -> Transition:
    return replace(transition, condition=ALWAYS)


def _always_proven(transition: Transition) -> Transition:
    return replace(transition, proof=ALWAYS)


def _unproven(transition: Transition) -> Transition:
    return replace(transition, proof=NEVER)


def _putting(attr: Attr, value: Callable[[Transition], Any]) -> Callable[[Transition], Transition]:
    return lambda transition: replace(transition, puts={**transition.puts, attr: value(transition)})


def _not_putting(*attrs: Attr) -> Callable[[Transition], Transition]:
    return lambda write: replace(write, puts={key: value for key, value in write.puts.items() if key not in attrs})


def _also_dropping(attr: Attr) -> Callable[[Transition], Transition]:
    return lambda transition: replace(transition, drops=transition.drops | {attr})


def _write(rule: str, name: str, names: str, change: Callable[[Transition], Transition]) -> Mutant:
    return Mutant(rule, Mutation(name, _on(names, change)))


def _code(rule: str, name: str, *patches: tuple[object, str, Any]) -> Mutant:
    return Mutant(rule, Mutation(name, patches=patches))


# --- the conditions of transitions.py ---------------------------------------------------------------------------------

CONDITIONS = (
    _write("3.1", "enqueue over a task that is there", "enqueue", _without(Attr.TASK_ID)),
    _write("3.1", "claim what is not PENDING", "claim", _without(Attr.STATUS)),
    _write("3.1", "claim what is not due", "claim", _without(Attr.LOCK_TIME)),
    _write("3.1", "take over what is not RUNNING", "take over", _without(Attr.STATUS, Attr.LOCK_TOKEN)),
    _write("3.1", "take over under a good lease", "take over", _without(Attr.LOCK_TIME)),
    _write("3.1", "take over without a look at token and retries", "take over", _without(Attr.LOCK_TOKEN, Attr.RETRY_COUNT)),
    _write("3.1", "bury what is not RUNNING", "bury", _without(Attr.STATUS, Attr.LOCK_TOKEN)),
    _write("3.1", "bury under a good lease", "bury", _without(Attr.LOCK_TIME)),
    _write("3.1", "defer what is not PENDING", "defer", _without(Attr.STATUS, Attr.LOCK_TIME)),
    _write("3.1", "defer without a look at lockTime", "defer", _without(Attr.LOCK_TIME)),
    _write("3.1", "unblock what is not PENDING", "unblock", _without(Attr.STATUS, Attr.LOCK_TIME)),
    _write("3.1", "abandon what is not PENDING", "abandon", _without(Attr.STATUS, Attr.LOCK_TIME)),
    _write("3.1", "abandon without a look at lockTime", "abandon", _without(Attr.LOCK_TIME)),
    _write("3.1", "cancel without a look at what has changed", "cancel", _unconditional),
    _write("3.1", "redrive what has not failed", "redrive", _unconditional),
)

# --- what the writes put ----------------------------------------------------------------------------------------------

EFFECTS = (
    _write("3.1", "a take-over charges nothing", "take over", _not_putting(Attr.RETRY_COUNT)),
    _write("3.1", "a retry charges nothing", "retry", _not_putting(Attr.RETRY_COUNT)),
    _write("3.1", "a release charges a retry", "release", _putting(Attr.RETRY_COUNT, lambda write: 1)),
    _write("3.1", "the last token is not kept", "complete, retry, fail, release, bury", _not_putting(Attr.LAST_TOKEN)),
    _write("3.1", "a cancel drops the lease", "cancel", _also_dropping(Attr.LOCK_TIME)),
    _write("3.1", "a redrive waits for nothing", "redrive", _putting(Attr.LOCK_TIME, lambda write: 0)),
    _write("3.1", "a renewal does not move the lease", "renew", _not_putting(Attr.LOCK_TIME)),
)

# --- the rules of DESIGN.md, 3.2 --------------------------------------------------------------------------------------

_HELD = "renew, complete, retry, fail, release"


async def _forget(self: Claims, task_id: str, token: str, lease_end: int) -> None:
    """A claim without a reply is not looked up."""


def _wall_now(self: Wire) -> int:
    return int(self.machine.wall())


def _wall_lease_end(self: Wire, seconds: float) -> int:
    return int(self.machine.wall() + seconds) + 1


async def _no_renewal(self: Table, *args: Any, **kwargs: Any) -> None:
    """No renewal leaves the process, as where the handler keeps it busy."""
    raise StoreUnavailable("The interpreter is busy.")


def _is_met(*args: Any) -> Met:
    return Met()


RULES = (
    _write("rule 1", "write under a lease without a look at whose it is", _HELD, _without(Attr.LOCK_TOKEN, Attr.LOCK_TIME)),
    _write("rule 1", "write the outcome unconditionally", "complete, retry, fail, release", _unconditional),
    _write("rule 1", "renew unconditionally", "renew", _unconditional),
    *(_write("rule 1", f"{name} unconditionally", name, _unconditional) for name in ("complete", "retry", "fail", "release")),
    _code("rule 1", "one token for all claims", (claims_module, "new_token", lambda: "token")),
    *(
        _write("rule 2", f"a lost reply to {name} is a failure", name, _unproven)
        for name in ("enqueue", "claim", "complete", "retry", "fail", "release")
    ),
    _code("rule 2", "a claim without a reply is forgotten", (Claims, "_resolve", _forget)),
    _write("rule 2", "any lost outcome counts as written", "complete, retry, fail, release", _always_proven),
    _write("rule 3", "the index is the truth", "claim", _unconditional),
    _code("rule 4", "the machine's clock is the table's", (Wire, "now", _wall_now), (Wire, "lease_end", _wall_lease_end)),
    _code("rule 4", "leases are taken by the bold bound", (TableClock, "now", lambda self: int(self.latest()))),
    _code("rule 5", "take-overs right after an outage", (Contact, "may_take_over", True)),
    _code("rule 7", "no renewals while a handler runs", (Table, "renew", _no_renewal)),
    _code("rule 8", "a waiting task is claimed", (dependencies_module, "judge_dependencies", _is_met)),
)

# --- scaling ----------------------------------------------------------------------------------------------------------


async def _read_or_nothing(self: Readings, uid: str, ask: Any) -> Reading:
    try:
        return await _READ(self, uid, ask)
    except StoreError:
        return Reading(Backlog(at=0), self._now())


_READ = Readings.read


def _all_idle(self: Pod, running: int) -> Candidate:
    return _AS_CANDIDATE(self, 0)


_AS_CANDIDATE = Pod.as_candidate

SCALING = (
    _code("rule 3", "one reading of zero is an empty queue", (decide_module, "LOW_READINGS", 1)),
    _code("rule 6", "a read that failed is a zero", (Readings, "read", _read_or_nothing)),
    _code(
        "rule 8",
        "what waits for dependencies is work",
        (Observation, "claimable", property(lambda self: self.ready + self.waiting)),
    ),
    _code("section 5", "no floor", (Observation, "floor", property(lambda self: 0)), (Pod, "as_candidate", _all_idle)),
    _code("section 5", "any pod may go", (Pod, "as_candidate", _all_idle)),
    _code("section 6", "an operator leads for ever", (Election, "is_leading", property(lambda self: True))),
)

# --- the dispatch layout ----------------------------------------------------------------------------------------------


def _looked_at_too_late(write: Transition) -> Transition:
    return write if write.look_at is None else replace(write, look_at=write.look_at + 1000)


def _first_shard(self: Layout, queue: str, mark: Mark) -> tuple[str, ...]:
    return _PARTITIONS(self, queue, mark)[:1]


_PARTITIONS = Layout.partitions

LAYOUT = (
    _write("3.5", "a claimed task stays among the ready ones", "claim", lambda write: replace(write, look_at=None)),
    _write("3.5", "a renewed lease is looked at too late", "renew", _looked_at_too_late),
    _write("3.5", "file a lease without a look at whose it is", "refile", _unconditional),
    _code("3.5", "what waits is filed as ready", (Transition, "waits", property(lambda self: False))),
    _code("3.5", "one shard is read", (Layout, "partitions", _first_shard)),
    _code("3.5", "an entry is taken for the task", (DispatchFinder, "_whole", lambda self, entries: entries)),
)

MUTANTS: tuple[Mutant, ...] = (*CONDITIONS, *EFFECTS, *RULES, *SCALING, *LAYOUT)
