"""Cycles of a pool against a small cluster and a table in memory: what a user sees of scaling."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from controller.allowed import Allowance
from controller.conditions import rfc3339
from controller.names import BUSY
from controller.pods import CLUSTER_AUTOSCALER, KARPENTER
from controller.reading import ReadTimedOut
from controller.status import Status
from tests.controller.fakecluster import Manifest, unavailable
from tests.controller.world import World, spec
from thunderagent.errors import (
    IndexMissing,
    InvalidSettings,
    StoreAccessDenied,
    StoreThrottled,
    StoreUnavailable,
    TableMissing,
)
from thunderagent.scaling.victims import COST_ANNOTATION

# --- growing and shrinking ------------------------------------------------------------------------------------------------


def test_from_zero_to_what_is_needed_in_one_step() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.enqueue(7)
    report = world.cycle()
    assert report.scaled == (0, 7)
    assert world.cluster.replicas() == 7


def test_a_new_pool_without_work_gets_a_deployment_of_no_replicas() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cycle()
    assert world.cluster.replicas() == 0
    assert world.cluster.all_pods() == []
    assert world.ready() == ("True", "Scaling")
    assert world.condition("Active")["reason"] == "NoWork"


def test_back_to_zero_when_the_work_is_done() -> None:
    world = World()
    world.grown(5)
    world.cycles(4)
    assert world.cluster.replicas() == 0


def test_one_low_reading_takes_nothing_away() -> None:
    world = World()
    world.grown(5)
    world.cycle()
    assert world.cluster.replicas() == 5


def test_running_tasks_keep_their_replicas_when_nothing_is_queued() -> None:
    """keda#1663, #7368: the queue reads 0 while work is in flight."""
    world = World()
    pods = world.grown(3)
    for pod in pods:
        world.start(pod)
    world.cycles(20)
    assert world.cluster.replicas() == 3


def test_expired_leases_wake_a_pool_at_zero() -> None:
    """keda's aws-dynamodb scaler: all agents dead, tasks RUNNING, nothing PENDING."""
    world = World()
    world.cluster.create_pool(spec(activationThreshold=5))
    world.start_as("team.reports/gone/uid-x", 2, taskType=None)
    world.cycle()
    assert world.cluster.replicas() == 0
    world.clock.advance(400)
    world.cycle()
    assert world.cluster.replicas() == 2


def test_a_threshold_above_what_all_replicas_are_for_can_be_passed() -> None:
    """A reading stops counting at some number of tasks; that number must not hide that there are enough to wake the pool."""
    world = World()
    world.cluster.create_pool(spec(maxReplicas=3, tasksPerReplica=1, activationThreshold=5))
    world.enqueue(5)
    world.cycles(3)
    assert world.cluster.replicas() == 0
    world.enqueue(1)
    world.cycle()
    assert world.cluster.replicas() == 3


def test_pods_that_run_nothing_yet_go_before_pods_that_work() -> None:
    """dask-kubernetes#659: healthy workers removed while others still pull images."""
    world = World()
    busy = world.grown(3)
    for pod in busy:
        world.start(pod)
    world.cluster.image_pulls = False
    world.enqueue(3)
    world.cycle()
    for task_id, record in world.memory.records().items():
        if record["status"] == "PENDING":
            world.end(task_id)
    world.cycles(6)
    assert {pod["metadata"]["uid"] for pod in world.cluster.pod_objects()} == {pod["metadata"]["uid"] for pod in busy}


# --- no running task is interrupted ----------------------------------------------------------------------------------------


def names(pods: list[Manifest]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}


def test_idle_pods_go_and_busy_ones_stay() -> None:
    """keda#2900, #3674."""
    world = World()
    pods = world.grown(6)
    busy = [pods[1], pods[4]]
    for pod in busy:
        world.start(pod)
    world.cycles(8)
    assert names(world.cluster.pod_objects()) == names(busy)


