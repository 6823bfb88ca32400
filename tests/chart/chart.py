"""The chart for tests: what Helm makes of it, as data, and what it refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from scripts.chart import CHART

Object = Mapping[str, Any]

RELEASE = "pools"
NAMESPACE = "default"
VALUES = [*sorted((CHART / "ci").glob("*-values.yaml")), CHART / "values-ha.yaml"]
WORKLOADS = ("Deployment", "Job", "Pod")


@dataclass(frozen=True)
class Chart:
    """The chart, and a helm to render it with."""

    helm: Path

    def objects(self, *flags: str, release: str = RELEASE, namespace: str = NAMESPACE) -> Sequence[Object]:
        """All objects of a release with these flags, hooks as well."""
        return _objects(self.helm, ("template", release, str(CHART), f"--namespace={namespace}", *flags))

    def refusal(self, *flags: str) -> str:
        """What Helm says instead of rendering the chart."""
        ended = _run(self.helm, ("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", *flags))
        assert ended.returncode != 0, f"Helm takes {flags}"
        return ended.stderr

    def lint(self, *flags: str) -> str:
        """What ``helm lint --strict`` complains of; empty: nothing."""
        ended = _run(self.helm, ("lint", "--strict", "--quiet", str(CHART), f"--namespace={NAMESPACE}", *flags))
        return "" if ended.returncode == 0 else ended.stdout + ended.stderr


@cache
def _objects(helm: Path, arguments: tuple[str, ...]) -> Sequence[Object]:
    ended = _run(helm, arguments)
    assert ended.returncode == 0, ended.stderr
    return [found for found in yaml.load_all(ended.stdout, Loader=yaml.CSafeLoader) if found]


def _run(helm: Path, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(helm), *arguments], capture_output=True, text=True, timeout=60, check=False)


def of_kind(objects: Iterable[Object], *kinds: str) -> list[Object]:
    return [found for found in objects if found["kind"] in kinds]


def named(objects: Iterable[Object], kind: str, name: str = "pools-thunderagent") -> Object:
    """The one object of this kind and name."""
    (found,) = [found for found in of_kind(objects, kind) if found["metadata"]["name"] == name]
    return found


def pod_of(workload: Object) -> Object:
    """The pod, or template of pods, of a workload."""
    return workload if workload["kind"] == "Pod" else workload["spec"]["template"]


def containers(workload: Object) -> Sequence[Object]:
    spec = pod_of(workload)["spec"]
    return [*spec.get("initContainers", []), *spec["containers"]]


def environment(objects: Iterable[Object]) -> dict[str, Any]:
    """The operator's environment: values, or where they come from."""
    (container,) = containers(named(objects, "Deployment"))
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def label_of(found: Object) -> str:
    return f"{found['kind']} {found['metadata'].get('namespace', '')}/{found['metadata']['name']}"


def unrestricted(workload: Object) -> Iterator[str]:
    """What of a workload the restricted level of Pod Security would refuse, or a read-only file system lacks."""
    pod = pod_of(workload)["spec"]
    security = pod["securityContext"]
    if security.get("runAsNonRoot") is not True or security["seccompProfile"]["type"] != "RuntimeDefault":
        yield f"{label_of(workload)}: securityContext {security}"
    yield from (f"{label_of(workload)}: {name}" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name))
    for container in containers(workload):
        wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        if container.get("securityContext") != wanted:
            yield f"{label_of(workload)}: {container['name']} {container.get('securityContext')}"
    for volume in pod.get("volumes", ()):
        if not {"configMap", "emptyDir", "projected", "secret"} & volume.keys():
            yield f"{label_of(workload)}: volume {volume}"
