"""Faults of a built cluster: its components are stopped and started while the rest goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cluster.built import components, containerd, namespace, processes
from tests.cluster.built.components import Component
from tests.cluster.built.layout import Layout
from tests.cluster.built.namespace import Namespace
from tests.cluster.errors import ClusterError


def stop(state: Path, name: str) -> None:
    """Kill a component, as a crash would; it stays down until `start`."""
    node, layout, component = _find(state, name)
    processes.stop(node, layout, component.name)


def start(state: Path, name: str) -> None:
    """Start a component that was stopped."""
    node, layout, component = _find(state, name)
    processes.start(node, layout, component)


def restart(state: Path, name: str) -> None:
    """Kill a component and start it again."""
    stop(state, name)
    start(state, name)


def kill_containers(state: Path, kubernetes_namespace: str, pod: str | None = None) -> int:
    """Kill (-9) the first process of every container of a namespace's pods, or of one of them; return how many. The kubelet
    restarts them."""
    layout = Layout(state)
    return containerd.kill_all(namespace.require(layout), layout, kubernetes_namespace, pod)


def pause_containers(state: Path, kubernetes_namespace: str, pod: str) -> int:
    """Freeze the containers of a pod until `resume_containers`; return how many. Their connections stay, unanswered."""
    layout = Layout(state)
    return containerd.pause_all(namespace.require(layout), layout, kubernetes_namespace, pod)


def resume_containers(state: Path, kubernetes_namespace: str, pod: str) -> int:
    """Let the frozen containers of a pod go on; return how many."""
    layout = Layout(state)
    return containerd.resume_all(namespace.require(layout), layout, kubernetes_namespace, pod)


ACTIONS: dict[str, Callable[[Path, str], None]] = {"stop": stop, "start": start, "restart": restart}


def _find(state: Path, name: str) -> tuple[Namespace, Layout, Component]:
    layout = Layout(state)
    node = namespace.require(layout)
    known = (*components.foundation(layout), *components.clients(layout), components.network_policies(layout))
    for component in known:
        if component.name == name:
            return node, layout, component
    raise ClusterError(f"There is no component {name!r}; there are {', '.join(component.name for component in known)}.")
