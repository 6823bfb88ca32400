"""Which way to a cluster to take: a decision about what was seen on the machine."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cluster.errors import ClusterError


@dataclass(frozen=True)
class Surroundings:
    """What the machine offers."""

    context: str | None
    """The current context of kubectl; None without kubectl or without a context."""

    terminal: bool
    """Whether somebody can be asked."""

    docker: bool
    """Whether a Docker engine answers."""

    kind: bool
    """Whether the `kind` command is there, or go, which builds it."""

    debian: bool
    """Whether the machine has Debian's packages."""

    root: bool
    """Whether this is root."""


@dataclass(frozen=True)
class Choice:
    """The way to take, and whether a person must agree first."""

    way: str
    ask: bool = False
    otherwise: str | None = None
    """The way to take when the person says no; None: stop."""


def choose(wanted: str | None, confirmed: bool, seen: Surroundings) -> Choice:
    """Choose a way to a cluster.

    The tests create and delete things in the cluster, so one that was there before is never taken silently: without `CLUSTER`
    it is offered to a person at a terminal and to nobody else. Raises `ClusterError` when there is no way, or the wanted one is
    not possible.
    """
    if wanted == "current":
        return _current(confirmed, seen)
    if wanted is not None:
        return _possible(wanted, seen)
    found = next((way for way in ("kind", "built") if _obstacle(way, seen) is None), None)
    if seen.context is not None and seen.terminal:
        return Choice("current", ask=True, otherwise=found)
    if found is None:
        obstacles = "\n".join(f"  {way}: {_obstacle(way, seen)}" for way in ("kind", "built"))
        raise ClusterError(f"There is no way to a cluster here.\n{obstacles}\n  current: name it, CLUSTER=current.")
    return Choice(found)


def _current(confirmed: bool, seen: Surroundings) -> Choice:
    if seen.context is None:
        raise ClusterError("CLUSTER=current, but kubectl has no current context. Type: kubectl config use-context NAME")
    if not confirmed and not seen.terminal:
        raise ClusterError(
            f"CLUSTER=current would run the tests in the context {seen.context!r}, and there is no terminal to ask at. "
            f"If that is meant, add CONFIRM=yes."
        )
    return Choice("current", ask=not confirmed)


def _possible(way: str, seen: Surroundings) -> Choice:
    obstacle = _obstacle(way, seen)
    if obstacle is not None:
        raise ClusterError(f"CLUSTER={way} is not possible here: {obstacle}")
    return Choice(way)


def _obstacle(way: str, seen: Surroundings) -> str | None:
    if way == "kind":
        if not seen.docker:
            return "`docker info` fails; start a Docker engine."
        return None if seen.kind else "neither kind nor go, which could build it, is on the PATH."
    if not seen.debian:
        return "the machine is no Debian (there is no apt-get)."
    return None if seen.root else "namespaces, mounts and cgroups need root; type it as root (sudo --preserve-env make ...)."
