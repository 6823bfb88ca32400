"""Faults of a built cluster, as the tests need them. On other clusters these tests are skipped: nothing there can be killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.built import control
from tests.e2e.ground import DYNAMODB, Ground


@dataclass(frozen=True)
class Faults:
    """``state`` is the cluster's directory."""

    state: Path

    def kill_containers(self, namespace: str, pod: str | None = None) -> int:
        """Kill (-9) what runs in a namespace's pods, or in one of them; return how many containers that were."""
        return control.kill_containers(self.state, namespace, pod)

    def restart(self, component: str) -> None:
        """Kill a component of the cluster and start it again."""
        control.restart(self.state, component)

    @contextmanager
    def without(self, component: str) -> Iterator[None]:
        """Have no such component for as long as the context lasts."""
        control.stop(self.state, component)
        try:
            yield
        finally:
            control.start(self.state, component)

    @contextmanager
    def frozen_dynamodb(self, ground: Ground) -> Iterator[None]:
        """Have a DynamoDB that takes connections and does not answer: what hangs is harder to bear than what is gone."""
        control.pause_containers(self.state, ground.kubectl.namespace, DYNAMODB)
        try:
            yield
        finally:
            control.resume_containers(self.state, ground.kubectl.namespace, DYNAMODB)
