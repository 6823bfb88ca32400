"""Helm for the tests of the chart: the one on the PATH or of the test cluster. Without one they are skipped, with a reason.

With ``CLUSTER_REQUIRED=1``, as `make chart-check` sets it, its absence is a failure.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chart.chart import Chart
from tests.cluster import gobuild
from tests.cluster.settings import from_environment


@pytest.fixture(scope="session")
def helm() -> Path:
    """The path of helm."""
    found = gobuild.tool_if_present(from_environment(os.environ).state, "helm")
    if found is not None:
        return found
    reason = "there is no helm; `make cluster-up` and `make chart-check` build it, or put one on the PATH"
    if os.environ.get("CLUSTER_REQUIRED"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def chart(helm: Path) -> Chart:
    """The chart, to be rendered."""
    return Chart(helm)
