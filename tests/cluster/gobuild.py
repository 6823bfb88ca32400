"""Building programs from the Go module beside this file: Kubernetes, etcd, CoreDNS, helm, kind.

`built/go/go.mod` and `go.sum` pin every module by version and hash. To move to another Kubernetes: change its version, those
of the `replace` block (kubernetes's own go.mod names its parts at v0.0.0 and replaces them by directories that the published
module lacks) and of what must agree with it (etcd is named by kubernetes's go.mod; helm and CoreDNS need the same k8s.io/*),
then type `go mod tidy` there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import commands
from tests.cluster.errors import ClusterError, CommandFailed

SOURCE = Path(__file__).parent / "built" / "go"

_TOOLS = {"kubectl": "k8s.io/kubernetes/cmd/kubectl", "helm": "helm.sh/helm/v3/cmd/helm", "kind": "sigs.k8s.io/kind"}


def tool_if_present(state: Path, name: str) -> Path | None:
    """The path of a command: the one that was built, else the one on the PATH, else None."""
    built = state / "bin" / name
    if built.exists():
        return built
    found = shutil.which(name)
    return Path(found) if found else None


def tool(state: Path, name: str) -> Path:
    """The path of kubectl, helm or kind, built if it is nowhere. Raises `ClusterError` when it cannot be built."""
    present = tool_if_present(state, name)
    if present is not None:
        return present
    build(state, name, [_TOOLS[name]])
    return state / "bin" / name


def build(state: Path, what: str, packages: Sequence[str]) -> bool:
    """Build Go packages into `<state>/bin`, unless that was done before from the same sources; return whether it was done now.

    Go's own caches make a second build, from another checkout too, a matter of seconds. Raises `ClusterError` without a Go that
    is new enough, `CommandFailed` when the build fails.
    """
    require_go()
    stamp = state / "stamps" / f"go-{what}"
    key = _key(packages)
    if stamp.exists() and stamp.read_text() == key:
        return False
    (state / "bin").mkdir(parents=True, exist_ok=True)
    with commands.step(f"Building {what} (minutes the first time, seconds from Go's cache)"):
        commands.run(
            # -trimpath lets checkouts in different places share Go's cache.
            *("nice", "go", "build", "-trimpath", "-buildvcs=false"),
            *("-ldflags", _link_flags(), "-o", f"{state / 'bin'}/", *packages),
            env=os.environ | {"CGO_ENABLED": "0"},
            cwd=SOURCE,
        )
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(key)
    return True


def version_of(module: str) -> str:
    """The version that go.mod requires of a module."""
    match = re.search(rf"^\s*{re.escape(module)} (v\S+)", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise ClusterError(f"{SOURCE / 'go.mod'} requires no {module}.")
    return match[1]


def minimum_go() -> tuple[int, int]:
    """The oldest Go that go.mod allows."""
    match = re.search(r"^go (\d+)\.(\d+)", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise ClusterError(f"{SOURCE / 'go.mod'} names no version of Go.")
    return int(match[1]), int(match[2])


def require_go() -> None:
    """Raise `ClusterError` unless the PATH has a Go that is new enough."""
    wanted = "Go {}.{} or newer".format(*minimum_go())
    try:
        found = commands.run("go", "env", "GOVERSION", env=os.environ | {"GOTOOLCHAIN": "local"}, cwd=SOURCE).strip()
    except CommandFailed as failed:  # an older Go refuses even to look at a module that is too new for it
        raise ClusterError(f"{wanted} is needed to build the cluster:\n{failed}") from failed
    except ClusterError as absent:
        raise ClusterError(f"{wanted} is needed to build the cluster, and there is no go on the PATH.") from absent
    version = re.match(r"go(\d+)\.(\d+)", found)
    if version is None or (int(version[1]), int(version[2])) < minimum_go():
        raise ClusterError(f"{wanted} is needed to build the cluster; go on the PATH is {found or 'of an unknown version'}.")


def _link_flags() -> str:
    """Without these, Kubernetes calls itself v0.0.0-master and helm believes it."""
    kubernetes = version_of("k8s.io/kubernetes")
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    values = {"helm.sh/helm/v3/internal/version.version": version_of("helm.sh/helm/v3")}
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        values |= {f"{package}.gitVersion": kubernetes, f"{package}.gitMajor": major, f"{package}.gitMinor": minor}
    for package in ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules"):
        values |= {f"{package}.k8sVersionMajor": major, f"{package}.k8sVersionMinor": minor}
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in values.items())])


def _key(packages: Sequence[str]) -> str:
    digest = hashlib.sha256(" ".join([*packages, _link_flags(), commands.run("go", "version")]).encode())
    for file in sorted(path for path in SOURCE.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(SOURCE)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
