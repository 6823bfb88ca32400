"""What the values of the chart do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from controller.allowed import Allowance, parse_allowed
from scripts.chart import CHART
from tests.chart.chart import Chart, Object, environment, named, of_kind

DEMO = "http://pools-thunderagent-demo-dynamodb.default:8000"
ELECTION = {("coordination.k8s.io", "leases", "get"), ("coordination.k8s.io", "leases", "update")}


def json_flag(**values: Any) -> str:
    """A flag that sets values of any shape."""
    return "--set-json=" + ",".join(f"{name.replace('__', '.')}={json.dumps(value)}" for name, value in values.items())


def rights(objects: Sequence[Object], kind: str, namespace: str | None = None) -> set[tuple[str, str, str]]:
    """What the operator may do by its roles of a kind, as group, resource and verb."""
    return {
        (group, resource, verb)
        for role in of_kind(objects, kind)
        if role["metadata"].get("namespace") == namespace and not role["metadata"]["name"].endswith(("-edit", "-view"))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


IN_A_NAMESPACE = {
    ("", "events", "create"),
    ("", "events", "patch"),
    ("", "pods", "list"),
    ("", "pods", "patch"),
    ("apps", "deployments", "create"),
    ("apps", "deployments", "get"),
    ("apps", "deployments", "patch"),
    ("apps", "deployments/scale", "update"),
    ("apps", "replicasets", "list"),
    ("thunderagent.dev", "thunderagentpools", "get"),
    ("thunderagent.dev", "thunderagentpools", "list"),
    ("thunderagent.dev", "thunderagentpools", "watch"),
    ("thunderagent.dev", "thunderagentpools/status", "patch"),
}
"""Each is asked for by controller/kube.py or controller/watch.py, and seen in the audit log of a run; none is left over."""


# --- who may do what -----------------------------------------------------------------------------------------------------


def test_without_a_scope_the_operator_has_its_rights_in_all_namespaces(chart: Chart) -> None:
    objects = chart.objects()
    assert rights(objects, "ClusterRole") == IN_A_NAMESPACE
    assert rights(objects, "Role", "default") == {*ELECTION, ("coordination.k8s.io", "leases", "create")}
    assert "THUNDERAGENT_OPERATOR_NAMESPACES" not in environment(objects)


def test_with_a_scope_it_has_them_in_the_named_namespaces_alone(chart: Chart) -> None:
    objects = chart.objects("--set=scope.namespaces={team-a,team-b}", "--set=rbac.aggregate=false,crds.install=false")
    assert rights(objects, "Role", "team-a") == rights(objects, "Role", "team-b") == IN_A_NAMESPACE
    assert [found["kind"] for found in objects if "namespace" not in found["metadata"]] == []
    assert environment(objects)["THUNDERAGENT_OPERATOR_NAMESPACES"] == "team-a,team-b"


def test_the_lease_that_may_be_written_is_the_one_that_the_operator_uses(chart: Chart) -> None:
    objects = chart.objects("--set=fullnameOverride=other")
    (named_rule,) = [rule for rule in named(objects, "Role", "other-election")["rules"] if "resourceNames" in rule]
    assert named_rule["resourceNames"] == ["other"]
    (container,) = named(objects, "Deployment", "other")["spec"]["template"]["spec"]["containers"]
    assert {"name": "THUNDERAGENT_OPERATOR_LEASE", "value": "other"} in container["env"]


def test_two_releases_of_one_name_in_two_namespaces_share_nothing_in_the_cluster_but_the_crd(chart: Chart) -> None:
    names = [
        {
            found["metadata"]["name"]
            for found in of_kind(chart.objects(namespace=namespace), "ClusterRole", "ClusterRoleBinding")
        }
        for namespace in ("team-a", "team-b")
    ]
    assert names[0] & names[1] == set()


def test_the_clusters_own_roles_for_people_are_extended(chart: Chart) -> None:
    aggregated = {
        label.rpartition("/")[2]: role["rules"][0]["verbs"]
        for role in of_kind(chart.objects(), "ClusterRole")
        for label in role["metadata"]["labels"]
        if label.startswith("rbac.authorization.k8s.io/")
    }
    assert aggregated == {
        "aggregate-to-admin": ["create", "delete", "deletecollection", "patch", "update"],
        "aggregate-to-edit": ["create", "delete", "deletecollection", "patch", "update"],
        "aggregate-to-view": ["get", "list", "watch"],
    }


def test_somebody_elses_roles_and_account_can_be_used(chart: Chart) -> None:
    objects = chart.objects(
        "--set=rbac.create=false,rbac.aggregate=false,serviceAccount.create=false,serviceAccount.name=given"
    )
    assert of_kind(objects, "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount") == []
    assert named(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "given"


def test_the_account_carries_the_role_of_aws(chart: Chart) -> None:
    role = "arn:aws:iam::111122223333:role/thunderagent-operator"
    objects = chart.objects(rf"--set=serviceAccount.annotations.eks\.amazonaws\.com/role-arn={role}")
    assert named(objects, "ServiceAccount")["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": role}


# --- what pools may name -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "demo", "expected"),
    [
        pytest.param([], False, None, id="no rule leaves the operator's default"),
        pytest.param(
            [{"namespaces": ["team-a"], "tables": ["team-a-*"]}],
            False,
            (Allowance(("team-a",), ("team-a-*",)),),
            id="a rule reaches the operator as it was written",
        ),
        pytest.param(
            [],
            True,
            (Allowance(), Allowance(("default",), endpoints=(DEMO,))),
            id="the demo adds its endpoint to the default",
        ),
        pytest.param(
            [{"namespaces": ["team-a"]}],
            True,
            (Allowance(("team-a",)), Allowance(("default",), endpoints=(DEMO,))),
            id="the demo adds its endpoint to the rules that there are",
        ),
    ],
)
def test_allowed_becomes_a_setting(
    allowed: list[Any], demo: bool, expected: tuple[Allowance, ...] | None, chart: Chart
) -> None:
    objects = chart.objects(json_flag(allowed=allowed, demo__enabled=demo))
    text = environment(objects).get("THUNDERAGENT_OPERATOR_ALLOWED")
    assert (None if text is None else parse_allowed(text)) == expected


@pytest.mark.parametrize(
    ("endpoints", "ports"),
    [
        pytest.param([], {443, 6443, 80}, id="none: the API server and AWS"),
        pytest.param(["http://dynamodb.team-a:8000"], {443, 6443, 80, 8000}, id="its port"),
        pytest.param(["http://dynamodb.*:8000/"], {443, 6443, 80, 8000}, id="its port, whatever the host"),
        pytest.param(["https://vpce-1.example.com"], {443, 6443, 80}, id="that of https"),
        pytest.param(["http://dynamodb.*"], None, id="every port, where the pattern leaves it open"),
        pytest.param(["*"], None, id="every port, where anything is allowed"),
    ],
)
def test_the_network_policy_opens_what_allowed_endpoints_need(
    endpoints: list[str], ports: set[int] | None, chart: Chart
) -> None:
    objects = chart.objects(json_flag(allowed=[{"endpoints": endpoints}]))
    egress = named(objects, "NetworkPolicy")["spec"]["egress"][1]
    assert ({port["port"] for port in egress["ports"]} if egress else None) == ports


def test_the_network_policy_lets_in_who_reads_metrics(chart: Chart) -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    anybody = named(chart.objects(), "NetworkPolicy")["spec"]["ingress"]
    some = named(chart.objects(json_flag(networkPolicy__metricsFrom=peers)), "NetworkPolicy")["spec"]["ingress"]
    assert anybody == [{"ports": [{"port": 8080, "protocol": "TCP"}]}]
    assert some == [{"ports": [{"port": 8080, "protocol": "TCP"}], "from": peers}]


# --- replicas ------------------------------------------------------------------------------------------------------------


def test_one_replica_has_no_budget_that_would_block_a_drain(chart: Chart) -> None:
    objects = chart.objects()
    assert of_kind(objects, "PodDisruptionBudget") == []
    assert "topologySpreadConstraints" not in named(objects, "Deployment")["spec"]["template"]["spec"]


def test_two_replicas_have_a_budget_and_are_spread(chart: Chart) -> None:
    objects = chart.objects(f"--values={CHART / 'values-ha.yaml'}")
    assert named(objects, "Deployment")["spec"]["replicas"] == 2
    assert named(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    spread = named(objects, "Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert [constraint["topologyKey"] for constraint in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    selector = named(objects, "Deployment")["spec"]["selector"]
    assert [constraint["labelSelector"] for constraint in spread] == [selector, selector]


def test_an_upgrade_starts_the_new_operator_before_the_old_one_ends(chart: Chart) -> None:
    strategy = named(chart.objects(), "Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert strategy == {"maxSurge": 1, "maxUnavailable": 0}


# --- the kind ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "policy"),
    [
        pytest.param((), "keep", id="by default it stays, and all pools with it"),
        pytest.param(("--set=crds.keep=false",), None, id="it goes with the release where that is asked for"),
    ],
)
def test_the_crd_and_an_uninstall(flags: tuple[str, ...], policy: str | None, chart: Chart) -> None:
    (found,) = of_kind(chart.objects(*flags), "CustomResourceDefinition")
    assert found["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == policy


def test_the_crd_can_be_left_out(chart: Chart) -> None:
    assert of_kind(chart.objects("--set=crds.install=false"), "CustomResourceDefinition") == []


# --- the demo ------------------------------------------------------------------------------------------------------------


def test_without_the_demo_there_is_nothing_of_it(chart: Chart) -> None:
    objects = chart.objects()
    assert [found for found in objects if "demo" in found["metadata"]["name"]] == []
    assert not any(name.startswith("AWS_") for name in environment(objects))


def test_another_image_of_the_operator_makes_another_job(chart: Chart) -> None:
    """A Job cannot be changed, so an upgrade that did would fail."""
    names = [
        [found["metadata"]["name"] for found in of_kind(chart.objects("--set=demo.enabled=true", *flags), "Job")]
        for flags in ((), ("--set=image.tag=other",), ("--set=demo.maxReplicas=7",))
    ]
    assert len({name for (name,) in names}) == 3


# --- the rest ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "image"),
    [
        pytest.param((), "thunderagent/operator:0.1.0", id="the chart's own version"),
        pytest.param(("--set=image.tag=1.2",), "thunderagent/operator:1.2", id="a tag"),
        pytest.param(
            (f"--set=image.tag=1.2,image.digest=sha256:{'0' * 64}",),
            f"thunderagent/operator@sha256:{'0' * 64}",
            id="a digest wins",
        ),
    ],
)
def test_the_image_is_named_by(flags: tuple[str, ...], image: str, chart: Chart) -> None:
    (container,) = named(chart.objects(*flags), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image


def test_a_region_reaches_botocore_and_other_tools(chart: Chart) -> None:
    found = environment(chart.objects("--set=aws.region=eu-central-1"))
    assert (found["AWS_REGION"], found["AWS_DEFAULT_REGION"]) == ("eu-central-1", "eu-central-1")


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        pytest.param("thunderagent", "thunderagent", id="a release of the chart's name is not doubled"),
        pytest.param("a" * 53, "a" * 40, id="a long name is cut, so that what is put behind it fits"),
    ],
)
def test_names(release: str, expected: str, chart: Chart) -> None:
    objects = chart.objects(release=release)
    (deployment,) = of_kind(objects, "Deployment")
    assert deployment["metadata"]["name"] == expected
