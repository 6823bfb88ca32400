"""The cluster that is up, and a namespace of it for each test. Without a cluster these tests are skipped, with a reason."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.cluster import gobuild, record, ways
from tests.cluster.kubectl import Kubectl
from tests.cluster.record import Record
from tests.cluster.settings import Settings, from_environment

APP = Path(__file__).parent / "app"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "cluster: needs the Kubernetes that `make cluster-up` brings up")


@pytest.fixture(scope="session")
def cluster_settings() -> Settings:
    """Where the cluster is kept."""
    return from_environment(os.environ)


@pytest.fixture(scope="session")
def cluster(cluster_settings: Settings) -> Record:
    """The cluster that is up."""
    found = record.read(cluster_settings.state)
    if found is None or not found.ready:
        _skip_or_fail("no cluster is up; type: make cluster-up")
    if not ways.BY_NAME[found.way].is_up(cluster_settings, found):
        _skip_or_fail(f"the cluster ({found.way}) does not answer; type: make cluster-up")
    return found


@pytest.fixture(scope="session")
def app_image(cluster_settings: Settings, cluster: Record) -> str:
    """The name of the image of `app/`, which the cluster has."""
    reference = f"{cluster.image_prefix}/cluster-test-app:1"
    ways.BY_NAME[cluster.way].build_image(cluster_settings, cluster, reference, APP, [])
    return reference


@pytest.fixture
def kubectl(cluster_settings: Settings, cluster: Record) -> Iterator[Kubectl]:
    """kubectl as the administrator, in a fresh namespace of the restricted Pod Security level, which goes with the test."""
    program = gobuild.tool(cluster_settings.state, "kubectl")
    kubectl = Kubectl(program, cluster, namespace=f"test-{secrets.token_hex(4)}")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": kubectl.namespace, "labels": labels}
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    try:
        yield kubectl
    finally:
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def _skip_or_fail(reason: str) -> NoReturn:
    if os.environ.get("CLUSTER_REQUIRED"):
        pytest.fail(reason)
    pytest.skip(reason)
