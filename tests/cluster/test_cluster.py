"""The cluster does what the end-to-end tests rely on; each test shows one thing that, missing, would make them mean nothing."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import audit, commands, gobuild
from tests.cluster.built import control
from tests.cluster.commands import wait_until
from tests.cluster.errors import CommandFailed
from tests.cluster.kubectl import Kubectl
from tests.cluster.objects import deployment, gauge, gauge_definition, only_friends, pod, pod_spec, service
from tests.cluster.record import Record
from tests.cluster.settings import Settings

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

READY = {"readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}}
FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=3).read().decode())"


def test_pods_start_under_the_restricted_level_and_can_be_looked_into(kubectl: Kubectl, app_image: str) -> None:
    roll_out(kubectl, app_image, replicas=2)
    name = pod_names(kubectl)[0]
    assert "serving as uid 10001" in kubectl("logs", name)
    assert kubectl("exec", name, "--", "hostname").strip() == name
    assert "Read-only file system" in kubectl.refusal("exec", name, "--", "touch", "/file")


def test_a_service_is_found_by_name_and_reaches_its_pods(kubectl: Kubectl, app_image: str) -> None:
    kubectl.apply(service("web", 80, 8080))
    roll_out(kubectl, app_image, replicas=2)
    start_client(kubectl, app_image)
    wait_until("the short name to answer", 20, lambda: fetch(kubectl, "http://web/").startswith("web-"))
    assert fetch(kubectl, f"http://web.{kubectl.namespace}.svc.cluster.local/").startswith("web-")


def test_a_deleted_pod_gets_sigterm_and_its_grace_period(kubectl: Kubectl, app_image: str) -> None:
    kubectl.apply(pod("slow", pod_spec(app_image, **READY)))
    kubectl("wait", "--for=condition=Ready", "pod/slow", "--timeout=60s")
    follow = [str(kubectl.program), f"--namespace={kubectl.namespace}", "logs", "--follow", "slow"]
    with subprocess.Popen(follow, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as follower:
        kubectl("delete", "pod", "slow", "--wait")
        written, _ = follower.communicate(timeout=30)
    assert written.splitlines() == ["serving as uid 10001", "draining", "drained"]


def test_a_scale_down_takes_the_pod_of_the_lowest_deletion_cost(kubectl: Kubectl, app_image: str) -> None:
    roll_out(kubectl, app_image, replicas=3)
    for cheapest in range(3):  # by chance alone all three come out right once in 27 times
        names = sorted(pod_names(kubectl))
        for position, name in enumerate(names):
            cost = -10 if position == cheapest else 10
            kubectl("annotate", "--overwrite", "pod", name, f"controller.kubernetes.io/pod-deletion-cost={cost}")
        time.sleep(1)  # nothing shows when the controller's cache has the costs
        kubectl("scale", "deployment/web", "--replicas=2")
        kubectl("wait", "--for=delete", f"pod/{names[cheapest]}", "--timeout=60s")
        assert set(pod_names(kubectl)) == set(names) - {names[cheapest]}
        scale(kubectl, 3)


def test_a_disruption_budget_refuses_an_eviction(kubectl: Kubectl, app_image: str) -> None:
    roll_out(kubectl, app_image, replicas=1)
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
    kubectl("wait", "--for=jsonpath={.status.currentHealthy}=1", "poddisruptionbudget/web", "--timeout=30s")
    name = pod_names(kubectl)[0]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": kubectl.namespace}}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}/eviction"
    assert "disruption budget" in kubectl.refusal("create", f"--raw={path}", "-f-", stdin=json.dumps(eviction))


def test_a_rule_of_a_custom_resource_refuses_with_its_words(kubectl: Kubectl) -> None:
    group = f"{kubectl.namespace}.thunderagent.test"
    kubectl.apply(gauge_definition(group))
    try:
        kubectl("wait", "--for=condition=Established", f"crd/gauges.{group}", "--timeout=30s")
        wait_until("the new kind to be served", 20, lambda: attempt(kubectl, "get", f"gauges.{group}") is not None)
        assert "min must not exceed max" in kubectl.refusal_of(gauge(group, 5, 2))
        kubectl.apply(gauge(group, 1, 2))
        assert "min is fixed" in kubectl.refusal_of(gauge(group, 2, 2))
    finally:
        kubectl("delete", "crd", f"gauges.{group}", "--wait=false")


def test_a_stale_write_of_a_lease_is_refused(kubectl: Kubectl) -> None:
    spec = {"holderIdentity": "first", "leaseDurationSeconds": 15}
    kubectl.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}, "spec": spec})
    seen = kubectl.get("lease", "leader")
    kubectl("patch", "lease", "leader", "--type=merge", '--patch={"spec": {"holderIdentity": "second"}}')
    seen["spec"]["holderIdentity"] = "late"
    assert "object has been modified" in kubectl.refusal("replace", "-f-", stdin=json.dumps(seen))


def test_a_service_account_may_do_what_its_role_grants_and_no_more(kubectl: Kubectl, tmp_path: Path) -> None:
    robot = pod_lister(kubectl, tmp_path)
    assert robot.get("pods")["items"] == []
    assert f'User "{robot_name(kubectl)}" cannot list resource "secrets"' in robot.refusal("get", "secrets")


def test_the_restricted_level_refuses_a_privileged_pod(kubectl: Kubectl, app_image: str) -> None:
    privileged = pod_spec(app_image, securityContext={"privileged": True})
    assert 'violates PodSecurity "restricted' in kubectl.refusal_of(pod("bold", privileged))


def test_each_request_is_in_the_audit_log_with_its_verb_and_answer(cluster: Record, kubectl: Kubectl, tmp_path: Path) -> None:
    if cluster.audit_log is None:
        pytest.skip("the audit log of this cluster is out of reach")
    robot = pod_lister(kubectl, tmp_path)
    robot.get("pods")
    robot.refusal("get", "secrets")
    requests = audited(Path(cluster.audit_log), robot_name(kubectl))
    assert {("list", "pods", 200), ("list", "secrets", 403)} == requests


def test_a_container_over_its_memory_limit_is_killed(kubectl: Kubectl, app_image: str) -> None:
    limited = pod_spec(app_image, args=["grow"], resources={"limits": {"memory": "64Mi"}})
    kubectl.apply(pod("greedy", limited | {"restartPolicy": "Never"}))
    kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/greedy", "--timeout=60s")
    assert container_status(kubectl, "greedy")["state"]["terminated"]["reason"] == "OOMKilled"


def test_a_failing_liveness_probe_restarts_the_container(kubectl: Kubectl, app_image: str) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    kubectl.apply(pod("stuck", pod_spec(app_image, livenessProbe=probe) | {"terminationGracePeriodSeconds": 1}))
    kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/stuck", "--timeout=60s")


def test_helm_installs_upgrades_and_removes_a_chart(cluster_settings: Settings, kubectl: Kubectl, tmp_path: Path) -> None:
    chart = write_chart(tmp_path / "chart")
    places = {f"HELM_{kind}_HOME": str(tmp_path / kind) for kind in ("CACHE", "CONFIG", "DATA")}

    def helm(*arguments: str) -> None:
        program = gobuild.tool(cluster_settings.state, "helm")
        commands.run(program, f"--namespace={kubectl.namespace}", *arguments, env=kubectl.environment() | places)

    helm("install", "first", str(chart), "--set=text=one", "--wait")
    assert kubectl.get("configmap", "first")["data"] == {"text": "one"}
    helm("upgrade", "first", str(chart), "--set=text=two")
    assert kubectl.get("configmap", "first")["data"] == {"text": "two"}
    helm("uninstall", "first")
    assert "NotFound" in kubectl.refusal("get", "configmap", "first")


def test_a_network_policy_shuts_out_whom_it_does_not_select(cluster: Record, kubectl: Kubectl, app_image: str) -> None:
    if not cluster.enforces_network_policies:
        pytest.skip("this cluster does not enforce NetworkPolicy, or is not known to")
    kubectl.apply(service("web", 80, 8080))
    roll_out(kubectl, app_image, replicas=1)
    start_client(kubectl, app_image)
    wait_until("the service to answer", 20, lambda: fetch(kubectl, "http://web/") != "")
    kubectl.apply(only_friends("web"))
    wait_until("the policy to shut the client out", 20, lambda: fetch(kubectl, "http://web/") == "")
    kubectl("label", "pod", "client", "role=friend")
    wait_until("the policy to let the client in", 20, lambda: fetch(kubectl, "http://web/") != "")


class TestFaults:
    """What the end-to-end tests do to a built cluster."""

    @pytest.fixture(autouse=True)
    def _built(self, cluster: Record) -> None:
        if cluster.way != "built":
            pytest.skip("only the components of a built cluster can be stopped and started")

    @pytest.mark.parametrize("component", ["kube-apiserver", "etcd", "kube-controller-manager", "kubelet", "containerd"])
    def test_pods_outlive_a_crash_of(
        self, component: str, cluster_settings: Settings, kubectl: Kubectl, app_image: str
    ) -> None:
        roll_out(kubectl, app_image, replicas=1)
        before = pod_names(kubectl)
        control.stop(cluster_settings.state, component)
        control.start(cluster_settings.state, component)
        wait_until("the API server to answer", 60, lambda: attempt(kubectl, "get", "--raw=/readyz") is not None)
        scale(kubectl, 2)
        assert set(before) < set(pod_names(kubectl))
        assert container_status(kubectl, before[0])["restartCount"] == 0

    def test_all_containers_of_a_namespace_can_be_killed_at_once(
        self, cluster_settings: Settings, kubectl: Kubectl, app_image: str
    ) -> None:
        roll_out(kubectl, app_image, replicas=2)
        assert control.kill_containers(cluster_settings.state, kubectl.namespace) == 2
        for name in pod_names(kubectl):
            kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", f"pod/{name}", "--timeout=60s")
            assert container_status(kubectl, name)["lastState"]["terminated"]["exitCode"] == 137
            assert "draining" not in kubectl("logs", "--previous", name)


def roll_out(kubectl: Kubectl, image: str, replicas: int) -> None:
    """Create the Deployment `web` and wait until its pods are ready."""
    kubectl.apply(deployment("web", replicas, pod_spec(image, **READY)))
    kubectl("rollout", "status", "deployment/web", "--timeout=90s")


def scale(kubectl: Kubectl, replicas: int) -> None:
    kubectl("scale", "deployment/web", f"--replicas={replicas}")
    kubectl("rollout", "status", "deployment/web", "--timeout=90s")


def start_client(kubectl: Kubectl, image: str) -> None:
    kubectl.apply(pod("client", pod_spec(image, **READY)))
    kubectl("wait", "--for=condition=Ready", "pod/client", "--timeout=60s")


def pod_names(kubectl: Kubectl) -> list[str]:
    """The pods of the Deployment `web` that are not on their way out."""
    pods = kubectl.get("pods", "--selector=app=web")["items"]
    return [item["metadata"]["name"] for item in pods if "deletionTimestamp" not in item["metadata"]]


def container_status(kubectl: Kubectl, name: str) -> dict[str, Any]:
    status: dict[str, Any] = kubectl.get("pod", name)["status"]["containerStatuses"][0]
    return status


def attempt(kubectl: Kubectl, *arguments: str) -> str | None:
    """What kubectl prints; None when it fails."""
    try:
        return kubectl(*arguments).strip()
    except CommandFailed:
        return None


def fetch(kubectl: Kubectl, address: str) -> str:
    """What the pod `client` gets from an address; empty when it gets nothing."""
    return attempt(kubectl, "exec", "client", "--", "python", "-c", FETCH, address) or ""


def pod_lister(kubectl: Kubectl, directory: Path) -> Kubectl:
    """kubectl as a service account that may list pods and nothing else."""
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "robot", "--verb=list", "--resource=pods")
    kubectl("create", "rolebinding", "robot", "--role=robot", f"--serviceaccount={kubectl.namespace}:robot")
    robot = kubectl.as_service_account("robot", directory)
    wait_until("the role to take effect", 20, lambda: attempt(kubectl, *MAY_LIST, f"--as={robot_name(kubectl)}") == "yes")
    return robot


MAY_LIST = ("auth", "can-i", "list", "pods")


def robot_name(kubectl: Kubectl) -> str:
    return f"system:serviceaccount:{kubectl.namespace}:robot"


def audited(log: Path, user: str) -> set[tuple[str, str, int]]:
    """Verb, resource and status code of each request that a user made for objects."""
    return {(request.verb, request.resource, request.status) for request in audit.requests_of(log, user)}


def write_chart(directory: Path) -> Path:
    """A chart with one ConfigMap."""
    (directory / "templates").mkdir(parents=True)
    (directory / "Chart.yaml").write_text("{apiVersion: v2, name: tiny, version: 0.1.0}\n")
    manifest = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {text: {{ .Values.text | quote }}}\n"
    )
    (directory / "templates" / "configmap.yaml").write_text(manifest)
    return directory