def test_a_pod_that_becomes_busy_between_cost_and_scale_is_left_to_drain() -> None:
    """The one race that remains: the pod finishes what it took, by its grace, and no other busy pod is touched."""
    world = World()
    pods = world.grown(4)
    world.start(pods[0])
    world.cycle()
    raced: list[str] = []

    def take_a_task() -> None:
        if not raced:
            raced.extend(world.start(pods[3]))

    world.cluster.before_scale = take_a_task
    world.cycles(6)
    assert raced
    assert pods[0]["metadata"]["name"] in names(world.cluster.pod_objects())
    (drained,) = [pod for pod in world.cluster.all_pods() if pod["metadata"]["uid"] == pods[3]["metadata"]["uid"]]
    grace = world.cluster.manifest()["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert drained["metadata"]["deletionTimestamp"]
    assert grace > 600


def test_what_a_draining_pod_runs_asks_for_no_other_replica() -> None:
    world = World()
    pods = world.grown(2)
    world.cycles(4)
    assert world.cluster.replicas() == 0
    world.start(pods[0])
    world.cycles(3)
    assert world.cluster.replicas() == 0


def removed(world: World, pods: list[Manifest]) -> set[str]:
    return names(pods) - names(world.cluster.pod_objects())


def test_costs_are_written_a_while_before_the_scale_down_that_relies_on_them() -> None:
    """kubernetes#126138: a cost written just before the scale-down is ignored."""
    world = World()
    pods = world.grown(4, pollSeconds=1)
    world.cluster.lag = 1.9  # so late does the ReplicaSet controller see what is written on pods
    world.start(pods[3])  # the youngest: without its cost it would be the first to go
    world.cycles(10)
    assert world.cluster.replicas() == 1
    assert removed(world, pods) == names(pods[:3])


def test_a_new_operator_waits_for_costs_that_the_old_one_has_just_written() -> None:
    world = World()
    pods = world.grown(4, pollSeconds=1)
    world.cluster.lag = 1.9
    world.start(pods[3])
    world.cycle()  # the busy one is marked, and then the operator dies
    world.restart()
    restarted = decided = world.clock.now()
    while world.cluster.replicas() == 4:
        decided = world.clock.now()
        world.cycle()
    assert decided - restarted >= 2
    assert removed(world, pods) <= names(pods[:3])


def test_nothing_is_taken_away_while_the_deployments_controller_is_behind() -> None:
    world = World()
    pods = world.grown(4)
    world.cluster.set_replicas("team", "reports", 5, "kubectl")
    world.cluster.asleep = True
    world.cycles(6)
    assert world.cluster.replicas() == 5
    assert "latest spec" in world.condition("Active")["message"]
    world.cluster.asleep = False
    world.start(pods[0])
    world.cycles(6)
    assert world.cluster.replicas() == 1


PACES = [pytest.param(5, 0.0, id="at the default poll"), pytest.param(1, 1.9, id="at a fast poll, the ReplicaSet late")]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("poll", "lag"), PACES)
def test_random_scale_downs_never_take_a_pod_that_the_reading_showed_busy(poll: int, lag: float, seed: int) -> None:
    world, rng = World(), random.Random(seed)
    world.grown(10, pollSeconds=poll)
    world.cluster.lag = lag
    running: dict[str, str] = {}
    for _ in range(60):
        for task_id in list(running):
            if rng.random() < 0.3:
                world.end(task_id)
                del running[task_id]
        idle = [pod for pod in world.cluster.pod_objects() if pod["metadata"]["uid"] not in running.values()]
        for pod in rng.sample(idle, k=min(len(idle), rng.randint(0, 2))):
            (task_id,) = world.start(pod)
            running[task_id] = pod["metadata"]["uid"]
        world.cycle()
        alive = {pod["metadata"]["uid"] for pod in world.cluster.pod_objects()}
        assert set(running.values()) <= alive
    assert world.cluster.replicas() < 10


