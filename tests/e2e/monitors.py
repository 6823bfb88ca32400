"""The chart's monitors as scrape configurations: what prometheus-operator makes of them, without prometheus-operator.

The rules are those of its own generator (prometheus-operator, pkg/prometheus/promcfg.go), as far as the chart uses them. A
Prometheus that runs beside the cluster reaches no pod, so each scrape goes through the API server's proxy; that is the one
difference.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.kubectl import Kubectl
from tests.e2e.discovery import as_meta

Object = Mapping[str, Any]
Rule = Mapping[str, Any]
Job = Mapping[str, Any]


@dataclass(frozen=True)
class Gate:
    """The API server: its address, and files with what proves an administrator."""

    host: str
    tls: Mapping[str, str]
    authorization: Mapping[str, str]


def gate_of(kubectl: Kubectl, folder: Path) -> Gate:
    """The gate to a kubectl's cluster; the files go into the folder."""
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    encoded = {
        "ca_file": cluster["certificate-authority-data"],
        "cert_file": user.get("client-certificate-data"),
        "key_file": user.get("client-key-data"),
    }
    tls = {name: _written(folder / name, data) for name, data in encoded.items() if data}
    token = {"credentials": user["token"]} if "token" in user else {}
    return Gate(cluster["server"].removeprefix("https://"), tls, token)


def jobs_of(monitors: Sequence[Object], targets: Mapping[str, str], gate: Gate) -> list[Job]:
    """A job for each endpoint of each ServiceMonitor and PodMonitor. ``targets``: the files of discovered ones, by role."""
    return [_job(monitor, endpoint, targets, gate) for monitor in monitors for endpoint in _endpoints(monitor)]


def _endpoints(monitor: Object) -> Sequence[Object]:
    spec: Mapping[str, Sequence[Object]] = monitor["spec"]
    return spec["endpoints" if monitor["kind"] == "ServiceMonitor" else "podMetricsEndpoints"]


def _job(monitor: Object, endpoint: Object, targets: Mapping[str, str], gate: Gate) -> Job:
    metadata, of_pods = monitor["metadata"], monitor["kind"] == "PodMonitor"
    return {
        "job_name": f"{monitor['kind']}/{metadata['namespace']}/{metadata['name']}/{endpoint['port']}",
        "honor_labels": endpoint.get("honorLabels", False),
        "metrics_path": endpoint["path"],
        "scheme": "https",
        "tls_config": dict(gate.tls),
        **({"authorization": dict(gate.authorization)} if gate.authorization else {}),
        "file_sd_configs": [{"files": [targets["pod" if of_pods else "endpoints"]]}],
        "relabel_configs": [*_chosen(monitor, endpoint), *_labels(of_pods), *_through(gate)],
    }


def _namespaces(monitor: Object) -> list[str] | None:
    """Where to look; None: everywhere. Without a selector it is where the monitor is."""
    selector = monitor["spec"].get("namespaceSelector", {})
    if selector.get("any"):
        return None
    return list(selector.get("matchNames", [monitor["metadata"]["namespace"]]))


def _chosen(monitor: Object, endpoint: Object) -> Iterator[Rule]:
    """Only what the monitor selects, by namespaces, labels and the name of the port; no pod that has ended."""
    of_pods, selector = monitor["kind"] == "PodMonitor", monitor["spec"]["selector"]
    if (names := _namespaces(monitor)) is not None:
        yield _keep(["__meta_kubernetes_namespace"], f"({'|'.join(names)})")
    meta = f"__meta_kubernetes_{'pod' if of_pods else 'service'}_label"
    for name, value in selector.get("matchLabels", {}).items():
        yield _keep([f"{meta}_{as_meta(name)}", f"{meta}present_{as_meta(name)}"], f"({value});true")
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "Exists", expression
        yield _keep([f"{meta}present_{as_meta(expression['key'])}"], "true")
    port = "__meta_kubernetes_pod_container_port_name" if of_pods else "__meta_kubernetes_endpoint_port_name"
    yield _keep([port], endpoint["port"])
    yield {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "(Failed|Succeeded)", "action": "drop"}


def _labels(of_pods: bool) -> Iterator[Rule]:
    for source, target in (
        ("namespace", "namespace"),
        ("pod_name", "pod"),
        ("pod_container_name", "container"),
        *(() if of_pods else (("service_name", "service"), ("service_name", "job"))),
    ):
        yield {"source_labels": [f"__meta_kubernetes_{source}"], "target_label": target}
    yield {"source_labels": ["__address__"], "target_label": "instance"}


def _through(gate: Gate) -> Iterator[Rule]:
    """By the API server's proxy to the port of the pod."""
    yield {
        "source_labels": ["__meta_kubernetes_namespace", "__meta_kubernetes_pod_name", "__address__", "__metrics_path__"],
        "regex": r"(.+);(.+);.+:(\d+);(.+)",
        "replacement": "/api/v1/namespaces/$1/pods/$2:$3/proxy$4",
        "target_label": "__metrics_path__",
    }
    yield {"target_label": "__address__", "replacement": gate.host}


def _keep(sources: Sequence[str], regex: str) -> Rule:
    return {"source_labels": list(sources), "regex": regex, "action": "keep"}


def _written(file: Path, data: str) -> str:
    file.write_bytes(base64.b64decode(data))
    file.chmod(0o600)
    return str(file)
