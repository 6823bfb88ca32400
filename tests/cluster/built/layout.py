"""Where everything of a built cluster lies, and its addresses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NODE_NAME = "node1"
HOST_LINK = "thunderagent0"
"""The machine's end of the link to the node; all of the cluster that the machine's own network sees."""

# 198.18.0.0/15 is set apart for tests (RFC 2544): no network that the machine is in has these addresses.
HOST_ADDRESS = "198.18.64.1"
NODE_ADDRESS = "198.18.64.2"
LINK_PREFIX = 30

POD_RANGE = "10.244.0.0/24"
SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
DNS_DOMAIN = "cluster.local"

PAUSE_IMAGE = "thunderagent.test/pause:1"
COREDNS_IMAGE = "thunderagent.test/coredns:1"
BASE_IMAGE = "localhost/python:3.11-slim"
"""What `FROM python:3.11-slim` finds: buildah tries localhost/ first for a name without a registry."""


@dataclass(frozen=True)
class Layout:
    """The paths below one state directory. Whatever is below `run` goes with `cluster-down`; the rest is kept."""

    state: Path

    @property
    def bin(self) -> Path:
        """Programs that were built."""
        return self.state / "bin"

    @property
    def images(self) -> Path:
        """Archives of images."""
        return self.state / "images"

    @property
    def buildah(self) -> Path:
        """buildah's layers, kept so that a second build is quick."""
        return self.state / "buildah"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.state / "kubeconfig"

    @property
    def run(self) -> Path:
        """All state of the running cluster."""
        return self.state / "run"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.run / "pki"

    @property
    def config(self) -> Path:
        """Configuration files of the components."""
        return self.run / "config"

    @property
    def logs(self) -> Path:
        """A log a component."""
        return self.run / "logs"

    @property
    def pids(self) -> Path:
        """A file a component: its process id in the node's namespace."""
        return self.run / "pids"

    @property
    def audit_log(self) -> Path:
        """What the API server was asked."""
        return self.logs / "audit.log"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.run / "containerd.sock"

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of a component."""
        return self.config / f"{user}.kubeconfig"