def test_busy_pods_are_kept_from_node_autoscalers_and_idle_ones_are_not() -> None:
    """karpenter#701."""
    world = World()
    pods = world.grown(2, minReplicas=2)
    tasks = world.start(pods[0])
    world.cycle()
    busy, idle = (pod["metadata"].get("annotations", {}) for pod in world.cluster.pod_objects())
    assert (busy[KARPENTER], busy[CLUSTER_AUTOSCALER], busy[COST_ANNOTATION]) == ("true", "false", "1")
    assert idle == {}
    world.end(*tasks)
    world.cycles(8)
    assert world.cluster.pod_objects()[0]["metadata"]["annotations"] == {}


def test_an_annotation_that_the_users_template_has_set_is_not_taken_off() -> None:
    world = World()
    pods = world.grown(1, minReplicas=1)
    pods[0]["metadata"]["annotations"] = {KARPENTER: "true"}
    tasks = world.start(pods[0])
    world.cycle()
    assert pods[0]["metadata"]["annotations"][BUSY] == CLUSTER_AUTOSCALER
    world.end(*tasks)
    world.cycles(8)
    assert world.cluster.pod_objects()[0]["metadata"]["annotations"] == {KARPENTER: "true"}


def test_short_tasks_do_not_make_every_poll_a_write_on_every_pod() -> None:
    world = World()
    pods = world.grown(4, minReplicas=4)
    world.cluster.writes.clear()
    for turn in range(12):
        tasks = world.start(pods[turn % 4])
        world.cycle()
        world.end(*tasks)
    assert len([1 for method, _ in world.cluster.writes if method == "annotate_pod"]) == 4


def test_a_lowered_maximum_waits_for_what_runs() -> None:
    world = World()
    for pod in world.grown(4):
        world.start(pod)
    world.cluster.edit_pool(lambda spec: spec["scaling"].update(maxReplicas=1))
    world.cycles(10)
    assert world.cluster.replicas() == 4


def test_nothing_is_taken_away_during_a_rollout() -> None:
    world = World()
    world.grown(4)
    world.cluster.edit_pool(lambda spec: spec["template"]["spec"]["containers"][0].update(image="myapp:2"))
    world.cluster.image_pulls = False
    real = world.cluster._run_set
    world.cluster._run_set = lambda key, uid, wanted: real(key, uid, max(wanted, 2))  # type: ignore[assignment,method-assign]
    world.cycles(6)
    assert world.cluster.replicas() == 4
    assert "rollout" in world.condition("Active")["message"]


def test_pods_of_others_with_the_same_labels_are_not_the_pools() -> None:
    """dask-kubernetes#914: workers of another group are retired."""
    world = World()
    pods = world.grown(2, minReplicas=2)
    stranger = {**pods[0], "metadata": {**pods[0]["metadata"], "name": "stranger", "uid": "other", "ownerReferences": []}}
    world.cluster.put_pod(stranger)
    world.start(stranger, identity="team.reports")
    world.cycles(4)
    assert "annotations" not in stranger["metadata"]
    assert world.status()["running"] == 1, "its lease is work of a replica that is gone, and no floor"


def test_pools_of_one_name_in_two_namespaces_do_not_mix() -> None:
    world = World()
    world.cluster.create_pool(spec(), namespace="blue")
    world.cluster.create_pool(spec(), namespace="green")
    world.start_as("blue.reports/pod/uid-x", 3)
    world.cycle(namespace="blue")
    world.cycle(namespace="green")
    assert world.status(namespace="blue")["running"] == 3
    assert world.status(namespace="green")["running"] == 0


# --- an error is never a zero ------------------------------------------------------------------------------------------------

