"""What Prometheus's kubernetes_sd_configs finds, for a Prometheus that was built without it, as Debian's is.

Pods and endpoints of the whole cluster with the labels that kubernetes_sd_configs gives them (prometheus.io, "Configuration"),
as far as monitors and their relabelling look at them, in files that file_sd_configs reads.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.cluster.errors import CommandFailed
from tests.cluster.kubectl import Kubectl

Object = Mapping[str, Any]
Target = Mapping[str, Any]

EVERY = 2.0
"""Seconds between two looks at the cluster."""

META = "__meta_kubernetes"


@contextmanager
def discovered(kubectl: Kubectl, folder: Path) -> Iterator[Mapping[str, str]]:
    """The files of targets by their role, pod or endpoints, kept up to date meanwhile."""
    files = {role: folder / f"{role}.json" for role in ("pod", "endpoints")}
    _look(kubectl, files)
    stop = threading.Event()
    thread = threading.Thread(target=_keep_looking, args=(kubectl, files, stop))
    thread.start()
    try:
        yield {role: str(file) for role, file in files.items()}
    finally:
        stop.set()
        thread.join()


def as_meta(label: str) -> str:
    """A label's name as it stands in the name of a meta label."""
    return "".join(char if char.isalnum() else "_" for char in label)


def pod_targets(pods: list[Object]) -> list[Target]:
    """Role pod: a target for each declared port of each container of a pod that has an address."""
    return [
        _target(pod["status"]["podIP"], port["containerPort"], {**_of_pod(pod), **_of_port(container, port)})
        for pod in pods
        if pod["status"].get("podIP")
        for container in pod["spec"]["containers"]
        for port in container.get("ports", ())
    ]


def endpoints_targets(endpoints: list[Object], services: list[Object], pods: list[Object]) -> list[Target]:
    """Role endpoints: a target for each ready address and port, with the labels of its service and of its pod."""
    by_name = {_name(each): each for each in services}
    pods_by_name = {_name(each): each for each in pods}
    return [
        _target(
            address["ip"],
            port["port"],
            {**_of_service(service), **_of_address(address, pods_by_name), f"{META}_endpoint_port_name": port.get("name", "")},
        )
        for each in endpoints
        if (service := by_name.get(_name(each))) is not None
        for subset in each.get("subsets", ())
        for address in subset.get("addresses", ())
        for port in subset.get("ports", ())
    ]


def _keep_looking(kubectl: Kubectl, files: Mapping[str, Path], stop: threading.Event) -> None:
    while not stop.wait(EVERY):
        with suppress(CommandFailed):
            _look(kubectl, files)


def _look(kubectl: Kubectl, files: Mapping[str, Path]) -> None:
    items: list[Object] = kubectl.get("pods,services,endpoints", "--all-namespaces")["items"]
    pods, services, endpoints = ([each for each in items if each["kind"] == kind] for kind in ("Pod", "Service", "Endpoints"))
    _write(files["pod"], pod_targets(pods))
    _write(files["endpoints"], endpoints_targets(endpoints, services, pods))


def _write(file: Path, targets: list[Target]) -> None:
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(targets))
    unfinished.rename(file)


def _target(address: str, port: int, labels: Mapping[str, str]) -> Target:
    return {"targets": [f"{address}:{port}"], "labels": dict(labels)}


def _of_pod(pod: Object) -> dict[str, str]:
    metadata = pod["metadata"]
    return {
        f"{META}_namespace": metadata["namespace"],
        f"{META}_pod_name": metadata["name"],
        f"{META}_pod_phase": pod["status"]["phase"],
        **_labels_of("pod", pod),
    }


def _of_port(container: Object, port: Object) -> dict[str, str]:
    return {f"{META}_pod_container_name": container["name"], f"{META}_pod_container_port_name": port.get("name", "")}


def _of_service(service: Object) -> dict[str, str]:
    metadata = service["metadata"]
    named = {f"{META}_namespace": metadata["namespace"], f"{META}_service_name": metadata["name"]}
    return {**named, **_labels_of("service", service)}


def _of_address(address: Object, pods: Mapping[tuple[str, str], Object]) -> dict[str, str]:
    reference = address.get("targetRef", {})
    pod = pods.get((reference.get("namespace", ""), reference.get("name", "")))
    return {} if pod is None else _of_pod(pod)


def _labels_of(kind: str, found: Object) -> dict[str, str]:
    labels: Mapping[str, str] = found["metadata"].get("labels", {})
    values = {f"{META}_{kind}_label_{as_meta(name)}": value for name, value in labels.items()}
    return values | {f"{META}_{kind}_labelpresent_{as_meta(name)}": "true" for name in labels}


def _name(found: Object) -> tuple[str, str]:
    return found["metadata"]["namespace"], found["metadata"]["name"]
