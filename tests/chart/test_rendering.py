"""With every values file the chart is whole: it passes Helm's linter, and its objects fit each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from controller.settings import OperatorSettings
from tests.chart.chart import (
    NAMESPACE,
    VALUES,
    WORKLOADS,
    Chart,
    Object,
    containers,
    environment,
    label_of,
    named,
    of_kind,
    pod_of,
    unrestricted,
)
from thunderagent.pool import parse_pool
from thunderagent.settings import environment_variable, from_environment

CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}


@pytest.fixture(params=VALUES, ids=lambda path: path.stem)
def values(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def objects(values: Path, chart: Chart) -> Sequence[Object]:
    return chart.objects(f"--values={values}")


def test_helms_linter_finds_nothing(values: Path, chart: Chart) -> None:
    assert chart.lint(f"--values={values}") == ""


def test_no_two_objects_are_the_same(objects: Sequence[Object]) -> None:
    labels = [label_of(found) for found in objects]
    assert len(set(labels)) == len(labels)


def test_every_object_is_labelled_and_in_a_namespace_that_is_served(values: Path, objects: Sequence[Object]) -> None:
    served = (yaml.safe_load(values.read_text()) or {}).get("scope", {}).get("namespaces", [])
    for found in objects:
        metadata = found["metadata"]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm", label_of(found)
        assert ("namespace" in metadata) == (found["kind"] not in CLUSTER_WIDE), label_of(found)
        assert metadata.get("namespace", NAMESPACE) in {NAMESPACE, *served}, label_of(found)
        assert len(metadata["name"]) <= 63


def test_every_pod_passes_the_restricted_level_of_pod_security(objects: Sequence[Object]) -> None:
    assert [problem for found in of_kind(objects, *WORKLOADS) for problem in unrestricted(found)] == []


def test_every_container_has_a_fixed_image_and_bounded_memory(objects: Sequence[Object]) -> None:
    for workload in of_kind(objects, *WORKLOADS):
        for container in containers(workload):
            assert ":" in container["image"].rpartition("/")[2], container["image"]
            assert not container["image"].endswith(":latest")
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}, label_of(workload)
            assert "memory" in container["resources"]["limits"], label_of(workload)


def test_every_selector_matches_the_pods_that_it_is_for_and_no_others(objects: Sequence[Object]) -> None:
    pods = [pod_of(found)["metadata"]["labels"] for found in of_kind(objects, *WORKLOADS)]
    selectors = [
        *(found["spec"]["selector"]["matchLabels"] for found in of_kind(objects, "Deployment", "PodDisruptionBudget")),
        *(found["spec"]["selector"] for found in of_kind(objects, "Service")),
        *(found["spec"]["podSelector"]["matchLabels"] for found in of_kind(objects, "NetworkPolicy")),
    ]
    for selector in selectors:
        assert sum(selector.items() <= labels.items() for labels in pods) == 1, selector


def test_every_binding_binds_a_role_that_there_is_to_an_account_that_there_is(objects: Sequence[Object]) -> None:
    there = {(found["kind"], found["metadata"].get("namespace"), found["metadata"]["name"]) for found in objects}
    for binding in of_kind(objects, "RoleBinding", "ClusterRoleBinding"):
        namespace = binding["metadata"].get("namespace")
        assert (binding["roleRef"]["kind"], namespace, binding["roleRef"]["name"]) in there
        (subject,) = binding["subjects"]
        assert (subject["kind"], subject["namespace"], subject["name"]) in there


def test_every_pod_runs_as_an_account_that_there_is_and_other_accounts_give_no_token(objects: Sequence[Object]) -> None:
    accounts = {found["metadata"]["name"] for found in of_kind(objects, "ServiceAccount")}
    for workload in of_kind(objects, *WORKLOADS):
        spec = pod_of(workload)["spec"]
        assert spec["automountServiceAccountToken"] == ("serviceAccountName" in spec), label_of(workload)
        assert spec.get("serviceAccountName") in {None, *accounts}
    assert all(found["automountServiceAccountToken"] is False for found in of_kind(objects, "ServiceAccount"))


def test_the_operator_reads_the_settings_that_it_is_given(values: Path, objects: Sequence[Object]) -> None:
    name = "agents-operator" if values.stem.startswith("everything") else "pools-thunderagent"
    (container,) = containers(named(objects, "Deployment", name))
    known = {environment_variable(field) for field in dataclasses.fields(OperatorSettings)}
    assert {entry["name"] for entry in container["env"] if entry["name"].startswith("THUNDERAGENT_")} <= known
    settings = from_environment(OperatorSettings, {entry["name"]: entry.get("value", "") for entry in container["env"]})
    assert (settings.election, settings.lease_name, settings.port) == (True, name, 8080)


def test_the_pool_of_the_demo_is_one_that_the_operator_takes(chart: Chart) -> None:
    objects = chart.objects("--set=demo.enabled=true")
    written = named(objects, "ConfigMap", "pools-thunderagent-demo-setup")["data"]["pool.json"]
    pool = parse_pool(yaml.safe_load(written))
    (service,) = [found for found in of_kind(objects, "Service") if "dynamodb" in found["metadata"]["name"]]
    (port,) = service["spec"]["ports"]
    assert pool.spec.queue.endpoint == f"http://{service['metadata']['name']}.{NAMESPACE}:{port['port']}"
    workload = {"kind": "Deployment", "metadata": {"name": pool.name}, "spec": {"template": pool.spec.template}}
    assert list(unrestricted(workload)) == []
    assert environment(objects)["AWS_ACCESS_KEY_ID"] == "demo"
