"""The node's network: one link to the machine, and where packets of pods are judged.

Pods reach the machine at `HOST_ADDRESS`, the machine reaches the node's ports at `NODE_ADDRESS`; there is no way further, so a
test cannot reach the internet by mistake.
"""

from __future__ import annotations

from pathlib import Path

from tests.cluster import commands
from tests.cluster.built.layout import HOST_ADDRESS, HOST_LINK, LINK_PREFIX, NODE_ADDRESS
from tests.cluster.built.namespace import Namespace

QUEUE = 98
"""The netfilter queue that `go/kube/networkpolicies.go` reads."""


def connect(namespace: Namespace) -> None:
    """Link the node to the machine and let it forward what its pods send."""
    commands.run("ip", "link", "add", HOST_LINK, "type", "veth", "peer", "name", "eth0", "netns", str(namespace.pid))
    commands.run("ip", "address", "add", f"{HOST_ADDRESS}/{LINK_PREFIX}", "dev", HOST_LINK)
    commands.run("ip", "link", "set", HOST_LINK, "up")
    namespace.run("ip", "link", "set", "lo", "up")
    namespace.run("ip", "address", "add", f"{NODE_ADDRESS}/{LINK_PREFIX}", "dev", "eth0")
    namespace.run("ip", "link", "set", "eth0", "up")
    namespace.run("ip", "route", "add", "default", "via", HOST_ADDRESS)
    for setting in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables"):  # of this network namespace alone
        namespace.run("sh", "-c", f"echo 1 >/proc/sys/net/{setting}")


def disconnect() -> None:
    """Remove the link; the kernel does so too, but only some time after the namespace has ended."""
    if link_exists():
        commands.run("ip", "link", "delete", HOST_LINK)


def link_exists() -> bool:
    """Whether the machine has its end of a link to a node."""
    return Path("/sys/class/net", HOST_LINK).exists()


def load_bridge_filter() -> None:
    """Make packets between pods pass the firewall rules that services are. Raises `CommandFailed` without the module."""
    if not Path("/proc/sys/net/bridge/bridge-nf-call-iptables").exists():
        commands.run("modprobe", "br_netfilter")


def can_queue_packets() -> bool:
    """Whether iptables here can hand packets to a program, which is how NetworkPolicy is enforced."""
    # In a network namespace that is gone when the command ends.
    return commands.succeeds("unshare", "--net", "iptables", *_judge_new_connections())


def queue_new_connections(namespace: Namespace) -> None:
    """Hand the first packet of each connection that the node forwards to the judge; let it pass when there is none.

    kube-network-policies sets nftables rules of its own for that, which need a kernel with CONFIG_NFT_QUEUE. The iptables
    target is older and everywhere.
    """
    namespace.run("iptables", *_judge_new_connections())


def _judge_new_connections() -> tuple[str, ...]:
    match = ("-m", "conntrack", "--ctstate", "NEW")
    return ("-w", "5", "-t", "mangle", "-I", "FORWARD", *match, "-j", "NFQUEUE", "--queue-num", str(QUEUE), "--queue-bypass")
