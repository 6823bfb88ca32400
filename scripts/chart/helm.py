"""Where helm is: on the PATH, or among the programs of the test cluster. ``python -m scripts.chart.helm`` builds it there."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cluster import gobuild
from tests.cluster.settings import from_environment


def helm() -> Path:
    """Its path. Raises `tests.cluster.errors.ClusterError` where it is nowhere and cannot be built."""
    return gobuild.tool(from_environment(os.environ).state, "helm")


if __name__ == "__main__":
    print(helm())
