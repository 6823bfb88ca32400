"""The Deployment of a pool: created, rendered anew when the pool has changed, or the one that it refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.cluster import Cluster, Object
from controller.errors import NotPermitted, ObjectChanged, ObjectMissing, Refused
from controller.faults import Fault, cluster_fault
from controller.names import BIRTH_MANAGER, FIELD_MANAGER
from controller.pods import is_controlled_by, workload_of
from controller.render import birth_is_unfinished, birth_rest, is_current, render, with_replicas
from thunderagent.errors import InvalidPool
from thunderagent.pool import Pool


@dataclass(frozen=True, slots=True)
class Found:
    """The Deployment as it is now, None where there is none to scale, and why it is not as the pool says."""

    deployment: Object | None
    fault: Fault | None = None


class Deployments:
    """Brings Deployments about. ``version`` is this operator's, for the record."""

    def __init__(self, cluster: Cluster, version: str) -> None:
        self._cluster = cluster
        self._version = version

    async def find(self, resource: Object, pool: Pool) -> Found:
        """The pool's Deployment, made to be what the pool says. Raises a ClusterError that no edit of the pool would mend.

        One whose template is refused goes on as it was: its pods are scaled while a person mends the template.
        """
        namespace, target = resource["metadata"]["namespace"], pool.spec.target_ref
        if target is not None:
            return _target(await self._cluster.deployment(namespace, target.name), target.name)
        deployment = await self._cluster.deployment(namespace, pool.name)
        obstacle = _obstacle(deployment, resource["metadata"]["uid"])
        if obstacle is not None:
            return Found(None, obstacle)
        try:
            return Found(await self._rendered(deployment, resource, pool))
        except (InvalidPool, Refused) as error:
            fault = Fault("TemplateRefused", str(error)) if isinstance(error, InvalidPool) else cluster_fault(error)
            return Found(deployment, fault)
        except NotPermitted as error:
            return Found(deployment, cluster_fault(error))

    async def _rendered(self, deployment: Object | None, resource: Object, pool: Pool) -> Object:
        if deployment is None:
            return await self._create(resource, render(resource, pool, self._version))
        if birth_is_unfinished(deployment):  # the operator was stopped in between
            return await self._finish_birth(await self._apply(render(resource, pool, self._version), deployment))
        if not is_current(deployment, resource):
            return await self._apply(render(resource, pool, self._version), deployment)
        return deployment

    async def _create(self, resource: Object, body: Mapping[str, Any]) -> Object:
        # A pool that was deleted a moment ago must not get its Deployment again: the garbage collector has just taken it.
        metadata = resource["metadata"]
        fresh = await self._cluster.pool(metadata["namespace"], metadata["name"])
        if fresh is None or fresh["metadata"]["uid"] != metadata["uid"] or "deletionTimestamp" in fresh["metadata"]:
            raise ObjectMissing(f"The pool {metadata['name']} has gone.", 404)
        # Each manager gives up what it no longer names, so the template has to be owned by both for a moment.
        born = await self._cluster.apply_deployment(with_replicas(body, 0), manager=BIRTH_MANAGER)
        return await self._finish_birth(await self._apply(body, born))

    async def _apply(self, body: Mapping[str, Any], deployment: Object) -> Object:
        """Forced: what the template names is the pool's. The uid keeps it from another Deployment of the same name."""
        metadata = {**body["metadata"], "uid": deployment["metadata"]["uid"]}
        return await self._cluster.apply_deployment({**body, "metadata": metadata}, manager=FIELD_MANAGER, force=True)

    async def _finish_birth(self, deployment: Object) -> Object:
        replicas = workload_of(deployment).replicas
        try:
            return await self._cluster.apply_deployment(birth_rest(deployment, replicas), manager=BIRTH_MANAGER)
        except ObjectChanged:  # somebody has scaled it since: the replicas are theirs, and the rest will be done next time
            return deployment


def _obstacle(deployment: Object | None, uid: str) -> Fault | None:
    """Why a Deployment of the pool's name is not the pool's."""
    if deployment is None:
        return None
    name = deployment["metadata"]["name"]
    if deployment["metadata"].get("deletionTimestamp") is not None:
        return Fault("DeploymentTerminating", f"Deployment {name} is being deleted; a new one is created once it is gone.")
    if is_controlled_by(deployment, uid):
        return None
    return Fault(
        "DeploymentNotOwned",
        f"There is a Deployment {name} that this pool has not made. Delete or rename it, or refer to it by spec.targetRef.",
    )


def _target(deployment: Object | None, name: str) -> Found:
    if deployment is None:
        return Found(None, Fault("TargetMissing", f"There is no Deployment {name}, which spec.targetRef names."))
    if deployment["metadata"].get("deletionTimestamp") is not None:
        return Found(None, Fault("DeploymentTerminating", f"Deployment {name}, which spec.targetRef names, is being deleted."))
    return Found(deployment)
