"""Names that the operator writes into the cluster. Other programs and people rely on them: they do not change."""

from __future__ import annotations

GROUP = "thunderagent.dev"
VERSION = "v1alpha1"
PLURAL = "thunderagentpools"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ThunderAgentPool"

FIELD_MANAGER = "thunderagent-operator"
"""Owner of what is rendered, and of what the scale subresource writes."""

BIRTH_MANAGER = "thunderagent-operator-birth"
"""Owner of the replicas with which a Deployment is created. A manager of its own: server-side apply would take replicas back
to their default, 1, once a manager that had set them no longer does."""

POOL_LABEL = f"{GROUP}/pool"
"""On the Deployment and its pods: the pool's name. Selects the pods."""

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"

RENDERED_FROM = f"{GROUP}/rendered-from"
"""On the Deployment: what of the pool it was rendered from, as JSON."""

RENDERED_BY = f"{GROUP}/rendered-by"
"""On the Deployment: the version of the operator that rendered it."""

BUSY = f"{GROUP}/busy"
"""On a pod that runs tasks: which annotations the operator has added for that time, separated by commas."""


def pool_identity(namespace: str, name: str) -> str:
    """The first part of the lockOwner of the pool's agents. Neither name has a dot, so no two pools share one."""
    return f"{namespace}.{name}"
