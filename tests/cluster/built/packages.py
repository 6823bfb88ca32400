"""The Debian packages that a node needs, and Go where Debian's is new enough."""

from __future__ import annotations

import os
import re
import shutil

from tests.cluster import commands, gobuild
from tests.cluster.errors import ClusterError, CommandFailed

_PACKAGES = (
    "buildah",
    "ca-certificates",
    "containerd",
    "containernetworking-plugins",
    "debootstrap",
    "iproute2",
    "iptables",
    "kmod",
    "openssl",
    "runc",
)


def install() -> None:
    """Install what is absent. Raises `ClusterError` when Go is absent and Debian's is too old, `CommandFailed` from apt."""
    missing = [package for package in _PACKAGES if not commands.succeeds("dpkg", "--status", package)]
    if shutil.which("go") is None and _debian_has_new_go():
        missing.append("golang-go")
    if missing:
        with commands.step(f"Installing {', '.join(missing)}"):
            _apt_install(missing)
    try:
        gobuild.require_go()
    except ClusterError as unfit:
        advice = (
            f"apt offers golang-go {_debian_go()}. Put a newer one on the PATH, or add the Debian release that has it to apt."
        )
        raise ClusterError(f"{unfit}\n{advice}") from unfit


def debian_mirror() -> str:
    """The mirror that this machine's apt uses."""
    found = _mirrors()
    if not found:
        commands.run("apt-get", "update", "--quiet=2")
        found = _mirrors()
    return found[0].rstrip("/")


def _apt_install(packages: list[str]) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "--yes", "--quiet=2", "--no-install-recommends", *packages)
    try:
        commands.run(*install, env=environment)
    except CommandFailed:  # a new machine has no package lists, or its lists name versions that are gone
        commands.run("apt-get", "update", "--quiet=2")
        commands.run(*install, env=environment)


def _debian_has_new_go() -> bool:
    version = re.match(r"(\d+)\.(\d+)", _debian_go())
    return version is not None and (int(version[1]), int(version[2])) >= gobuild.minimum_go()


def _debian_go() -> str:
    """The version of Go that apt would install, without Debian's own counting; `(none)` when it has no package lists."""
    candidate = re.search(r"Candidate: (?:\d+:)?(\S+)", commands.run("apt-cache", "policy", "golang-go"))
    return candidate[1] if candidate else "(none)"


def _mirrors() -> list[str]:
    return commands.run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").splitlines()
