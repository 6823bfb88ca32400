"""The CRD: structural, readable, and its columns show what the status has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controller.conditions import Outcome
from controller.resource import custom_resource_definition
from controller.status import new_status


def version() -> Mapping[str, Any]:
    (only,) = custom_resource_definition()["spec"]["versions"]
    found: Mapping[str, Any] = only
    return found


def properties(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}", inner
        yield from properties(inner, f"{path}.{name}")
        yield from properties(inner.get("items", {}), f"{path}.{name}[]")


def test_the_name_is_what_kubernetes_asks_for() -> None:
    crd = custom_resource_definition()
    names = crd["spec"]["names"]
    assert crd["metadata"]["name"] == f"{names['plural']}.{crd['spec']['group']}"
    assert (names["kind"], names["shortNames"]) == ("ThunderAgentPool", ["tap"])


def test_every_field_has_a_description_for_kubectl_explain() -> None:
    schema = version()["schema"]["openAPIV3Schema"]
    assert [path for path, field in properties(schema) if path != ".metadata" and not field.get("description")] == []


def test_every_field_has_a_type() -> None:
    schema = version()["schema"]["openAPIV3Schema"]
    assert [path for path, field in properties(schema) if "type" not in field] == []


def test_columns() -> None:
    wide = {column["name"] for column in version()["additionalPrinterColumns"] if column.get("priority")}
    shown = [column["name"] for column in version()["additionalPrinterColumns"] if column["name"] not in wide]
    assert shown == ["Backlog", "Running", "Desired", "Available", "Min", "Max", "Ready", "Age"]


def test_columns_show_fields_that_the_schema_has() -> None:
    known = {path for path, _ in properties(version()["schema"]["openAPIV3Schema"])}
    paths = [column["jsonPath"].split("[?")[0] for column in version()["additionalPrinterColumns"]]
    assert [path for path in paths if path not in known and not path.startswith(".metadata")] == []


def test_the_operator_writes_no_status_that_the_schema_would_prune() -> None:
    known = version()["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    status = new_status(Outcome(generation=1, replicas=1, read_at=1.0), {}, 1.0)
    assert status.keys() <= known.keys()
    condition_fields = known["conditions"]["items"]["properties"]
    assert all(condition.keys() <= condition_fields.keys() for condition in status["conditions"])


def test_each_call_gives_a_manifest_of_its_own() -> None:
    custom_resource_definition()["spec"].clear()
    assert custom_resource_definition()["spec"]
