"""Which cluster is up: a small file in the state directory, written by `up`, read by `down` and by the tests."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """A cluster that is up, or that is being brought up."""

    way: str
    """How it was had: `current`, `kind` or `built`."""

    kubeconfig: str
    """File with its address and an administrator's credentials; its current context is the cluster."""

    image_prefix: str
    """What the name of an image begins with so that this cluster can have it."""

    audit_log: str | None = None
    """File that the API server writes a line to for each request; None where it is out of reach."""

    enforces_network_policies: bool | None = None
    """None: not known."""

    no_proxy: str | None = None
    """The address that must be reached without a proxy, when the cluster is on this machine."""

    ready: bool = False
    """False until `up` has come to its end: something may be there to remove, nothing to use."""


def read(state: Path) -> Record | None:
    """The record in a state directory; None when no cluster was brought up from it, or `down` removed it."""
    try:
        return Record(**json.loads(_file(state).read_text()))
    except FileNotFoundError:
        return None


def write(state: Path, record: Record) -> None:
    """Replace the record."""
    state.mkdir(parents=True, exist_ok=True)
    _file(state).write_text(json.dumps(asdict(record), indent=2) + "\n")


def mark_ready(state: Path, record: Record) -> Record:
    """Write that the cluster can be used; return the record that says so."""
    ready = replace(record, ready=True)
    write(state, ready)
    return ready


def remove(state: Path) -> None:
    """Forget the cluster, if there was one."""
    _file(state).unlink(missing_ok=True)


def _file(state: Path) -> Path:
    return state / "cluster.json"
