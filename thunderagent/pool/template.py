"""Looking into ``spec.template``, a PodTemplateSpec that is kept as it was given.

On Kubernetes the API server judges what is in it. The local pool runs no containers: it takes the environment that is
written out for the agent and leaves the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thunderagent.errors import InvalidPool


def container_named(template: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The container of that name, or None. Whatever is not shaped as it should be holds no container."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    for container in containers if isinstance(containers, list | tuple) else ():
        if isinstance(container, Mapping) and container.get("name") == name:
            return container
    return None


def literal_env(template: Mapping[str, Any], name: str) -> dict[str, str]:
    """Variables of the container with a ``value``; those with a ``valueFrom`` need a cluster and are left out.

    Raises InvalidPool where the container is missing, or an entry is not a name with a string.
    """
    container = container_named(template, name)
    if container is None:
        raise InvalidPool(f'spec.template.spec.containers: none is named "{name}", as spec.agent.container says.')
    entries = container.get("env") or ()
    if not isinstance(entries, list | tuple):
        raise InvalidPool(f"{_env_path(name)}: must be a list of name and value.")
    return dict(_variable(entry, f"{_env_path(name)}[{number}]") for number, entry in enumerate(entries) if _is_literal(entry))


def _is_literal(entry: object) -> bool:
    return not (isinstance(entry, Mapping) and entry.get("valueFrom") is not None)


def _variable(entry: object, path: str) -> tuple[str, str]:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(name, str) or not name:
        raise InvalidPool(f"{path}: must have a name.")
    value = entry.get("value", "")
    if not isinstance(value, str):
        raise InvalidPool(f"{path}.value: is {value!r} of type {type(value).__name__}; put it in quotes, it must be a string.")
    return name, value


def _env_path(name: str) -> str:
    return f"spec.template.spec.containers[{name}].env"
