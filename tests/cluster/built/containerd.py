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


def kill_all(node: Namespace, layout: Layout, kubernetes_namespace: str) -> int:
    """Kill (-9) what runs in the containers of a Kubernetes namespace; return how many containers that were."""
    label = f'labels."io.kubernetes.pod.namespace"=={kubernetes_namespace}'
    containers = node.run(*_ctr(layout), "containers", "list", "--quiet", f'{label},labels."io.cri-containerd.kind"==container')
    tasks = node.run(*_ctr(layout), "tasks", "list").splitlines()[1:]
    running = {line.split()[0] for line in tasks if line.endswith("RUNNING")}
    victims = running & set(containers.split())
    for victim in victims:
        node.run(*_ctr(layout), "tasks", "kill", "--signal=SIGKILL", victim)
    return len(victims)


def _ctr(layout: Layout) -> tuple[str, ...]:
    return ("ctr", f"--address={layout.containerd_socket}", "--namespace=k8s.io")
