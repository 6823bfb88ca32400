"""The chart as a release of helm: how the operator comes, changes and goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster import commands
from tests.cluster.kubectl import Kubectl
from tests.cluster.settings import REPOSITORY
from tests.e2e.ground import AWS, Ground, variables

CHART = REPOSITORY / "charts" / "thunderagent"
NAME = NAMESPACE = "thunderagent-system"
DEPLOYMENT = f"deployment/{NAME}"
ADMITTED = "e2e-*"
"""Namespaces and tables of the tests, as the operator's settings allow them."""


@dataclass(frozen=True)
class Release:
    """The operator's one release. ``kubectl`` is the administrator's, in its namespace; helm keeps its files in ``home``."""

    kubectl: Kubectl
    helm_program: Path
    home: Path
    values: Mapping[str, Any]

    def install(self, chart: Path = CHART, **values: Any) -> None:
        """Install or upgrade, and return once the operator is ready. ``values`` go on top of those of all tests."""
        file = self.home / "values.json"
        file.write_text(json.dumps({**self.values, **values}))
        # A cluster may have the CRD of an earlier run: it stays when a release goes.
        flags = ("--install", "--take-ownership", "--wait", "--timeout=120s", f"--values={file}")
        self.helm("upgrade", NAME, str(chart), *flags)

    def uninstall(self) -> None:
        self.helm("uninstall", NAME, "--wait")

    def helm(self, *arguments: str) -> str:
        """Run helm in the release's namespace."""
        places = {f"HELM_{kind}_HOME": str(self.home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        where = f"--namespace={self.kubectl.namespace}"
        return commands.run(self.helm_program, where, *arguments, env=self.kubectl.environment() | places)

    def pods(self) -> list[dict[str, Any]]:
        """The operator's pods."""
        found: list[dict[str, Any]] = self.kubectl.get("pods", "--selector=app.kubernetes.io/component=operator")["items"]
        return found

    def stop(self) -> None:
        """Have no operator, and return once its pods are gone."""
        self.scale(0)

    def scale(self, replicas: int) -> None:
        """Have so many replicas of the operator, and return once they are ready, or gone."""
        self.kubectl("scale", DEPLOYMENT, f"--replicas={replicas}")
        self.kubectl("rollout", "status", DEPLOYMENT, "--timeout=90s")
        selector = "--selector=app.kubernetes.io/component=operator"
        if replicas == 0:
            self.kubectl("wait", "--for=delete", "pods", selector, "--timeout=60s")

    def log(self, lines: int) -> str:
        """The end of the operator's log."""
        selector = "--selector=app.kubernetes.io/component=operator"
        return self.kubectl("logs", selector, f"--tail={lines}", "--prefix")


def values_of(ground: Ground) -> dict[str, Any]:
    """The chart's values for the tests: quick listings, and rights to their tables alone."""
    repository, _, tag = ground.images.operator.rpartition(":")
    rule = {"namespaces": [ADMITTED], "tables": [ADMITTED], "endpoints": [ground.endpoint]}
    return {
        "image": {"repository": repository, "tag": tag},
        "allowed": [rule],
        "extraEnv": list(variables(AWS)),
    }
