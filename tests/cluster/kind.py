"""`kind`: Kubernetes in a container of the Docker engine that runs on this machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cluster import audit, commands, gobuild
from tests.cluster.record import Record
from tests.cluster.settings import Settings

_CLUSTER = "thunderagent"
_AUDIT_IN_NODE = "/var/log/kubernetes/audit"
_POLICY_IN_NODE = "/etc/kubernetes/audit-policy.yaml"


def plan(settings: Settings) -> Record:
    """Kubeconfig and audit log are files in the state directory."""
    return Record(
        way="kind",
        kubeconfig=str(settings.state / "kubeconfig"),
        image_prefix=settings.image_prefix,
        audit_log=str(_audit_directory(settings) / "audit.log"),
        enforces_network_policies=True,  # since kind 0.24: its network plugin is made of kube-network-policies
    )


def is_up(settings: Settings, record: Record) -> bool:
    """Whether the API server in the container answers."""
    kubectl = gobuild.tool_if_present(settings.state, "kubectl")
    return kubectl is not None and commands.succeeds(kubectl, "--kubeconfig", record.kubeconfig, "get", "--raw=/readyz")


def up(settings: Settings, record: Record) -> Record:
    """Create the cluster; kind and what the tests call are built if they are not on the PATH."""
    for tool in ("kubectl", "helm"):
        gobuild.tool(settings.state, tool)
    _delete(settings)
    policy = settings.state / "audit-policy.yaml"
    policy.write_text(json.dumps(audit.POLICY))
    _audit_directory(settings).mkdir(parents=True, exist_ok=True)
    (
        _audit_directory(settings) / "audit.log"
    ).touch()  # the API server, root in its container, would make one that only root can read
    config = settings.state / "kind.yaml"
    config.write_text(json.dumps(kind_config(policy, _audit_directory(settings)), indent=2))
    with commands.step("Creating the kind cluster"):
        _kind(settings, "create", "cluster", f"--config={config}", f"--kubeconfig={record.kubeconfig}", "--wait=180s")
    return record


def down(settings: Settings, record: Record) -> None:
    """Delete the cluster and its files. What was built stays."""
    _delete(settings)
    Path(record.kubeconfig).unlink(missing_ok=True)
    shutil.rmtree(_audit_directory(settings), ignore_errors=True)


def build_image(settings: Settings, record: Record, reference: str, context: Path, flags: list[str]) -> None:
    """Build with Docker and copy the image into the node."""
    commands.run("docker", "build", "--tag", reference, *flags, context)
    _kind(settings, "load", "docker-image", reference, f"--name={_CLUSTER}")


def kind_config(policy: Path, audit_directory: Path) -> dict[str, object]:
    """What kind is told: one node, with the audit policy and the directory of the audit log mounted from this machine."""
    kubeadm = {
        "kind": "ClusterConfiguration",
        "apiServer": {
            # kubeadm's v1beta3: extraArgs is a map. kind writes that version for Kubernetes up to 1.35.
            "extraArgs": audit.flags(_POLICY_IN_NODE, f"{_AUDIT_IN_NODE}/audit.log"),
            "extraVolumes": [
                _volume("audit-policy", _POLICY_IN_NODE, "File", read_only=True),
                _volume("audit-log", _AUDIT_IN_NODE, "DirectoryOrCreate", read_only=False),
            ],
        },
    }
    mounts = [
        {"hostPath": str(policy), "containerPath": _POLICY_IN_NODE, "readOnly": True},
        {"hostPath": str(audit_directory), "containerPath": _AUDIT_IN_NODE},
    ]
    node = {"role": "control-plane", "kubeadmConfigPatches": [json.dumps(kubeadm)], "extraMounts": mounts}
    return {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "name": _CLUSTER, "nodes": [node]}


def _volume(name: str, path: str, kind_of_path: str, *, read_only: bool) -> dict[str, object]:
    return {"name": name, "hostPath": path, "mountPath": path, "pathType": kind_of_path, "readOnly": read_only}


def _kind(settings: Settings, *arguments: str) -> str:
    return commands.run(gobuild.tool(settings.state, "kind"), *arguments)


def _delete(settings: Settings) -> None:
    if gobuild.tool_if_present(settings.state, "kind") is not None:
        _kind(settings, "delete", "cluster", f"--name={_CLUSTER}", f"--kubeconfig={settings.state / 'kubeconfig'}")


def _audit_directory(settings: Settings) -> Path:
    return settings.state / "kind-audit"
