"""Both clusters. Without the built programs the real one is skipped, with a reason; CLUSTER_REQUIRED makes it a failure."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.apiserver.alone import ApiServerAlone, serve_pools
from tests.apiserver.sides import Real, Side, Small
from tests.cluster.settings import from_environment

PROGRAMS = ("etcd", "kube-apiserver")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the real one alone; those of both are marked by their parameter."""
    for item in items:
        if Path(__file__).parent in item.path.parents and "real" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.apiserver)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerAlone]:
    """The real API server, which knows the pools' CRD."""
    programs = from_environment(os.environ).state / "bin"
    missing = [name for name in PROGRAMS if not (programs / name).exists()]
    if missing:
        reason = f"{programs} has no {' and no '.join(missing)}; type: make cluster-up"
        pytest.fail(reason) if os.environ.get("CLUSTER_REQUIRED") else pytest.skip(reason)
    with ApiServerAlone(programs, tmp_path_factory.mktemp("apiserver")) as server:
        serve_pools(server.api())
        yield server


@pytest.fixture(params=["small", pytest.param("real", marks=pytest.mark.apiserver)])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    """One cluster after the other, each test in a namespace of its own."""
    if request.param == "small":
        yield Small()
        return
    yield request.getfixturevalue("real")


@pytest.fixture
def real(server: ApiServerAlone) -> Iterator[Real]:
    """The real one alone."""
    with ThreadPoolExecutor(4) as threads:
        yield Real(server.api(), threads, f"test-{secrets.token_hex(4)}")
