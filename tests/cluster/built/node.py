"""The order in which a built cluster comes up and goes down."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable

from tests.cluster import audit, commands, gobuild
from tests.cluster.built import (
    addons,
    components,
    configs,
    containerd,
    images,
    machine,
    namespace,
    network,
    packages,
    pki,
    processes,
)
from tests.cluster.built.layout import COREDNS_IMAGE, NODE_NAME, PAUSE_IMAGE, Layout
from tests.cluster.built.namespace import Namespace
from tests.cluster.errors import ClusterError, CommandFailed

_MULTI_CALL = "kube"
_PACKAGES = (f"./{_MULTI_CALL}", "./coredns", "./pause", "helm.sh/helm/v3/cmd/helm")
_LINKS = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet"),
    "network-policies",
)
_LONGEST_SOCKET = 107 - len(".ttrpc")  # the kernel's limit for a path, and what containerd appends


def refuse_impossible(layout: Layout) -> None:
    """Raise `ClusterError` for a machine or a state directory on which a cluster cannot run, before minutes of building."""
    if len(str(layout.containerd_socket)) > _LONGEST_SOCKET:
        raise ClusterError(
            f"{layout.state} is too long a path for a socket below it; set THUNDERAGENT_CLUSTER_DIR to a shorter one."
        )
    if any(layout.state.is_relative_to(covered) for covered in namespace.COVERED):
        raise ClusterError(
            f"{layout.state} would be out of sight inside the node; set THUNDERAGENT_CLUSTER_DIR to another directory."
        )
    if not layout.run.exists() and (machine.pod_cgroups() or network.link_exists()):
        raise ClusterError(
            "Another kubelet or test cluster runs on this machine, and they would share cgroups and addresses. "
            "Take it down first, from the checkout or with the THUNDERAGENT_CLUSTER_DIR that it was brought up with."
        )


def prepare(layout: Layout) -> None:
    """Have packages, programs and images: minutes the first time, nothing to do later."""
    packages.install()
    network.load_bridge_filter()
    gobuild.build(layout.state, "the cluster", _PACKAGES)
    for name in _LINKS:
        link = layout.bin / name
        if not link.is_symlink():
            link.unlink(missing_ok=True)
            link.symlink_to(_MULTI_CALL)
    images.make(layout)


def start(layout: Layout, *, enforce_network_policies: bool) -> None:
    """Bring the cluster up from nothing; return when the node is ready and names resolve."""
    _make_directories(layout)
    machine.change(layout)
    pki.make(layout)
    _write_configs(layout)
    node = namespace.create(layout)
    network.connect(node)
    for component in components.foundation(layout):
        processes.start(node, layout, component)
    _wait(node, layout, "containerd", 30, lambda: containerd.answers(node, layout))
    for reference in (PAUSE_IMAGE, COREDNS_IMAGE):
        containerd.load(node, layout, images.archive_of(layout, reference))
    _wait(node, layout, "the API server", 90, lambda: _api_is_ready(layout))
    _start_clients(node, layout, enforce_network_policies=enforce_network_policies)
    addons.wait_for_dns(layout)


def is_up(layout: Layout) -> bool:
    """Whether every component runs and the API server is ready."""
    node = namespace.find(layout)
    return (
        node is not None
        and all(processes.runs(node, layout, name) for name in processes.started(layout))
        and _api_is_ready(layout)
    )


def stop(layout: Layout) -> None:
    """End everything and remove all of its state. Raises `ClusterError` when something stays."""
    layout.kubeconfig.unlink(missing_ok=True)
    if not layout.run.exists():
        return
    node = namespace.find(layout)
    if node is not None:
        node.end()
    network.disconnect()
    machine.restore(layout)
    commands.run("rm", "--recursive", "--force", "--one-file-system", layout.run)


def _start_clients(node: Namespace, layout: Layout, *, enforce_network_policies: bool) -> None:
    for component in components.clients(layout):
        processes.start(node, layout, component)
    addons.apply_dns(layout)
    if enforce_network_policies:
        addons.apply_network_policy_rights(layout)
        network.queue_new_connections(node)
        processes.start(node, layout, components.network_policies(layout))
    _wait(node, layout, "the node", 90, lambda: _node_is_ready(layout))


def _make_directories(layout: Layout) -> None:
    for directory in (layout.logs, layout.pids, layout.config / "cni", layout.run / "pod-logs", layout.run / "volume-plugins"):
        directory.mkdir(parents=True)


def _write_configs(layout: Layout) -> None:
    _, open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = {
        "audit-policy.json": audit.POLICY,
        "kubelet.json": configs.kubelet(layout, min(open_files, 1_000_000)),
        "kube-proxy.json": configs.kube_proxy(layout),
        "cni/10-pods.conflist": configs.pod_network(layout),
    }
    for name, content in files.items():
        (layout.config / name).write_text(json.dumps(content, indent=2))
    (layout.config / "containerd.toml").write_text(configs.containerd(layout))


def _wait(node: Namespace, layout: Layout, what: str, limit: float, holds: Callable[[], bool]) -> None:
    def holds_while_all_run() -> bool:
        processes.require_running(node, layout)
        return holds()

    commands.wait_until(f"{what} (logs: {layout.logs})", limit, holds_while_all_run)


def _api_is_ready(layout: Layout) -> bool:
    return _answer(layout, "get", "--raw=/readyz") == "ok"


def _node_is_ready(layout: Layout) -> bool:
    status = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    return _answer(layout, "get", "node", NODE_NAME, f"--output={status}") == "True"


def _answer(layout: Layout, *arguments: str) -> str:
    try:
        return addons.kubectl(layout, "--request-timeout=5s", *arguments)
    except CommandFailed:
        return ""
