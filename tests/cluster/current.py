"""`current`: the cluster that kubectl points at. It is used, never made and never removed."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cluster import commands
from tests.cluster.errors import ClusterError, CommandFailed
from tests.cluster.record import Record
from tests.cluster.settings import Settings


def context() -> str | None:
    """The name of kubectl's current context, if there is one."""
    if shutil.which("kubectl") is None:
        return None
    try:
        return commands.run("kubectl", "config", "current-context").strip() or None
    except CommandFailed:
        return None


def server() -> str:
    """The address of the current context's API server, as the kubeconfig has it."""
    return commands.run("kubectl", "config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}").strip()


def plan(settings: Settings) -> Record:
    """The context goes into a kubeconfig of its own: a later `kubectl config use-context` must not move the tests elsewhere."""
    return Record(way="current", kubeconfig=str(settings.state / "kubeconfig"), image_prefix=settings.image_prefix)


def is_up(settings: Settings, record: Record) -> bool:
    """Whether the recorded context answers, and is still the one that kubectl points at."""
    recorded = commands.succeeds("kubectl", "--kubeconfig", record.kubeconfig, "get", "--raw=/readyz")
    return recorded and context() == _context_in(record)


def up(settings: Settings, record: Record) -> Record:
    """Write down which cluster it is. Raises `ClusterError` when it does not answer."""
    kubeconfig = Path(record.kubeconfig)
    kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    kubeconfig.unlink(missing_ok=True)
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(commands.run("kubectl", "config", "view", "--minify", "--flatten", "--raw"))
    if not commands.succeeds("kubectl", "--kubeconfig", kubeconfig, "get", "--raw=/readyz"):
        raise ClusterError(f"The context {context()!r} at {server()} does not answer, or does not let you read /readyz.")
    commands.say(f"Using the context {context()!r} at {server()}.")
    return record


def down(settings: Settings, record: Record) -> None:
    """Forget the cluster; it stays as it is."""
    Path(record.kubeconfig).unlink(missing_ok=True)


def build_image(settings: Settings, record: Record, reference: str, context: Path, flags: list[str]) -> None:
    """Build with Docker, then load it into a kind cluster, or push it where any other cluster pulls from."""
    if shutil.which("docker") is None:
        raise ClusterError("Images for CLUSTER=current are built with docker, which is not on the PATH.")
    commands.run("docker", "build", "--tag", reference, *flags, context)
    name = _context_in(record).removeprefix("kind-")
    if name != _context_in(record):
        commands.run("kind", "load", "docker-image", reference, "--name", name)
    elif record.image_prefix == "thunderagent.test":
        raise ClusterError("Set CLUSTER_IMAGES to a registry and path that you can push to and the cluster pulls from.")
    else:
        commands.run("docker", "push", reference)


def _context_in(record: Record) -> str:
    try:
        return commands.run("kubectl", "--kubeconfig", record.kubeconfig, "config", "current-context").strip()
    except CommandFailed:
        return ""
