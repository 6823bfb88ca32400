"""The versions that go.mod pins belong together; one that was forgotten in an upgrade would build and then misbehave."""

from __future__ import annotations

import re

from tests.cluster import gobuild

GO_MOD = (gobuild.SOURCE / "go.mod").read_text()


def test_every_part_of_kubernetes_is_replaced_by_the_same_release() -> None:
    replaced = set(re.findall(r"^\s+(k8s\.io/\S+) => (?:\S+) (v\S+)$", GO_MOD, re.MULTILINE))
    staging = gobuild.version_of("k8s.io/kubernetes").replace("v1.", "v0.")
    assert len(replaced) > 20
    assert {version for _, version in replaced} == {staging}


def test_each_part_that_kubernetes_names_at_no_version_is_replaced() -> None:
    unversioned = set(re.findall(r"^\s+(k8s\.io/\S+) v0\.0\.0(?: // indirect)?$", GO_MOD, re.MULTILINE))
    replaced = set(re.findall(r"^\s+(k8s\.io/\S+) =>", GO_MOD, re.MULTILINE))
    assert unversioned - replaced == set()
