"""What can go wrong between the operator and Kubernetes."""

from __future__ import annotations

from thunderagent.errors import ThunderAgentError


class ClusterError(ThunderAgentError):
    """The API server did not do what was asked. ``status`` is its HTTP status; 0: there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message)


class ClusterUnavailable(ClusterError):
    """The API server could not be reached, did not answer in time, or is overloaded. The next cycle asks again."""


class ObjectMissing(ClusterError):
    """There is no such object, or it has gone since it was read."""


class ObjectChanged(ClusterError):
    """The object is not the one that was read: another write came first. The next cycle reads it anew."""


class Refused(ClusterError):
    """The API server, or a webhook that it asks, calls the object invalid. The message has its words."""


class NotPermitted(ClusterError):
    """RBAC does not let the operator do this. The message names the verb and the resource."""


class NotLeading(ThunderAgentError):
    """This replica of the operator may not write: another one may have become the leader."""
