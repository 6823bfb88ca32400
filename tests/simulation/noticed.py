"""Which seed notices which mutant: numbers for test_mutants.py, made by trying seeds in turn."""

from __future__ import annotations

NOTICED: dict[str, int] = {
    "enqueue over a task that is there": 7,  # a task is enqueued once
    "claim what is not PENDING": 0,  # what has ended is changed by a redrive alone
    "claim what is not due": 40,  # nothing is taken before its time
    "take over what is not RUNNING": 34,  # only what is RUNNING is taken over or buried
    "take over under a good lease": 42,  # nothing is taken before its time
    "bury what is not RUNNING": 5,  # what has ended is changed by a redrive alone
    "defer what is not PENDING": 12,  # what has ended is changed by a redrive alone
    "unblock what is not PENDING": 74,  # only what is PENDING is deferred or abandoned
    "abandon what is not PENDING": 12,  # what has ended is changed by a redrive alone
    "cancel without a look at what has changed": 8,  # what has ended is changed by a redrive alone
    "redrive what has not failed": 0,  # only what has failed is redriven
    "a take-over charges nothing": 1,  # a take-over charges the lost run
    "a retry charges nothing": 2,  # a retry is charged, a release is not
    "a release charges a retry": 27,  # a retry is charged, a release is not
    "the last token is not kept": 2,  # the last token is kept
    "a cancel drops the lease": 0,  # a cancel leaves the lease until its agent has stopped
    "a redrive waits for nothing": 0,  # a redrive waits for the lease that was left
    "a renewal does not move the lease": 7,  # an agent that could renew keeps its task
    "write under a lease without a look at whose it is": 17,  # the last token is kept
    "write the outcome unconditionally": 17,  # the last token is kept
    "renew unconditionally": 0,  # no write with a stale token is accepted
    "complete unconditionally": 17,  # the last token is kept
    "retry unconditionally": 16,  # no write with a stale token is accepted
    "fail unconditionally": 62,  # what has ended is changed by a redrive alone
    "release unconditionally": 8,  # what has ended is changed by a redrive alone
    "one token for all claims": 2,  # only the owner writes under a lease
    "a lost reply to enqueue is a failure": 6,  # a lost reply is not a failure
    "a lost reply to claim is a failure": 2,  # a lost reply is not a failure
    "a lost reply to complete is a failure": 36,  # a lost reply is not a failure
    "a lost reply to retry is a failure": 16,  # a lost reply is not a failure
    "a lost reply to fail is a failure": 64,  # a lost reply is not a failure
    "a lost reply to release is a failure": 225,  # a lost reply is not a failure
    "a claim without a reply is forgotten": 116,  # an agent that could renew keeps its task
    "any lost outcome counts as written": 17,  # a write is taken for done only if it was
    "the index is the truth": 2,  # only what is PENDING is claimed
    "the machine's clock is the table's": 2,  # nothing is taken before its time
    "leases are taken by the bold bound": 4,  # nothing is taken before its time
    "take-overs right after an outage": 14,  # an agent that could renew keeps its task
    "no renewals while a handler runs": 2,  # an agent that could renew keeps its task
    "a waiting task is claimed": 5,  # a task waits for its dependencies
    "one reading of zero is an empty queue": 7,  # a scale-down needs two low readings in a row
    "a read that failed is a zero": 15,  # no scaling on a failed read
    "what waits for dependencies is work": 103,  # what waits is no reason to grow
    "no floor": 39,  # pods that go are idle
    "any pod may go": 39,  # pods that go are idle
    "an operator leads for ever": 3,  # only the leader writes
    "a claimed task stays among the ready ones": 500,  # a task is filed where somebody will look
    "a renewed lease is looked at too late": 502,  # a task is filed where somebody will look
    "what waits is filed as ready": 502,  # a task waits as long as it may
    "one shard is read": 502,  # nothing is stuck once faults have ended
    "an entry is taken for the task": 502,  # a task waits as long as it may
}

UNNOTICED: dict[str, str] = {
    "bury under a good lease": "an index that lags has to hide a renewal of the last run that a task has: not in these seeds",
    "take over without a look at token and retries": "two agents have to lose a task while a third keeps it in mind: too rare",
    "defer without a look at lockTime": "not noticed by those seeds that were tried",
    "file a lease without a look at whose it is": "it has to change hands just while it is filed; the contract suite shows it",
    "abandon without a look at lockTime": "lets through what a known fault does; once mended, enqueueToken covers it",
}
"""Mutants that no seed has noticed, and why."""
