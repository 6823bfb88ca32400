"""Pools of a cluster, as ``kubectl`` tells of them: the package itself knows no Kubernetes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thunderagent.cli.live.overview import PoolRow

RESOURCE = "thunderagentpools.thunderagent.dev"

PATIENCE = 10.0
"""Seconds after which kubectl is given up."""

Kubectl = Callable[[Sequence[str]], str]
"""Runs kubectl with these arguments and gives what it prints. Raises NoPools with what it complains of."""


class NoPools(Exception):
    """No cluster can be asked, or it knows no pools. Its text is a sentence for a person."""


def run_kubectl(arguments: Sequence[str]) -> str:
    """The kubectl on the PATH, with the context that it has."""
    program = shutil.which("kubectl")
    if program is None:
        raise NoPools("kubectl is not on the PATH.")
    try:
        ended = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoPools(f"kubectl did not answer within {PATIENCE:g} s.") from None
    if ended.returncode != 0:
        complaint = ended.stderr.strip().splitlines()
        raise NoPools(complaint[-1] if complaint else f"kubectl ended with {ended.returncode}.")
    return ended.stdout


def pools_of(kubectl: Kubectl, table: str, context: str | None, namespace: str | None) -> tuple[PoolRow, ...]:
    """The pools of a cluster that take their tasks from this table, by namespace and name. Raises NoPools."""
    where = [f"--namespace={namespace}"] if namespace else ["--all-namespaces"]
    chosen = [f"--context={context}"] if context else []
    text = kubectl(["get", RESOURCE, "--output=json", *where, *chosen])
    try:
        items = json.loads(text)["items"]
    except (ValueError, KeyError, TypeError):
        raise NoPools("kubectl did not print a list of pools.") from None
    rows = [pool_row(item) for item in items if item.get("spec", {}).get("queue", {}).get("table") == table]
    return tuple(sorted(rows, key=lambda row: (row.namespace, row.name)))


def pool_row(item: Mapping[str, Any]) -> PoolRow:
    """A pool from its resource. What its status does not tell yet is zero."""
    spec, status = item.get("spec", {}), item.get("status", {})
    scaling, slots = spec.get("scaling", {}), spec.get("agent", {}).get("slots", {})
    conditions = {each.get("type"): each for each in status.get("conditions", ())}
    ready, active = conditions.get("Ready", {}), conditions.get("Active", {})
    return PoolRow(
        namespace=str(item["metadata"].get("namespace", "")),
        name=str(item["metadata"]["name"]),
        backlog=int(status.get("backlog", 0)),
        running=int(status.get("running", 0)),
        desired=int(status.get("desiredReplicas", 0)),
        available=int(status.get("availableReplicas", 0)),
        least=int(scaling.get("minReplicas", 0)),
        most=int(scaling.get("maxReplicas", 0)),
        slots=int(slots.get("processes", 1)) * int(slots.get("threads", 1)),
        oldest=float(status.get("oldestReadySeconds", 0)),
        ready=str(ready.get("status", "Unknown")),
        reason=str(ready.get("reason", "")),
        why=str(active.get("message", "")),
    )