READ_ERRORS = [
    pytest.param(StoreUnavailable("no reply"), "TableUnreachable", id="DynamoDB unreachable"),
    pytest.param(ReadTimedOut("not read in time"), "TableUnreachable", id="a table that hangs"),
    pytest.param(StoreThrottled("slow down"), "TableThrottled", id="throttled"),
    pytest.param(TableMissing("no table"), "TableMissing", id="table missing, or in another region"),
    pytest.param(IndexMissing("no index"), "IndexMissing", id="index missing"),
    pytest.param(IndexMissing("Cannot read from backfilling index"), "IndexBuilding", id="index still building"),
    pytest.param(StoreAccessDenied("not allowed (AccessDeniedException)"), "AccessDenied", id="access denied"),
    pytest.param(StoreAccessDenied("not allowed (ExpiredTokenException)"), "CredentialsExpired", id="credentials expired"),
    pytest.param(StoreAccessDenied("No AWS credentials for Query"), "CredentialsMissing", id="no credentials"),
    pytest.param(InvalidSettings("No AWS region is set."), "RegionMissing", id="no region"),
    pytest.param(RuntimeError("a bug"), "InternalError", id="a bug"),
]


@pytest.mark.parametrize(("error", "reason"), READ_ERRORS)
def test_a_failing_read_changes_no_replicas_and_says_why(error: Exception, reason: str) -> None:
    """keda#1850, #2244: source down, scaled to zero."""
    world = World()
    world.grown(5)
    world.table.error = error
    world.cluster.writes.clear()
    world.cycles(20)
    assert world.cluster.replicas() == 5
    assert not [what for method, what in world.cluster.writes if method == "scale_deployment"]
    assert world.ready() == ("False", reason)


def test_after_an_outage_the_pool_scales_again_at_once() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cycle()
    world.table.error = StoreUnavailable("no reply")
    world.cycles(180)
    world.table.error = None
    world.enqueue(3)
    world.cycle()
    assert world.cluster.replicas() == 3
    assert world.ready() == ("True", "Scaling")


def test_the_status_says_since_when_the_table_is_away() -> None:
    world = World()
    world.grown(2)
    world.cycles(20)
    world.table.error = StoreUnavailable("no reply")
    began = world.clock.now()
    world.cycles(30)
    assert world.condition("Ready")["lastTransitionTime"] == rfc3339(began)


FALLBACK = {"fallback": {"failedReads": 3, "replicas": 4}}


@pytest.mark.parametrize("before", [pytest.param(0, id="from 0 replicas"), pytest.param(2, id="from some")])
def test_fallback_enters_and_leaves(before: int) -> None:
    """keda#7239: fallback never ends from zero replicas."""
    world = World()
    world.grown(before, **FALLBACK)
    world.table.error = StoreUnavailable("no reply")
    world.cycles(2)
    assert world.cluster.replicas() == before
    world.cycle()
    assert world.cluster.replicas() == 4
    assert world.condition("Fallback")["status"] == "True"
    world.table.error = None
    world.cycles(6)
    assert world.cluster.replicas() == 0
    assert world.condition("Fallback")["status"] == "False"


# --- held by a person --------------------------------------------------------------------------------------------------------

PAUSES = [
    pytest.param({"paused": "true"}, 5, 3, "Paused", id="all"),
    pytest.param({"paused_in": "true"}, 1, 3, "PausedIn", id="no scaling in"),
    pytest.param({"paused_in": "true"}, 5, 5, "PausedIn", id="no scaling in, still out"),
    pytest.param({"paused_out": "true"}, 5, 3, "PausedOut", id="no scaling out"),
    pytest.param({"paused_at_replicas": "2"}, 5, 2, "PausedAtReplicas", id="pinned"),
]


