"""`built`: a whole Kubernetes on a bare Debian machine, with no Docker engine and no image registry.

etcd and every Kubernetes component are built from their Go modules (`gobuild.py`, `go/`); containerd, runc and the CNI plugins
are Debian's (`packages.py`); the base image is made by debootstrap and images by buildah (`images.py`). All of it runs in
namespaces of its own for processes, mounts and network (`namespace.py`), as in a container: it takes no port of the machine and
sets no firewall rule there, and what it started ends with the first process of the namespace. `node.py` is the order of it all.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.cluster import commands
from tests.cluster.built import containerd, images, namespace, network, node
from tests.cluster.built.layout import NODE_ADDRESS, Layout
from tests.cluster.record import Record
from tests.cluster.settings import Settings


def plan(settings: Settings) -> Record:
    """Kubeconfig and audit log are files in the state directory. Refuses a machine or directory on which it cannot run."""
    layout = Layout(settings.state)
    node.refuse_impossible(layout)
    return Record(
        way="built",
        kubeconfig=str(layout.kubeconfig),
        image_prefix=settings.image_prefix,
        audit_log=str(layout.audit_log),
        no_proxy=NODE_ADDRESS,
    )


def is_up(settings: Settings, record: Record) -> bool:
    """Whether every component runs and the API server is ready."""
    return node.is_up(Layout(settings.state))


def up(settings: Settings, record: Record) -> Record:
    """Install, build, make images, start: each only as far as it is not done."""
    layout = Layout(settings.state)
    node.prepare(layout)
    down(settings, record)
    enforces = settings.network_policies and network.can_queue_packets()
    with commands.step("Starting the cluster"):
        node.start(layout, enforce_network_policies=enforces)
    return replace(record, enforces_network_policies=enforces)


def down(settings: Settings, record: Record) -> None:
    """End all processes and remove all traces; raises `ClusterError` when something is left. Binaries and images stay."""
    node.stop(Layout(settings.state))


def build_image(settings: Settings, record: Record, reference: str, context: Path, flags: list[str]) -> None:
    """Build with buildah and import the image into containerd."""
    layout = Layout(settings.state)
    archive = images.build(layout, reference, context, flags)
    loaded = layout.run / "loaded" / archive.stem
    if loaded.exists() and loaded.read_text() == images.identity(archive):
        return
    containerd.load(namespace.require(layout), layout, archive)
    loaded.parent.mkdir(exist_ok=True)
    loaded.write_text(images.identity(archive))
