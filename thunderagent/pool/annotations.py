"""The annotations by which a person holds a pool's scaling.

Annotations, not fields: they are put on in an emergency with ``kubectl annotate`` and taken off again, and no GitOps tool
that owns the spec undoes them. As KEDA's ``autoscaling.keda.sh/paused...``, under our own prefix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from thunderagent.errors import InvalidPool
from thunderagent.scaling.rules import Pause

PAUSED = "thunderagent.dev/paused"
PAUSED_IN = "thunderagent.dev/paused-in"
PAUSED_OUT = "thunderagent.dev/paused-out"
PAUSED_AT_REPLICAS = "thunderagent.dev/paused-at-replicas"

MAX_PINNED = 1000

_SWITCH = {"true": True, "false": False}


def pause_of(annotations: Mapping[str, str]) -> Pause:
    """The pause that the annotations ask for. Raises InvalidPool, naming the annotation, for a value it does not know."""
    everything = _switch(annotations, PAUSED, {**_SWITCH, "all": True})
    return Pause(
        scale_in=_switch(annotations, PAUSED_IN, _SWITCH) or everything,
        scale_out=_switch(annotations, PAUSED_OUT, _SWITCH) or everything,
        at_replicas=_replicas(annotations),
    )


def _switch(annotations: Mapping[str, str], name: str, known: Mapping[str, bool]) -> bool:
    value = annotations.get(name, "false")
    if value not in known:
        raise InvalidPool(f'metadata.annotations["{name}"]: is "{value}"; it must be one of {", ".join(sorted(known))}.')
    return known[value]


def _replicas(annotations: Mapping[str, str]) -> int | None:
    value = annotations.get(PAUSED_AT_REPLICAS)
    if value is None:
        return None
    if not re.fullmatch("[0-9]{1,4}", value) or int(value) > MAX_PINNED:
        raise InvalidPool(
            f'metadata.annotations["{PAUSED_AT_REPLICAS}"]: is "{value}"; it must be a whole number from 0 to {MAX_PINNED}.'
        )
    return int(value)