@pytest.mark.parametrize(("annotations", "tasks", "replicas", "reason"), PAUSES)
def test_a_pause_holds_and_its_end_ends_it(annotations: dict[str, str], tasks: int, replicas: int, reason: str) -> None:
    """keda#5526, #6421, #6982, #7231: stuck in paused."""
    world = World()
    world.grown(3)
    world.cluster.annotate_pool(**annotations)
    world.enqueue(tasks)
    world.cycles(6)
    assert world.cluster.replicas() == replicas
    assert (world.condition("Paused")["status"], world.condition("Paused")["reason"]) == ("True", reason)
    world.cluster.annotate_pool()
    world.cycles(6)
    assert world.cluster.replicas() == tasks
    assert world.condition("Paused")["status"] == "False"


def test_a_pause_that_cannot_be_understood_holds_everything_and_says_so() -> None:
    world = World()
    world.grown(3)
    world.cluster.annotate_pool(paused_at_replicas="two")
    world.enqueue(9)
    world.cycles(3)
    assert world.cluster.replicas() == 3
    assert world.ready() == ("False", "InvalidAnnotation")
    assert "whole number" in world.condition("Ready")["message"]


def test_a_paused_pool_can_be_deleted_with_nobody_there() -> None:
    """keda#7950, #5090, ARC#4484: finalizers keep objects from going."""
    world = World()
    pods = world.grown(2)
    world.cluster.annotate_pool(paused="true")
    world.cycle()
    assert "finalizers" not in world.cluster.pool_object()["metadata"]
    world.cluster.delete_pool()
    assert not world.cluster.has_deployment()
    assert all("deletionTimestamp" in pod["metadata"] for pod in pods)


# --- restarts, conflicts, other hands ---------------------------------------------------------------------------------------


def test_a_restart_of_the_operator_changes_nothing() -> None:
    """keda#2098, #6440, #6233: an operator restart deletes running work."""
    world = World()
    pods = world.grown(4, cooldownSeconds=300, scaleDown={"stabilizationWindowSeconds": 300})
    world.start(pods[2])
    world.cycles(3)
    before = world.cluster.manifest()
    world.cluster.writes.clear()
    world.restart()
    world.cycles(3)
    assert world.cluster.manifest()["spec"] == before["spec"]
    assert {method for method, _ in world.cluster.writes} <= {"write_status"}


def test_a_conflict_is_decided_anew_in_the_next_cycle() -> None:
    world = World()
    world.grown(5)
    touched = iter([True])

    def touch() -> None:
        if next(touched, False):
            world.cluster.touch_deployment()

    world.cluster.before_scale = touch
    world.cycles(2)
    assert world.cluster.replicas() == 5, "decided on a version that was stale"
    world.cycles(2)
    assert world.cluster.replicas() == 0


def test_growing_goes_on_while_only_the_status_of_the_deployment_changes() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cycle()
    world.enqueue(3)
    touched = iter([True, True])

    def touch() -> None:
        if next(touched, False):
            world.cluster.touch_deployment()

    world.cluster.before_scale = touch
    report = world.cycle()
    assert report.scaled == (0, 3)
    assert world.cluster.replicas() == 3


def test_one_change_by_hand_is_answered() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.enqueue(3)
    world.cycle()
    world.cluster.set_replicas("team", "reports", 8, "kubectl")
    world.cycles(6)
    assert world.cluster.replicas() == 3
    assert world.ready() == ("True", "Scaling")


def test_a_rival_is_told_and_not_fought() -> None:
    """keda#5572, temporal-worker-controller#529, #439."""
    world = World()
    world.cluster.create_pool(spec())
    world.enqueue(3)
    world.cycle()
    world.cluster.writes.clear()
    for _ in range(60):
        world.cluster.set_replicas("team", "reports", 1, "argocd-controller")
        world.cycle()
    assert len([1 for method, _ in world.cluster.writes if method == "scale_deployment"]) == 1
    assert world.ready() == ("False", "Conflict")
    assert "argocd-controller" in world.condition("Ready")["message"]


