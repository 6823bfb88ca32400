"""The stage of each end-to-end test. Without a cluster they are skipped, with a reason; `make e2e` makes that a failure."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import gobuild
from tests.cluster.conftest import cluster, cluster_settings  # noqa: F401 - fixtures
from tests.cluster.kubectl import Kubectl
from tests.cluster.record import Record
from tests.cluster.settings import Settings
from tests.e2e.faults import Faults
from tests.e2e.ground import Ground, Images
from tests.e2e.images import images_of
from tests.e2e.release import NAMESPACE, Release, values_of
from tests.e2e.stage import Stage

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder are of this kind, but for the one that takes as long as it is told to."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            if item.get_closest_marker("chaos") is None:
                item.add_marker(pytest.mark.e2e)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails says what the cluster looked like."""
    report = yield
    stage = getattr(item, "funcargs", {}).get("stage")
    if report.failed and report.when == "call" and isinstance(stage, Stage) and "--- operator" not in str(report.longrepr):
        report.sections.append(("the cluster", stage.account()))
    return report


@pytest.fixture(scope="session")
def administrator(cluster_settings: Settings, cluster: Record) -> Kubectl:  # noqa: F811
    """kubectl in no namespace in particular."""
    return Kubectl(gobuild.tool(cluster_settings.state, "kubectl"), cluster)


@pytest.fixture(scope="session")
def images(cluster: Record) -> Images:  # noqa: F811
    """The images, which `make e2e` has built."""
    return images_of(cluster)


@pytest.fixture(scope="session")
def ground(administrator: Kubectl, images: Images) -> Iterator[Ground]:
    """What all tests stand on."""
    with _namespace(administrator, f"e2e-ground-{secrets.token_hex(3)}") as kubectl:
        ground = Ground(kubectl, images)
        ground.lay()
        yield ground


@pytest.fixture(scope="session")
def operator(
    administrator: Kubectl,
    cluster_settings: Settings,  # noqa: F811
    ground: Ground,
    tmp_path_factory: pytest.TempPathFactory,
) -> Release:
    """The operator, installed by the chart. It stays, as a person's would, for who looks why a test failed."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}}
    administrator.apply(namespace)
    helm = gobuild.tool(cluster_settings.state, "helm")
    release = Release(administrator.within(NAMESPACE), helm, tmp_path_factory.mktemp("helm"), values_of(ground))
    release.install()
    return release


@pytest.fixture
def stage(administrator: Kubectl, ground: Ground, operator: Release) -> Iterator[Stage]:
    """A namespace of the restricted level and a table, which go with the test."""
    with _namespace(administrator, f"e2e-{secrets.token_hex(3)}") as kubectl:
        stage = Stage(kubectl, ground, operator)
        stage.table.create()
        yield stage


@contextmanager
def _namespace(administrator: Kubectl, name: str) -> Iterator[Kubectl]:
    administrator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}})
    try:
        yield administrator.within(name)
    finally:
        administrator("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="module")
def shared_stage(administrator: Kubectl, ground: Ground, operator: Release) -> Iterator[Stage]:
    """The same for all tests of a module that leave nothing behind."""
    with _namespace(administrator, f"e2e-{secrets.token_hex(3)}") as kubectl:
        stage = Stage(kubectl, ground, operator)
        stage.table.create()
        yield stage


@pytest.fixture
def faults(cluster: Record, cluster_settings: Settings) -> Faults:  # noqa: F811
    """What can be done to a built cluster."""
    if cluster.way != "built":
        pytest.skip("only the components of a built cluster can be stopped and started")
    return Faults(cluster_settings.state)
