"""Events of pools, aggregated as Kubernetes expects: one that happens again counts the object up that tells of it.

kubectl then shows ``x12 over 3h`` where twelve objects would push others out of sight. As for client-go's recorder
(k8s.io/client-go/tools/record, events_cache.go), two are the same if pool, type, reason and message are. What was written is
remembered for so many; a restart, and the API server's own limit of an hour, make another object.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controller.cluster import Object
from controller.names import API_VERSION, FIELD_MANAGER, KIND
from controller.status import Notice

KEPT = 1024
"""Events that are remembered; of more, those that have not happened for longest are forgotten."""

MESSAGE_CHARS = 1024
"""Of a message: the API server's limit."""

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Written:
    """An event's object: its name, and how often it has happened."""

    name: str
    count: int


class EventMemory:
    """Which events were written as which objects."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._written: OrderedDict[Key, Written] = OrderedDict()

    def of(self, pool: Object, notice: Notice) -> Written | None:
        """The object that tells of it, as far as this process knows."""
        return self._written.get(_key(pool, notice))

    def note(self, pool: Object, notice: Notice, written: Written) -> None:
        key = _key(pool, notice)
        self._written[key] = written
        self._written.move_to_end(key)
        if len(self._written) > self._kept:
            self._written.popitem(last=False)


def new_event(pool: Object, notice: Notice, at: float) -> dict[str, Any]:
    """The object of an event that happens for the first time. ``at`` in epoch seconds."""
    metadata = pool["metadata"]
    reference = {"apiVersion": API_VERSION, "kind": KIND, "name": metadata["name"], "namespace": metadata["namespace"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
        "involvedObject": {**reference, "uid": metadata["uid"]},
        "type": notice.kind,
        "reason": notice.reason,
        "message": notice.message[:MESSAGE_CHARS],
        "source": {"component": FIELD_MANAGER},
        "reportingComponent": FIELD_MANAGER,
        "firstTimestamp": _timestamp(at),
        "lastTimestamp": _timestamp(at),
        "count": 1,
    }


def once_more(written: Written, at: float) -> dict[str, Any]:
    """The merge patch for one that happens again."""
    return {"count": written.count + 1, "lastTimestamp": _timestamp(at)}


def _key(pool: Object, notice: Notice) -> Key:
    return pool["metadata"]["uid"], notice.kind, notice.reason, notice.message


def _timestamp(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
