"""The configuration files of the components, as data. JSON is YAML, so that is what is written."""

from __future__ import annotations

from tests.cluster.built.layout import DNS_DOMAIN, DNS_SERVICE, NODE_NAME, PAUSE_IMAGE, POD_RANGE, Layout


def kubelet(layout: Layout, open_files: int) -> dict[str, object]:
    """The kubelet's. `open_files` is the limit that this machine sets on one process; the kubelet must not ask for more."""
    nothing = dict.fromkeys(
        ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"), "0%"
    )
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet.key"),
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": DNS_DOMAIN,
        "podLogsDir": str(layout.run / "pod-logs"),
        "volumePluginDir": str(layout.run / "volume-plugins"),
        "maxPods": 110,
        # The machine may have cgroup v1 alone, swap, and no systemd to ask for cgroups.
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "enforceNodeAllocatable": [],
        # Lowering a score needs CAP_SYS_RESOURCE, which root in a container or small virtual machine may lack.
        "oomScoreAdj": 0,
        "maxOpenFiles": open_files,
        # The disk is everybody's and no image can be pulled again: never evict, never collect images.
        "evictionHard": nothing,
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def kube_proxy(layout: Layout) -> dict[str, object]:
    """kube-proxy's. The zeros leave connection tracking as the machine has it."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": NODE_NAME,
        "clientConnection": {"kubeconfig": str(layout.kubeconfig_of("proxy"))},
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def pod_network(layout: Layout) -> dict[str, object]:
    """The CNI configuration: pods on a bridge, which masks what they send to the machine."""
    addresses = {
        "type": "host-local",
        "dataDir": str(layout.run / "pod-addresses"),
        "ranges": [[{"subnet": POD_RANGE}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": addresses}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def containerd(layout: Layout) -> str:
    """containerd's, in TOML."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{layout.run}/containerd/root"
state = "{layout.run}/containerd/state"
oom_score = 0

[grpc]
address = "{layout.containerd_socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{layout.run}/containerd/opt"

[{cri}]
sandbox_image = "{PAUSE_IMAGE}"
disable_apparmor = true
restrict_oom_score_adj = true  # without CAP_SYS_RESOURCE a score cannot be lowered

[{cri}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{cri}.containerd.runtimes.runc.options]
SystemdCgroup = false

[{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{layout.config}/cni"
"""