def test_once_the_rival_is_gone_the_pool_scales_again() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.enqueue(3)
    world.cycle()
    for _ in range(4):
        world.cluster.set_replicas("team", "reports", 1, "argocd-controller")
        world.cycle()
    world.cycles(70)
    assert world.cluster.replicas() == 3
    assert world.ready() == ("True", "Scaling")


def test_a_scale_whose_reply_was_lost_is_not_taken_for_a_rivals() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cycle()
    for tasks in (1, 3, 5, 7):
        world.enqueue()
        world.cycle()
        assert world.cluster.replicas() == tasks
        world.enqueue()
        world.cluster.errors["scale_deployment"] = unavailable()
        world.cycle()
        world.cluster.set_replicas("team", "reports", tasks + 1, "thunderagent-operator/scale")  # it had gone through


@pytest.mark.parametrize(
    "method", ["deployment", "replica_sets", "pods", "scale_deployment", "annotate_pod", "write_status", "*"]
)
def test_an_api_server_that_is_away_changes_nothing_and_is_asked_again(method: str) -> None:
    world = World()
    pods = world.grown(3)
    world.start(pods[0])
    world.enqueue(4)
    world.cluster.errors[method] = unavailable(60)
    world.cycles(30)
    world.cluster.errors.clear()
    world.cycles(2)
    assert world.cluster.replicas() == 5
    assert world.ready() == ("True", "Scaling")


# --- what a person is told ---------------------------------------------------------------------------------------------------


def test_an_exceeded_quota_is_told() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cluster.quota = 2
    world.enqueue(5)
    world.cycles(2)
    assert world.ready() == ("False", "QuotaExceeded")
    assert "exceeded quota: team" in world.condition("Ready")["message"]


def test_images_that_cannot_be_pulled_are_told() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cluster.image_pulls = False
    world.enqueue(2)
    world.cycles(2)
    assert world.ready() == ("False", "ImagePullFailed")
    assert "2 pods" in world.condition("Ready")["message"]


def test_pods_that_cannot_be_scheduled_are_told_after_a_while() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cluster.schedulable = False
    world.enqueue(2)
    world.cycles(3)
    assert world.ready() == ("True", "Scaling")
    world.cycles(20)
    assert world.ready() == ("False", "PodsPending")
    assert "nodes are available" in world.condition("Ready")["message"]


def no_agent(spec: Manifest) -> None:
    spec["template"]["spec"]["containers"][0]["name"] = "other"


