"""What the operator asks of Kubernetes. Behind it stands the API server (:mod:`controller.kube`), or in tests a small one.

Objects are plain mappings, as the API server sends them. Every method may raise a ClusterError; after one, whether a write
went through is not known, unless it is a Refused, NotPermitted or ObjectChanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from controller.status import Notice

Object = Mapping[str, Any]

WRITE_TIMEOUT = 4.0
"""Seconds that a write may take. It must have ended before another replica of the operator can lead: controller.election."""


class Cluster(Protocol):
    """Pools, their Deployments and pods. Writes raise NotLeading where this replica of the operator does not lead."""

    async def pools(self) -> list[Object]:
        """All pools of the namespaces that are served."""

    async def pool(self, namespace: str, name: str) -> Object | None:
        """The pool, or None."""

    async def deployment(self, namespace: str, name: str) -> Object | None:
        """The Deployment, or None."""

    async def replica_sets(self, namespace: str, selector: str) -> list[Object]:
        """The ReplicaSets with these labels, whosever they are."""

    async def pods(self, namespace: str, selector: str) -> list[Object]:
        """The pods with these labels, whosever they are."""

    async def apply_deployment(self, body: Object, *, manager: str, force: bool = False) -> Object:
        """Server-side apply. Fields that others own, without ``force``, or another uid make it an ObjectChanged."""

    async def scale_deployment(self, namespace: str, name: str, replicas: int, version: str) -> None:
        """Set the replicas by the scale subresource. Raises ObjectChanged unless the Deployment still has ``version``."""

    async def annotate_pod(self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of the pod with this uid; None removes one. Raises ObjectChanged where the uid is another."""

    async def write_status(self, namespace: str, name: str, uid: str, status: Object) -> None:
        """Replace the status of the pool with this uid. Raises ObjectChanged where another pool has its name by now."""

    async def emit(self, pool: Object, notice: Notice) -> None:
        """Put an event on the pool."""


class Leases(Protocol):
    """The Lease that replicas of the operator elect their leader with."""

    async def lease(self, namespace: str, name: str) -> Object | None:
        """The Lease, or None."""

    async def create_lease(self, body: Object) -> Object:
        """Raises ObjectChanged where there is one already."""

    async def replace_lease(self, body: Object) -> Object:
        """Raises ObjectChanged unless it still has the resourceVersion in ``body``."""
