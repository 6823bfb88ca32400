"""Objects that a cluster needs besides its components: DNS, and the rights of the judge of new connections."""

from __future__ import annotations

from pathlib import Path
from string import Template

from tests.cluster import commands
from tests.cluster.built.layout import COREDNS_IMAGE, DNS_DOMAIN, DNS_SERVICE, Layout

_MANIFESTS = Path(__file__).parent / "addons"


def apply_dns(layout: Layout) -> None:
    """Create CoreDNS and its service; `wait_for_dns` waits for them."""
    manifest = Template((_MANIFESTS / "coredns.yaml").read_text())
    kubectl(layout, "apply", "-f-", stdin=manifest.substitute(domain=DNS_DOMAIN, image=COREDNS_IMAGE, address=DNS_SERVICE))


def wait_for_dns(layout: Layout) -> None:
    """Return once CoreDNS answers."""
    kubectl(layout, "--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=90s")


def apply_network_policy_rights(layout: Layout) -> None:
    """Let the judge read what it judges by."""
    kubectl(layout, "apply", "-f", str(_MANIFESTS / "network-policies.yaml"))


def kubectl(layout: Layout, *arguments: str, stdin: str | None = None) -> str:
    """Run kubectl as the administrator, whatever proxies this machine goes through."""
    program, home = layout.bin / "kubectl", {"HOME": str(layout.run)}
    return commands.run(program, f"--kubeconfig={layout.kubeconfig}", *arguments, stdin=stdin, env=home)
