"""The images of the end-to-end tests, built from the repository as it is: ``python -m tests.e2e.images``.

A step of its own before the tests: the first time it takes minutes, which is no time of any test.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.cluster import record, ways
from tests.cluster.record import Record
from tests.cluster.settings import REPOSITORY, from_environment
from tests.e2e.ground import Images

APP = Path(__file__).parent / "app"
TARGETS = ("operator", "dynamodb", "agent")


def images_of(cluster: Record) -> Images:
    """What the images are called in a cluster."""
    return Images(*(_reference(cluster, name) for name in ("operator", "dynamodb", "app")))


def main() -> None:
    """Build them and give them to the cluster that is up."""
    settings = from_environment(os.environ)
    cluster = record.read(settings.state)
    if cluster is None or not cluster.ready:
        sys.exit("No cluster is up; type: make cluster-up")
    build = ways.BY_NAME[cluster.way].build_image
    for name in TARGETS:
        build(settings, cluster, _reference(cluster, name), REPOSITORY, [f"--target={name}"])
    build(settings, cluster, _reference(cluster, "app"), APP, [f"--build-arg=AGENT={_reference(cluster, 'agent')}"])


def _reference(cluster: Record, name: str) -> str:
    return f"{cluster.image_prefix}/{name}:e2e"


if __name__ == "__main__":
    main()
