"""What is generated is as its sources make it. `make manifests` writes it anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import thunderagent
from controller.resource import custom_resource_definition
from scripts.chart import CHART, MANIFESTS, ROOT, crd, values
from scripts.chart.rendered import VARIANTS, render
from tests.chart.chart import Chart, label_of, of_kind, unrestricted

DRIFTED = "has drifted from its source: run `make manifests` and look at the difference"


def test_the_crd_of_the_chart_is_made_from_the_fields_of_the_pool() -> None:
    assert crd.TEMPLATE.read_text(encoding="utf-8") == crd.template(), f"{crd.TEMPLATE.relative_to(ROOT)} {DRIFTED}"


def test_the_table_of_values_is_made_from_their_comments() -> None:
    assert values.README.read_text(encoding="utf-8") == values.readme(), f"{values.README.relative_to(ROOT)} {DRIFTED}"


def test_every_value_has_a_description() -> None:
    described = {value.path for value in values.described_values()}
    given = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [path for path, _ in _values(given) if not any(_holds(whole, path) for whole in described)] == []


def test_one_values_file_of_the_tests_sets_nearly_every_value() -> None:
    """What it leaves alone would turn something off, or is set by a row of test_values.py."""
    default = dict(_values(yaml.safe_load((CHART / "values.yaml").read_text())))
    given = dict(_values(yaml.safe_load((CHART / "ci" / "everything-values.yaml").read_text())))
    untouched = {path for path in default if not any(_holds(path, there) for there in given)}
    assert untouched == {
        "image.tag",
        "serviceAccount.create",
        "rbac.create",
        "rbac.aggregate",
        "crds.install",
        "podDisruptionBudget.enabled",
        "networkPolicy.enabled",
    }
    assert {path for path, value in given.items() if path in default and default[path] == value} == set()


def test_the_schema_knows_the_values_that_there_are_and_no_others() -> None:
    given = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]) == {*given, "global"}


def test_the_chart_is_of_the_version_of_the_package() -> None:
    metadata = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (metadata["version"], metadata["appVersion"]) == (thunderagent.__version__, thunderagent.__version__)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_plain_manifest_is_as_helm_renders_the_chart(name: str, helm: Path) -> None:
    assert (MANIFESTS / name).read_text(encoding="utf-8") == render(helm, VARIANTS[name]), f"manifests/{name} {DRIFTED}"


def test_the_crd_renders_to_what_the_operator_expects(chart: Chart) -> None:
    (found,) = of_kind(chart.objects(), "CustomResourceDefinition")
    expected = custom_resource_definition()
    assert found["spec"] == expected["spec"]
    assert found["metadata"]["name"] == expected["metadata"]["name"]


@pytest.mark.parametrize("name", VARIANTS)
def test_a_plain_manifest_can_be_applied_as_it_is(name: str) -> None:
    text = (MANIFESTS / name).read_text(encoding="utf-8")
    objects = list(yaml.safe_load_all(text))
    assert [label_of(found) for found in objects if "helm" in json.dumps(found["metadata"]).lower()] == []
    assert [problem for found in of_kind(objects, "Deployment") for problem in unrestricted(found)] == []
    largest = max(len(json.dumps(found)) for found in objects)
    assert largest < 262_144, "kubectl apply keeps the object in an annotation, which has no room for it"


def test_the_namespaced_manifest_needs_no_rights_in_the_cluster_but_for_its_namespace() -> None:
    objects = yaml.safe_load_all((MANIFESTS / "install-namespaced.yaml").read_text())
    assert {found["kind"] for found in objects if "namespace" not in found["metadata"]} == {"Namespace"}


def test_the_go_version_of_helm_is_one_that_knows_how_to_take_ownership() -> None:
    """docs/kubernetes.md tells how to adopt a CRD that is there, which Helm can since 3.17."""
    found = re.search(r"helm\.sh/helm/v3 v3\.(\d+)", (ROOT / "tests/cluster/built/go/go.mod").read_text())
    assert found is not None
    assert int(found[1]) >= 17


def _values(given: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that is no group, with its path."""
    if not isinstance(given, dict) or not given:
        yield path, given
        return
    for name, value in given.items():
        yield from _values(value, f"{path}.{name}" if path else name)


def _holds(whole: str, path: str) -> bool:
    return path == whole or path.startswith(f"{whole}.")
