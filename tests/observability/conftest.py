"""Scenes for real agents and pools, and the Prometheus that looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.proxy import FaultProxy
from tests.integration.agents import Scene, scene_at
from tests.standins.aws import FreshTable


@pytest.fixture
def scene(moto_endpoint: str, fresh_moto_table: FreshTable, tmp_path: Path) -> Iterator[Scene]:
    """A table of the embedded DynamoDB."""
    with scene_at(moto_endpoint, fresh_moto_table.name, tmp_path) as scene:
        yield scene


@pytest.fixture
def proxy(moto_endpoint: str) -> Iterator[FaultProxy]:
    """A way to the embedded DynamoDB on which calls go wrong as the test says."""
    with FaultProxy(moto_endpoint) as proxy:
        yield proxy
