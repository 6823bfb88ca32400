"""What is asked of containerd past the kubelet. `ctr` runs inside the node, where it leaves nothing on the machine."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.built.layout import Layout
from tests.cluster.built.namespace import Namespace


def answers(node: Namespace, layout: Layout) -> bool:
    """Whether containerd takes calls."""
    return node.succeeds(*_ctr(layout), "version")


def load(node: Namespace, layout: Layout, archive: Path) -> None:
    """Import an image's archive, so that pods can have it without a registry."""
    node.run(*_ctr(layout), "images", "import", archive)


def kill_all(node: Namespace, layout: Layout, kubernetes_namespace: str, pod: str | None = None) -> int:
    """Kill (-9) what runs in the containers of a Kubernetes namespace, or of one pod of it; return how many that were."""
    return _to_each(node, layout, _containers(node, layout, kubernetes_namespace, "RUNNING", pod), "kill", "--signal=SIGKILL")


def pause_all(node: Namespace, layout: Layout, kubernetes_namespace: str, pod: str) -> int:
    """Freeze the containers of a pod; return how many that were."""
    return _to_each(node, layout, _containers(node, layout, kubernetes_namespace, "RUNNING", pod), "pause")


def resume_all(node: Namespace, layout: Layout, kubernetes_namespace: str, pod: str) -> int:
    """Let frozen containers of a pod go on; return how many that were."""
    return _to_each(node, layout, _containers(node, layout, kubernetes_namespace, "PAUSED", pod), "resume")


def _containers(node: Namespace, layout: Layout, kubernetes_namespace: str, state: str, pod: str | None = None) -> set[str]:
    """The containers of a namespace, or of one pod of it, that are in a state."""
    labels = {"io.kubernetes.pod.namespace": kubernetes_namespace, "io.cri-containerd.kind": "container"}
    labels |= {} if pod is None else {"io.kubernetes.pod.name": pod}
    wanted = ",".join(f'labels."{name}"=={value}' for name, value in labels.items())
    known = node.run(*_ctr(layout), "containers", "list", "--quiet", wanted).split()
    tasks = node.run(*_ctr(layout), "tasks", "list").splitlines()[1:]
    return {line.split()[0] for line in tasks if line.endswith(state)} & set(known)


def _to_each(node: Namespace, layout: Layout, containers: set[str], *command: str) -> int:
    for container in containers:
        node.run(*_ctr(layout), "tasks", *command, container)
    return len(containers)


def _ctr(layout: Layout) -> tuple[str, ...]:
    return ("ctr", f"--address={layout.containerd_socket}", "--namespace=k8s.io")
