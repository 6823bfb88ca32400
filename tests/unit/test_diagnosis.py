"""The trouble-shooting table as a program: each symptom is found and named, and a healthy table gives no finding at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thunderagent.diagnosis import RULES, Finding, Observation, Patience, Rule, Severity, diagnose
from thunderagent.diagnosis.dependencies import find_cycles
from thunderagent.diagnosis.observation import Sample
from thunderagent.store.admin import IndexShape, Scanned, TableShape
from thunderagent.store.layout import dispatch_layout
from thunderagent.task import Status, Task

NOW = 1_800_000_000
TABLE, INDEX = "TaskTable", "status-createdAt-index"
A, B = "pool/host-a/1-aa", "pool/host-b/2-bb"

GOOD_INDEX = IndexShape(INDEX, "ACTIVE", (("status", "HASH"), ("createdAt", "RANGE")), "ALL")
GOOD_SHAPE = TableShape(
    status="ACTIVE",
    keys=(("taskId", "HASH"),),
    attribute_types={"taskId": "S", "status": "S", "createdAt": "N"},
    indexes=(GOOD_INDEX,),
    billing="PAY_PER_REQUEST",
    deletion_protection=True,
    ttl="expiresAt",
)


def task(task_id: str, status: str = "PENDING", *, age: int = 10, without: tuple[str, ...] = (), **attributes: Any) -> Task:
    """A task of the published format that was created ``age`` seconds ago."""
    created = NOW - age
    record: dict[str, Any] = {
        "taskId": task_id,
        "status": status,
        "payload": {"n": 1},
        "retryCount": 0,
        "maxRetry": 3,
        "lockTime": created,
        "createdAt": created,
        "updatedAt": created,
    }
    record |= attributes
    return Task.from_record({name: value for name, value in record.items() if name not in without})


def running(task_id: str, *, lease: int = 200, owner: str = A, **attributes: Any) -> Task:
    """A task under a lease that ends in ``lease`` seconds."""
    lock: dict[str, Any] = {"lockTime": NOW + lease, "lockOwner": owner, "lockToken": "t", "updatedAt": NOW - 5}
    return task(task_id, "RUNNING", **(lock | attributes))


def waiting(task_id: str, *on: str, age: int = 10, look: int = 20, **attributes: Any) -> Task:
    """A task that waits for others and is looked at in ``look`` seconds."""
    wait: dict[str, Any] = {"waitingFor": list(on), "waitingSince": NOW - age, "lockTime": NOW + look}
    wait["payload"] = {"dependsOn": list(on)}
    return task(task_id, age=age, **(wait | attributes))


def ended(task_id: str, status: str = "SUCCESS", *, age: int = 60, **attributes: Any) -> Task:
    """A task that ended a moment ago."""
    end: dict[str, Any] = {"updatedAt": NOW - 5, "expiresAt": NOW + 10**6, "history": [run(A, 20, 5)]}
    return task(task_id, status, age=age, without=("lockTime",), **(end | attributes))


def run(owner: str, began: int, ended: int, outcome: str = "success", error: str = "") -> dict[str, Any]:
    """A run that began and ended so many seconds ago."""
    return {"owner": owner, "began": NOW - began, "ended": NOW - ended, "outcome": outcome, "error": error}


def error(kind: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "message": message, "at": NOW - 5}


def observe(*tasks: Task, there: tuple[Task, ...] = (), **fields: Any) -> Observation:
    """A look at a table that is in order and holds these tasks; ``there`` are dependencies that were read."""
    samples = {status: Sample(tuple(each for each in tasks if each.status is status)) for status in Status}
    known: dict[str, Any] = {"shape": GOOD_SHAPE, "samples": samples, "offset": (-0.4, 0.6)}
    known["dependencies"] = {each.task_id: each for each in there}
    return Observation(TABLE, INDEX, NOW, **(known | fields))


def shaped(**fields: Any) -> Observation:
    return observe(shape=replace(GOOD_SHAPE, **fields))


def indexed(**fields: Any) -> Observation:
    return shaped(indexes=(replace(GOOD_INDEX, **fields),))


DISPATCH = dispatch_layout(shards=1)
DISPATCH_KEYS = (("dispatch", "HASH"), ("dueAt", "RANGE"))
DISPATCH_SHAPE = replace(GOOD_SHAPE, indexes=(IndexShape("dispatch-dueAt-index", "ACTIVE", DISPATCH_KEYS, "INCLUDE"),))


def dispatching(*tasks: Task, status: str = "ACTIVE", keys: Any = DISPATCH_KEYS, **fields: Any) -> Observation:
    """A look at a table of the dispatch layout, whose index is in this state."""
    index = replace(DISPATCH_SHAPE.indexes[0], status=status, keys=keys)
    known: dict[str, Any] = {"shape": replace(DISPATCH_SHAPE, indexes=(index,)), "layout": DISPATCH}
    return observe(*tasks, **(known | fields))


# --- a healthy table ----------------------------------------------------------------------------------------------------

HEALTHY: Mapping[str, Observation] = {
    "an empty table": observe(),
    "a table at work": observe(running("r"), task("p"), ended("s"), ended("d", "DONE")),
    "a first task of a pool at zero, enqueued a minute ago": observe(task("p", age=60)),
    "a task that was retried once by the same agent": observe(
        running("r", retryCount=1, history=[run(A, 60, 30, "retry", "ValueError: no")])
    ),
    "runs whose whole seconds touch": observe(running("r", updatedAt=NOW - 29, history=[run(A, 60, 30, "retry", "no")])),
    "a clock that is a few seconds off": observe(offset=(-4.9, -3.9)),
    "a clock that cannot be said to be off": observe(offset=(-3.0, 20.0)),
    "items without a lockTime, which others write": observe(task("p", without=("lockTime",))),
    "a table of the dispatch layout, without the published index": dispatching(
        task("p", dispatch="default#0", dueAt=NOW - 10),
        running("r", dispatch="default!0", dueAt=NOW + 100),
        ended("s"),
    ),
    "a table that holds its own two items": observe(
        scanned=Scanned(({"taskId": "thunderagent.layout"}, {"taskId": "thunderagent.migration"}), cut=False)
    ),
    "a scan that shows only tasks": observe(scanned=Scanned((task("p").record, ended("s").record), cut=False)),
}


@pytest.mark.parametrize("observation", HEALTHY.values(), ids=HEALTHY.keys())
def test_a_healthy_table_gives_no_finding(observation: Observation) -> None:
    assert diagnose(observation) == ()


# --- symptoms -----------------------------------------------------------------------------------------------------------

E, W, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

SYMPTOMS: Mapping[str, tuple[Observation, Severity, str, str, str]] = {
    # the table
    "there is no table": (observe(shape=None, samples={}), E, "table-missing", TABLE, "no such table"),
    "the table is being made": (shaped(status="CREATING"), E, "table-not-active", TABLE, "CREATING"),
    "the key is another attribute": (shaped(keys=(("id", "HASH"),)), E, "key-wrong", TABLE, "id (HASH)"),
    "the key has a range": (
        shaped(keys=(("taskId", "HASH"), ("createdAt", "RANGE"))),
        E,
        "key-wrong",
        TABLE,
        "createdAt (RANGE)",
    ),
    "the key is a number": (
        shaped(attribute_types={"taskId": "N", "status": "S", "createdAt": "N"}),
        E,
        "key-type-wrong",
        TABLE,
        "of type N",
    ),
    "the dispatch index is missing": (
        dispatching(shape=replace(GOOD_SHAPE, indexes=())),
        E,
        "index-missing",
        "dispatch-dueAt-index",
        "table migrate",
    ),
    "the dispatch index is being built": (
        dispatching(status="CREATING"),
        E,
        "index-building",
        "dispatch-dueAt-index",
        "CREATING",
    ),
    "the dispatch index is over other keys": (
        dispatching(keys=(("status", "HASH"),)),
        E,
        "index-keys-wrong",
        "dispatch-dueAt-index",
        "dueAt (RANGE)",
    ),
    "a task stands where no agent looks": (
        dispatching(task("p")),
        E,
        "not-in-index",
        "dispatch-dueAt-index",
        "table migrate",
    ),
    "a task that only a scan shows stands where no agent looks": (
        dispatching(scanned=Scanned((task("p").record,), cut=False)),
        E,
        "not-in-index",
        "dispatch-dueAt-index",
        ": p.",
    ),
    "the index is missing": (shaped(indexes=()), E, "index-missing", INDEX, "global secondary index"),
    "the index has another name": (indexed(name="by-status"), E, "index-missing", INDEX, "--index by-status"),
    "the index is being built": (indexed(status="CREATING"), E, "index-building", INDEX, "still being built"),
    "the index is being deleted": (indexed(status="DELETING"), E, "index-not-active", INDEX, "DELETING"),
    "the index has no range": (indexed(keys=(("status", "HASH"),)), E, "index-keys-wrong", INDEX, "createdAt (RANGE)"),
    "createdAt is text in the index": (
        shaped(attribute_types={"taskId": "S", "status": "S", "createdAt": "S"}),
        E,
        "index-key-type-wrong",
        INDEX,
        "must be N",
    ),
    "the index projects keys alone": (indexed(projection="KEYS_ONLY"), E, "index-projection-wrong", INDEX, "KEYS_ONLY"),
    "the index shows parts of tasks, so they were not read": (
        indexed(projection="INCLUDE"),
        INFO,
        "tasks-not-read",
        TABLE,
        "Mend the index first",
    ),
    "the index cannot be read, so tasks were not": (indexed(status="CREATING"), INFO, "tasks-not-read", TABLE, "No task"),
    "TTL is off": (shaped(ttl=None), W, "ttl-off", TABLE, "AttributeName=expiresAt"),
    "TTL works on another attribute": (shaped(ttl="ttl"), W, "ttl-other-attribute", TABLE, "on ttl,"),
    "TTL could not be looked at": (shaped(ttl="?"), INFO, "ttl-unknown", TABLE, "DescribeTimeToLive"),
    "capacity is provisioned": (shaped(billing="PROVISIONED"), INFO, "billing-provisioned", TABLE, "PAY_PER_REQUEST"),
    # this machine
    "calls are throttled": (observe(throttled={"Query": 3}), W, "throttled", TABLE, "Query 3 times"),
    "the clock is ahead": (observe(offset=(11.0, 12.0)), W, "clock-offset", "this machine", "11 s ahead of DynamoDB"),
    "the clock is behind": (observe(offset=(-90.0, -89.0)), W, "clock-offset", "this machine", "1 min 29 s behind DynamoDB"),
    # nobody takes the work
    "tasks are ready and no agent ever was": (
        observe(task("p", age=600)),
        E,
        "no-agent",
        "1 task",
        "p, has been ready for 10 min",
    ),
    "tasks are ready and agents are gone": (
        observe(task("p", age=900), ended("s", age=9000, updatedAt=NOW - 800, history=[])),
        E,
        "no-agent",
        "1 task",
        "the last trace of one is from 13 min 20 s ago",
    ),
    "tasks are ready and the only lease has ended": (
        observe(task("p", age=900), running("r", lease=-500, updatedAt=NOW - 800)),
        E,
        "no-agent",
        "1 task",
        "Start agents",
    ),
    "a cancel is no sign of an agent": (
        observe(task("p", age=900), ended("c", "FAILED", error=error("Cancelled"), history=[])),
        E,
        "no-agent",
        "1 task",
        "trace",
    ),
    "a task type that nobody takes": (
        observe(task("m", age=900, taskType="mail"), running("r", age=60, taskType="report")),
        W,
        "type-untaken",
        "mail",
        "of the type mail. Waiting: m; the oldest for 15 min",
    ),
    "tasks without a type that nobody takes": (
        observe(task("m", age=900), ended("s", age=60, taskType="report")),
        W,
        "type-untaken",
        "(no type)",
        "without a type",
    ),
    "more work than agents": (
        observe(task("p", age=900), running("r", age=1000)),
        INFO,
        "backlog-old",
        "1 task",
        "maxReplicas",
    ),
    # waiting for a time
    "tasks wait for their time": (
        observe(task("a", lockTime=NOW + 60), task("b", lockTime=NOW + 600, retryCount=1)),
        INFO,
        "scheduled",
        "2 tasks",
        "a is the next, in 1 min; the last starts at",
    ),
    "of tasks that wait some were run before": (
        observe(task("b", lockTime=NOW + 600, retryCount=1)),
        INFO,
        "scheduled",
        "1 task",
        "1 of them to be retried",
    ),
    "a task waits for a time years ahead": (
        observe(task("a", lockTime=NOW + 900 * 86400)),
        W,
        "scheduled-far-away",
        "a",
        "in 900 d",
    ),
    # waiting for other tasks
    "tasks wait for one that runs": (
        observe(waiting("w", "r"), running("r"), there=(running("r"),)),
        INFO,
        "waiting",
        "r",
        "It is RUNNING, and waited for by 1 task: w",
    ),
    "two tasks wait for each other": (
        observe(waiting("a", "b"), waiting("b", "a")),
        E,
        "dependency-cycle",
        "a -> b -> a",
        "wait for each other",
    ),
    "a task waits for itself": (observe(waiting("a", "a")), E, "dependency-cycle", "a -> a", "waits for itself"),
    "a cycle that goes through tasks beyond the sample": (
        observe(waiting("a", "b"), there=(waiting("b", "c"), waiting("c", "a"))),
        E,
        "dependency-cycle",
        "a -> b -> c -> a",
        "Cancel",
    ),
    "a dependency has failed just now": (
        observe(waiting("w", "f"), there=(ended("f", "FAILED"),)),
        INFO,
        "dependency-failed",
        "w",
        "next look is in 20 s",
    ),
    "a dependency has failed and nobody looked": (
        observe(waiting("w", "f", look=-300), there=(ended("f", "FAILED"),)),
        W,
        "dependency-failed",
        "w",
        "redrive f --dependents",
    ),
    "a dependency is not there yet": (observe(waiting("w", "x")), INFO, "dependency-missing", "w", "for 10 s for x"),
    "a dependency has long been missing": (
        observe(waiting("w", "x", age=900)),
        W,
        "dependency-missing",
        "w",
        "not in the table",
    ),
    "a waiting task is not looked at": (
        observe(waiting("w", "s", look=-600), there=(ended("s"),)),
        W,
        "waiting-not-looked-at",
        "w",
        "s (SUCCESS), and was due",
    ),
    "a waiting task waits for one that could not be read": (
        observe(waiting("w", "s", look=-600), unread=frozenset({"s"})),
        W,
        "waiting-not-looked-at",
        "w",
        "s (not known)",
    ),
    # leases
    "a lease ended and nobody took over": (observe(running("r", lease=-200)), W, "lease-expired", "r", "ended 3 min 20 s ago"),
    "a lease ended and nobody buried it": (
        observe(running("r", lease=-200, retryCount=3)),
        W,
        "lease-expired",
        "r",
        "buried as FAILED",
    ),
    "a lease ended just now": (observe(running("r", lease=-20)), INFO, "lease-just-ended", "r", "taken over by another agent"),
    "a lease that ends in weeks": (observe(running("r", lease=40 * 86400)), W, "lease-endless", "r", A),
    "another program ran it and wrote no status": (
        observe(task("r", "RUNNING", age=900, lockTime=NOW - 600)),
        W,
        "status-not-written",
        "r",
        "never wrote how it ended",
    ),
    "another program took it and wrote no lease": (
        observe(task("r", "RUNNING", age=900, without=("lockTime",))),
        W,
        "status-not-written",
        "r",
        "has no lockTime",
    ),
    # runs
    "two agents ran it at the same time": (
        observe(ended("s", history=[run(A, 100, 40), run(B, 60, 20)])),
        W,
        "runs-overlap",
        "s",
        "07:59:00Z for 20 s",
    ),
    "an agent runs it beside another one's run": (
        observe(running("r", owner=B, updatedAt=NOW - 50, history=[run(A, 100, 20)])),
        W,
        "runs-overlap",
        "r",
        f"{A} and {B}",
    ),
    "several agents ran it one after the other": (
        observe(ended("s", history=[run(A, 100, 60, "lost"), run(B, 50, 20)])),
        INFO,
        "several-owners",
        "1 task",
        f"s by {A}, {B}",
    ),
    "it fails with the same error each time": (
        observe(
            task("p", retryCount=3, history=[run(A, 90 - n * 20, 80 - n * 20, "retry", "KeyError: 'x'") for n in range(3)])
        ),
        W,
        "same-error",
        "p",
        "3 runs failed with the same error: KeyError: 'x'",
    ),
    "it loses its agent each time": (
        observe(running("r", retryCount=2, history=[run(A, 900, 600, "lost"), run(B, 500, 200, "lost")])),
        W,
        "agent-lost-again",
        "r",
        "THUNDERAGENT_MEMORY_MB",
    ),
    "it is put back again and again": (observe(task("p", releaseCount=12)), W, "released-again", "p", "put back 12 times"),
    "tasks have failed": (
        observe(ended("f", "FAILED", error=error("ValueError", "bad row\nand more"))),
        INFO,
        "failed",
        "1 task",
        "FAILED with ValueError: f. The newest says: bad row",
    ),
    # items
    "lockTime is in milliseconds": (
        observe(task("p", lockTime=NOW * 1000)),
        W,
        "time-in-milliseconds",
        "lockTime",
        "nobody takes them",
    ),
    "a lease is in milliseconds": (
        observe(running("r", lockTime=NOW * 1000)),
        W,
        "time-in-milliseconds",
        "lockTime",
        "written in milliseconds",
    ),
    "createdAt is in milliseconds": (
        observe(ended("s", createdAt=NOW * 1000)),
        W,
        "time-in-milliseconds",
        "createdAt",
        "age is wrong",
    ),
    "a number is text": (observe(task("p", retryCount="0")), W, "odd-type", "retryCount", "not a number: p"),
    "a payload is text": (observe(task("p", payload='{"n": 1}')), W, "odd-type", "payload", "not a map"),
    "dependsOn holds numbers": (
        observe(task("p", payload={"dependsOn": [7]})),
        W,
        "odd-type",
        "payload.dependsOn",
        "a taskId or a list of them",
    ),
    "an attribute is absent": (observe(task("p", without=("maxRetry",))), INFO, "attribute-absent", "maxRetry", "default"),
    "an open task expires": (observe(task("p", expiresAt=NOW + 60)), W, "expires-while-open", "1 task", "before they ran"),
    "an ended task never expires": (
        observe(ended("s", expiresAt=None)),
        INFO,
        "never-expires",
        "1 task",
        "without an expiresAt",
    ),
    # what a scan shows
    "an item has another status": (
        observe(scanned=Scanned(({"taskId": "o", "status": "pending"},), cut=False)),
        W,
        "not-a-task",
        "the status 'pending'",
        "in capitals",
    ),
    "an item has no status": (
        observe(scanned=Scanned(({"taskId": "o"},), cut=False)),
        W,
        "not-a-task",
        "no status",
        "with no status is no task",
    ),
    "a task is not in the index": (
        observe(scanned=Scanned(({"taskId": "o", "status": "PENDING"},), cut=False)),
        W,
        "not-in-index",
        INDEX,
        "Without a createdAt",
    ),
    # what was not looked at
    "there are more tasks than were read": (
        observe(samples={Status.PENDING: Sample((task("p"),), cut=True)}),
        INFO,
        "cut",
        "PENDING",
        "the oldest 1 tasks",
    ),
    "there are more ended tasks than were read": (
        observe(samples={Status.DONE: Sample((ended("p", "DONE"),), cut=True)}),
        INFO,
        "cut",
        "DONE",
        "the newest 1 tasks",
    ),
    "the scan was cut": (observe(scanned=Scanned((task("p").record,), cut=True)), INFO, "cut", "scan", "after 1 items"),
}


@pytest.mark.parametrize(("observation", "severity", "code", "subject", "words"), SYMPTOMS.values(), ids=SYMPTOMS.keys())
def test_a_symptom_is_named(observation: Observation, severity: Severity, code: str, subject: str, words: str) -> None:
    found = [finding for finding in diagnose(observation) if finding.code == code]
    assert [(finding.severity, finding.subject) for finding in found] == [(severity, subject)]
    assert words in f"{found[0].what} {found[0].remedy}"


def test_every_symptom_has_a_row() -> None:
    shown = {finding.code for observation, *_ in SYMPTOMS.values() for finding in diagnose(observation)}
    assert shown == {code for _, _, code, _, _ in SYMPTOMS.values()}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_rule_has_a_row(rule: Rule) -> None:
    assert any(list(rule(observation, Patience())) for observation, *_ in SYMPTOMS.values())


# --- what is no symptom -------------------------------------------------------------------------------------------------

SILENT: Mapping[str, tuple[Observation, str]] = {
    "work waits, but an agent ran something lately": (observe(task("p", age=900), ended("s")), "no-agent"),
    "work waits, but an agent looked at waiting tasks lately": (
        observe(task("p", age=900), waiting("w", "x", age=900, updatedAt=NOW - 10)),
        "no-agent",
    ),
    "a type waits behind older tasks of others": (
        observe(task("m", age=900, taskType="mail"), running("r", age=1000, taskType="report")),
        "type-untaken",
    ),
    "a type waits, but one of it runs": (
        observe(task("m", age=900, taskType="mail"), running("r", age=60, taskType="report"), running("q", taskType="mail")),
        "type-untaken",
    ),
    "a task waits for others and so is not ready": (observe(waiting("w", "s", look=-600, age=900)), "no-agent"),
    "another program's run ended just now": (observe(task("r", "RUNNING", lockTime=NOW - 20)), "status-not-written"),
    "another program's run that ended is told once": (
        observe(task("r", "RUNNING", age=900, lockTime=NOW - 600)),
        "lease-expired",
    ),
    "a start in milliseconds is told once": (observe(task("p", lockTime=NOW * 1000)), "scheduled-far-away"),
    "a lease in milliseconds is told once": (observe(running("r", lockTime=NOW * 1000)), "lease-endless"),
    "errors that differ": (
        observe(task("p", history=[run(A, 90 - n * 20, 80 - n * 20, "retry", f"KeyError: {n}") for n in range(3)])),
        "same-error",
    ),
    "a failed task with the same error each time has ended": (
        observe(ended("f", "FAILED", history=[run(A, 90 - n * 20, 80 - n * 20, "retry", "no") for n in range(3)])),
        "same-error",
    ),
    "runs of different tasks overlap": (observe(ended("a"), ended("b", history=[run(B, 20, 5)])), "runs-overlap"),
    "tasks wait in a chain": (observe(waiting("a", "b"), waiting("b", "c"), task("c")), "dependency-cycle"),
    "two paths lead to one task": (
        observe(waiting("a", "b", "c"), waiting("b", "d"), waiting("c", "d"), task("d")),
        "dependency-cycle",
    ),
    "a cycle's tasks have ended": (
        observe(there=(ended("a", "FAILED", payload={"dependsOn": "a"}),)),
        "dependency-cycle",
    ),
    "a dependency could not be read": (observe(waiting("w", "x", age=900), unread=frozenset({"x"})), "dependency-missing"),
}


@pytest.mark.parametrize(("observation", "code"), SILENT.values(), ids=SILENT.keys())
def test_what_is_normal_is_not_named(observation: Observation, code: str) -> None:
    assert code not in {finding.code for finding in diagnose(observation)}


def test_the_worst_comes_first() -> None:
    observation = observe(ended("s", expiresAt=None), running("r", lease=-200), waiting("a", "a"))
    assert [finding.severity for finding in diagnose(observation)] == sorted(
        (finding.severity for finding in diagnose(observation)), key=[E, W, INFO].index
    )


def test_patience_can_be_changed() -> None:
    observation = observe(running("r", lease=-20))
    impatient = diagnose(observation, Patience(recovery=10))
    assert [(finding.code, finding.severity) for finding in impatient] == [("lease-expired", W)]


def test_many_tasks_are_named_in_part() -> None:
    (finding,) = (each for each in diagnose(observe(*(task(f"t{n}", age=900) for n in range(7)))) if each.code == "no-agent")
    assert finding.subject == "7 tasks"
    (failed,) = diagnose(observe(*(ended(f"t{n}", "FAILED", error=error("E")) for n in range(7))))
    assert "t0, t1, t2, t3, t4 and 2 more" in failed.what


def test_every_finding_says_what_to_do() -> None:
    findings: list[Finding] = [finding for observation, *_ in SYMPTOMS.values() for finding in diagnose(observation)]
    assert all(finding.what and finding.remedy for finding in findings)


# --- cycles -------------------------------------------------------------------------------------------------------------

CYCLES: Mapping[str, tuple[dict[str, list[str]], list[tuple[str, ...]]]] = {
    "no task": ({}, []),
    "a chain that ends outside": ({"a": ["b"], "b": ["z"]}, []),
    "one task": ({"a": ["a"]}, [("a",)]),
    "three tasks, in the order in which they wait": ({"c": ["a"], "a": ["b"], "b": ["c"]}, [("a", "b", "c")]),
    "two apart": ({"a": ["b"], "b": ["a"], "x": ["y"], "y": ["x"]}, [("a", "b"), ("x", "y")]),
    "a tail that leads into a cycle": ({"t": ["a"], "a": ["b"], "b": ["a"]}, [("a", "b")]),
    "a tail that leads out of a cycle": ({"a": ["b"], "b": ["a", "t"], "t": []}, [("a", "b")]),
}


@pytest.mark.parametrize(("edges", "cycles"), CYCLES.values(), ids=CYCLES.keys())
def test_cycles(edges: dict[str, list[str]], cycles: list[tuple[str, ...]]) -> None:
    assert find_cycles(edges) == cycles


def test_a_very_long_cycle_is_found() -> None:
    nodes = [f"{number:05}" for number in range(20_000)]
    assert find_cycles({node: [after] for node, after in zip(nodes, [*nodes[1:], nodes[0]], strict=True)}) == [tuple(nodes)]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3)))
def test_what_is_found_is_a_cycle_and_none_is_left(edges: dict[str, list[str]]) -> None:
    found = find_cycles(edges)
    assert all(after in edges[node] for cycle in found for node, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    left = {node: edges[node] for node in edges.keys() - {node for cycle in found for node in cycle}}
    assert find_cycles(left) == []
    assert all(not _reaches_itself(node, left) for node in left)


def _reaches_itself(start: str, edges: dict[str, list[str]]) -> bool:
    seen: set[str] = set()
    todo = list(edges[start])
    while todo:
        node = todo.pop()
        if node == start:
            return True
        if node not in seen:
            seen.add(node)
            todo += edges.get(node, [])
    return False
