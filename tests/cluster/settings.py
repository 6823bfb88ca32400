"""What a person can choose about the test cluster, read from the environment once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError

REPOSITORY = Path(__file__).resolve().parents[2]

WAYS = ("current", "kind", "built")
"""The names of the ways to a cluster, as `CLUSTER` takes them."""


@dataclass(frozen=True)
class Settings:
    """The choices. A field's docstring starts with the environment variable that sets it."""

    way: str | None
    """CLUSTER: one of `WAYS`. None: chosen by what is there."""

    state: Path
    """THUNDERAGENT_CLUSTER_DIR: all that the cluster is made of lies below. Default: .cache/cluster in the repository. A
    directory outside keeps binaries and images for other checkouts, and so for the next run of CI."""

    confirmed: bool
    """CONFIRM=yes: use the current context of kubectl without asking."""

    image_prefix: str
    """CLUSTER_IMAGES: what the names of the tests' images begin with. Default: thunderagent.test, a name that no registry has,
    so that an image that was not loaded is never looked for elsewhere. `current` needs one that the cluster pulls from."""

    network_policies: bool
    """CLUSTER_NETWORK_POLICIES=0 turns them off on a built cluster: NetworkPolicy objects are then accepted, not enforced."""


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises `ClusterError` for a way that does not exist."""
    way = environment.get("CLUSTER") or None
    if way is not None and way not in WAYS:
        raise ClusterError(f"CLUSTER is {way!r}; it must be one of {', '.join(WAYS)}, or absent.")
    state = environment.get("THUNDERAGENT_CLUSTER_DIR") or REPOSITORY / ".cache" / "cluster"
    return Settings(
        way=way,
        state=Path(state).expanduser().absolute(),
        confirmed=environment.get("CONFIRM") == "yes",
        image_prefix=(environment.get("CLUSTER_IMAGES") or "thunderagent.test").rstrip("/"),
        network_policies=environment.get("CLUSTER_NETWORK_POLICIES") != "0",
    )
