"""The programs that make up a cluster, in the order in which they start: a table of command lines."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cluster import audit
from tests.cluster.built.layout import DNS_DOMAIN, NODE_ADDRESS, NODE_NAME, SERVICE_RANGE, Layout

_ETCD_CLIENTS = "http://127.0.0.1:2379"
_ETCD_PEERS = "http://127.0.0.1:2380"


@dataclass(frozen=True)
class Component:
    """One program that stays."""

    name: str
    argv: tuple[str, ...]


def foundation(layout: Layout) -> tuple[Component, ...]:
    """What depends on nothing."""
    return (etcd(layout), api_server(layout), containerd(layout))


def clients(layout: Layout) -> tuple[Component, ...]:
    """What needs an API server that is ready: until it has created its roles, the controllers are refused and end."""
    return (controller_manager(layout), scheduler(layout), kubelet(layout), kube_proxy(layout))


def etcd(layout: Layout) -> Component:
    """The store. It does not wait for the disk: nothing here outlives a crash of the machine."""
    flags = {
        "name": "node1",
        "data-dir": f"{layout.run}/etcd",
        "listen-client-urls": _ETCD_CLIENTS,
        "advertise-client-urls": _ETCD_CLIENTS,
        "listen-peer-urls": _ETCD_PEERS,
        "initial-advertise-peer-urls": _ETCD_PEERS,
        "initial-cluster": f"node1={_ETCD_PEERS}",
        "log-level": "warn",
    }
    return Component("etcd", (f"{layout.bin}/etcd", "--unsafe-no-fsync", *_flags(flags)))


def api_server(layout: Layout) -> Component:
    """The API: RBAC and the node authorizer, Pod Security admission (on by default), an audit log of everything."""
    pki = layout.pki
    flags = {
        "etcd-servers": _ETCD_CLIENTS,
        "advertise-address": NODE_ADDRESS,
        "secure-port": "6443",
        "service-cluster-ip-range": SERVICE_RANGE,
        "allow-privileged": "true",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "client-ca-file": f"{pki}/ca.crt",
        "tls-cert-file": f"{pki}/apiserver.crt",
        "tls-private-key-file": f"{pki}/apiserver.key",
        "service-account-issuer": f"https://kubernetes.default.svc.{DNS_DOMAIN}",
        "service-account-key-file": f"{pki}/service-accounts.pub",
        "service-account-signing-key-file": f"{pki}/service-accounts.key",
        "kubelet-certificate-authority": f"{pki}/ca.crt",
        "kubelet-client-certificate": f"{pki}/apiserver-to-kubelet.crt",
        "kubelet-client-key": f"{pki}/apiserver-to-kubelet.key",
        "kubelet-preferred-address-types": "InternalIP",
        "requestheader-client-ca-file": f"{pki}/front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": f"{pki}/front-proxy.crt",
        "proxy-client-key-file": f"{pki}/front-proxy.key",
    }
    flags |= audit.flags(str(layout.config / "audit-policy.json"), str(layout.audit_log))
    return Component("kube-apiserver", (f"{layout.bin}/kube-apiserver", *_flags(flags)))


def controller_manager(layout: Layout) -> Component:
    """The controllers, each with a service account of its own, as on a real cluster."""
    pki = layout.pki
    flags = _as_client(layout, "controller-manager") | {
        "use-service-account-credentials": "true",
        "allocate-node-cidrs": "false",  # the CNI configuration has the one range
        "service-cluster-ip-range": SERVICE_RANGE,
        "root-ca-file": f"{pki}/ca.crt",
        "service-account-private-key-file": f"{pki}/service-accounts.key",
        "cluster-signing-cert-file": f"{pki}/ca.crt",
        "cluster-signing-key-file": f"{pki}/ca.key",
    }
    return Component("kube-controller-manager", (f"{layout.bin}/kube-controller-manager", *_flags(flags)))


def scheduler(layout: Layout) -> Component:
    """The scheduler, with its defaults."""
    return Component("kube-scheduler", (f"{layout.bin}/kube-scheduler", *_flags(_as_client(layout, "scheduler"))))


def containerd(layout: Layout) -> Component:
    """Debian's containerd, which runs the containers through runc."""
    return Component("containerd", ("containerd", "--config", f"{layout.config}/containerd.toml"))


def kubelet(layout: Layout) -> Component:
    """The node's agent."""
    flags = {
        "config": f"{layout.config}/kubelet.json",
        "kubeconfig": str(layout.kubeconfig_of("kubelet")),
        "hostname-override": NODE_NAME,
        "node-ip": NODE_ADDRESS,
        "root-dir": f"{layout.run}/kubelet",
        "cert-dir": f"{layout.run}/kubelet-certificates",
    }
    return Component("kubelet", (f"{layout.bin}/kubelet", *_flags(flags)))


def kube_proxy(layout: Layout) -> Component:
    """Services, as firewall rules of the node's network namespace."""
    return Component("kube-proxy", (f"{layout.bin}/kube-proxy", f"--config={layout.config}/kube-proxy.json"))


def network_policies(layout: Layout) -> Component:
    """The judge of new connections."""
    flags = {"kubeconfig": str(layout.kubeconfig_of("network-policies")), "node-name": NODE_NAME}
    return Component("network-policies", (f"{layout.bin}/network-policies", *_flags(flags)))


def _as_client(layout: Layout, user: str) -> dict[str, str]:
    """For the controllers: one of each, so no election to wait for."""
    kubeconfig = str(layout.kubeconfig_of(user))
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
    }


def _flags(values: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"--{name}={value}" for name, value in values.items())