def duplicate_env(spec: Manifest) -> None:
    spec["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]


def short_grace(spec: Manifest) -> None:
    spec["template"]["spec"]["terminationGracePeriodSeconds"] = 30


TEMPLATES = [
    pytest.param(no_agent, 'none is named "agent"', id="no container of the agent's name"),
    pytest.param(duplicate_env, "duplicate entries", id="an env name twice"),
    pytest.param(short_grace, "running tasks are killed", id="a grace shorter than the drain"),
]


@pytest.mark.parametrize(("spoil", "words"), TEMPLATES)
def test_a_template_that_is_refused_is_told_and_the_old_one_goes_on(spoil: Callable[[Manifest], Any], words: str) -> None:
    world = World()
    world.grown(2)
    world.cluster.edit_pool(spoil)
    world.enqueue(4)
    world.cycle()
    assert world.ready() == ("False", "TemplateRefused")
    assert words in world.condition("Ready")["message"]
    assert world.cluster.replicas() == 4


def test_the_words_of_a_webhook_are_told() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cluster.refuse = 'admission webhook "images.example" denied the request: images must come from our registry'
    world.cycle()
    assert world.ready() == ("False", "TemplateRefused")
    assert "images must come from our registry" in world.condition("Ready")["message"]


def test_a_namespace_that_may_not_use_the_table_gets_no_call_to_aws() -> None:
    world = World(allowed=[Allowance(namespaces=("team",), tables=("team-*",))])
    world.cluster.create_pool(spec())
    world.cycle()
    assert world.ready() == ("False", "NotAllowed")
    assert "TaskTable" in world.condition("Ready")["message"]
    assert (world.opened, world.table.pages) == ([], 0)


def test_an_endpoint_is_refused_unless_allowed() -> None:
    world = World()
    world.cluster.create_pool({**spec(), "queue": {"table": "TaskTable", "endpoint": "http://evil.example"}})
    world.cycle()
    assert world.ready() == ("False", "NotAllowed")
    assert world.opened == []


def test_a_deployment_of_the_pools_name_that_is_not_its_own_is_left_alone() -> None:
    world = World()
    world.cluster.put_deployment("reports", replicas=3)
    world.cluster.create_pool(spec())
    world.enqueue(5)
    world.cycles(2)
    assert world.cluster.replicas() == 3
    assert world.ready() == ("False", "DeploymentNotOwned")


def test_a_spec_that_an_older_crd_let_through_is_told() -> None:
    world = World()
    world.cluster.create_pool(spec(minReplicas=20))
    world.cycle()
    assert world.ready() == ("False", "InvalidSpec")
    assert "minReplicas" in world.condition("Ready")["message"]


def test_an_idle_pool_writes_no_status() -> None:
    world = World()
    world.cluster.create_pool(spec())
    world.cycles(2)
    world.cluster.writes.clear()
    world.cycles(100)
    assert world.cluster.writes == []


def test_a_steady_load_writes_status_now_and_then() -> None:
    world = World()
    world.grown(3)
    world.cluster.writes.clear()
    for _ in range(60):
        world.enqueue(1)
        world.cycle()
        world.end_all()
    written = [1 for method, _ in world.cluster.writes if method == "write_status"]
    assert 1 <= len(written) <= 25  # of 60 cycles


def test_events_tell_changes_once() -> None:
    world = World()
    world.grown(1, minReplicas=1)
    world.cluster.notices.clear()
    world.table.error = StoreUnavailable("no reply")
    world.cycles(10)
    world.table.error = None
    world.cycles(10)
    assert [(each.kind, each.reason) for each in world.cluster.notices] == [
        ("Warning", "TableUnreachable"),
        ("Normal", "Scaling"),
    ]


# --- the Deployment ---------------------------------------------------------------------------------------------------------


def test_a_changed_template_rolls_out_and_foreign_fields_and_replicas_stay() -> None:
    world = World()
    world.grown(3, minReplicas=3)
    world.cluster._deployments["team", "reports"].fields["metadata", "labels", "cost-centre"] = "42"
    world.cluster.edit_pool(lambda spec: spec["template"]["spec"]["containers"][0].update(image="myapp:2"))
    world.cycle()
    deployment = world.cluster.manifest()
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "myapp:2"
    assert deployment["metadata"]["labels"]["cost-centre"] == "42"
    assert world.cluster.replicas() == 3


def test_what_a_template_no_longer_names_goes() -> None:
    world = World()
    pool = spec(minReplicas=1)
    pool["template"]["spec"]["priorityClassName"] = "reports"
    world.cluster.create_pool(pool)
    world.cycle()
    assert world.cluster.manifest()["spec"]["template"]["spec"]["priorityClassName"] == "reports"
    world.cluster.edit_pool(lambda spec: spec["template"]["spec"].pop("priorityClassName"))
    world.cycle()
    assert "priorityClassName" not in world.cluster.manifest()["spec"]["template"]["spec"]
    assert world.cluster.replicas() == 1


@pytest.mark.parametrize("survived", [1, 2, 3])
def test_an_operator_that_dies_while_it_creates_the_deployment_leaves_nothing_half_done(survived: int) -> None:
    world = World()
    pool = spec()
    pool["template"]["spec"]["priorityClassName"] = "reports"
    world.cluster.create_pool(pool)
    world.cluster.errors["apply_deployment"] = []
    real, calls = world.cluster._write, iter(range(100))

    def dying(method: str, what: str) -> None:
        if method == "apply_deployment" and next(calls) >= survived:
            raise unavailable()[0]
        real(method, what)

    world.cluster._write = dying  # type: ignore[method-assign]
    world.cycle()
    world.cluster._write = real  # type: ignore[method-assign]
    world.restart()
    world.cycle()
    world.cluster.edit_pool(lambda spec: spec["template"]["spec"].pop("priorityClassName"))
    world.cycle()
    assert "priorityClassName" not in world.cluster.manifest()["spec"]["template"]["spec"]
    assert world.cluster.replicas() == 0


def test_an_edit_of_the_scaling_restarts_no_pod() -> None:
    world = World()
    pods = world.grown(2, minReplicas=2)
    world.cluster.edit_pool(lambda spec: spec["scaling"].update(maxReplicas=7, pollSeconds=7))
    world.cycles(3)
    assert names(world.cluster.pod_objects()) == names(pods)


def test_fields_that_a_new_crd_adds_with_their_defaults_restart_no_pod() -> None:
    """ARC#4147, #3282 and an upgrade of the operator."""
    world = World()
    pods = world.grown(2, minReplicas=2)

    def as_a_newer_crd_defaults(spec: Manifest) -> None:
        spec["agent"].update(batch=10, leaseSeconds=300, slots={"processes": 1})
        spec["queue"].update(index="status-createdAt-index")

    world.cluster.edit_pool(as_a_newer_crd_defaults)
    world.cycles(3)
    assert names(world.cluster.pod_objects()) == names(pods)


# --- targetRef ---------------------------------------------------------------------------------------------------------------


def target_spec(**scaling: Any) -> Manifest:
    return {**spec(**scaling), "template": None, "targetRef": {"name": "legacy"}}


def test_a_target_is_scaled_and_nothing_else_of_it_is_written() -> None:
    world = World()
    world.cluster.put_deployment("legacy")
    world.cluster.create_pool(target_spec())
    world.enqueue(3)
    world.cycle()
    assert world.cluster.replicas("legacy") == 3
    assert "apply_deployment" not in [method for method, _ in world.cluster.writes]
    assert not world.cluster.manifest("legacy")["metadata"].get("ownerReferences")


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param("-/{name}/17-k3f9", id="an agent that was told nothing, by its host name"),
        pytest.param("{name}", id="a host name alone"),
        pytest.param("celery@{name}", id="a name with the host in it"),
        pytest.param("other.pool/{name}/{uid}-k3f9", id="another pool's name, by the uid"),
    ],
)
def test_agents_of_a_target_are_known_by_their_pod(owner: str) -> None:
    world = World()
    world.cluster.put_deployment("legacy")
    world.cluster.create_pool(target_spec())
    world.enqueue(4)
    world.cycles(2)
    world.end_all()
    busy = world.cluster.pod_objects("legacy")[2]
    world.start_as(owner.format(**busy["metadata"]))
    world.cycles(8)
    assert names(world.cluster.pod_objects("legacy")) == names([busy])


def test_a_target_that_is_missing_is_told() -> None:
    world = World()
    world.cluster.create_pool(target_spec())
    world.cycle()
    assert world.ready() == ("False", "TargetMissing")


# --- a status that kubectl can print -----------------------------------------------------------------------------------------


def test_the_status_has_what_the_columns_show() -> None:
    world = World()
    pods = world.grown(2)
    world.start(pods[0], 2)
    world.enqueue(3)
    world.cycles(4)
    status: Status = dict(world.status())
    del status["conditions"], status["lastReadTime"]
    assert status == {
        "observedGeneration": 1,
        "desiredReplicas": 5,
        "replicas": 5,
        "availableReplicas": 5,
        "backlog": 3,
        "waiting": 0,
        "running": 2,
        "expired": 0,
        "oldestReadySeconds": status["oldestReadySeconds"],
        "cut": False,
    }
