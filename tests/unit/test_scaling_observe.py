"""Whose lease is whose: leases by lockOwner are given to the replicas that hold them."""

from __future__ import annotations

import pytest

from thunderagent.scaling import Counts, Observation, Replica, ReplicaState, observe, owner_of

UID = "5f0c2b1e-7d3a-4e53-9a6e-0f6f2f0c9b11"


def seen(leases: dict[str, int], *replicas: Replica) -> Observation:
    return observe(pool="reports", counts=Counts(leases=leases), replicas=replicas, desired=len(replicas))


OWNERS = [
    pytest.param(f"reports/reports-6d4b-x2x9/{UID}-k3f9", f"reports/reports-6d4b-x2x9/{UID}", id="a pod, by its uid"),
    pytest.param("reports/host-1/4711-k3f9", "reports/host-1/4711", id="a process, by its pid"),
    pytest.param("somebody", "somebody", id="an owner of another form is itself"),
]


@pytest.mark.parametrize(("lock_owner", "owner"), OWNERS)
def test_owner_of(lock_owner: str, owner: str) -> None:
    assert owner_of(lock_owner) == owner


def test_a_replica_has_what_its_agent_holds() -> None:
    one, other = Replica("reports/a/1"), Replica("reports/b/2")
    observation = seen({"reports/a/1-x": 3}, one, other)
    assert [replica.running for replica in observation.replicas] == [3, 0]
    assert (observation.running, observation.floor) == (3, 1)


def test_a_restarted_container_still_holds_what_its_predecessor_took() -> None:
    observation = seen({"reports/a/1-x": 1, "reports/a/1-y": 2}, Replica("reports/a/1"))
    assert observation.replicas[0].running == 3


def test_leases_of_replicas_that_are_gone_stay_work_but_no_floor() -> None:
    observation = seen({"reports/gone/9-x": 2}, Replica("reports/a/1"))
    assert (observation.running_gone, observation.work, observation.floor) == (2, 2, 0)


def test_terminating_replicas_finish_what_they_run_themselves() -> None:
    observation = seen({"reports/a/1-x": 2}, Replica("reports/a/1", ReplicaState.TERMINATING))
    assert (observation.work, observation.floor, observation.running_gone) == (0, 0, 0)


@pytest.mark.parametrize("owner", ["invoices/a/1-x", "-/host/1-x", "reports-2/a/1-x", "someone else", ""])
def test_leases_of_others_are_not_this_pools_work(owner: str) -> None:
    assert seen({owner: 5}, Replica("reports/a/1")).work == 0


def test_running_is_derived_anew_each_time() -> None:
    """Nothing is counted up and down in memory, so nothing can leak."""
    assert seen({}, Replica("reports/a/1", running=7)).replicas[0].running == 0


def test_counts_of_the_table_are_passed_on() -> None:
    counts = Counts(ready=1, waiting=2, waiting_due=1, expired=3, oldest_ready_age=4.5, cut=True)
    observation = observe(pool="reports", counts=counts, replicas=(), desired=6)
    assert observation == Observation(
        6, ready=1, waiting=2, waiting_due=1, expired=3, running_gone=0, oldest_ready_age=4.5, cut=True
    )
