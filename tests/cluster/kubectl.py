"""kubectl for tests: what it prints as data, and what it refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.cluster import commands
from tests.cluster.errors import CommandFailed
from tests.cluster.record import Record

Object = Mapping[str, Any]
"""A Kubernetes object, as JSON has it."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl with one cluster, user and namespace."""

    program: Path
    record: Record
    namespace: str = "default"

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Run a command and return its output. Raises `CommandFailed`."""
        return commands.run(self.program, f"--namespace={self.namespace}", *arguments, stdin=stdin, env=self.environment())

    def apply(self, *objects: Object) -> None:
        """Create or change objects."""
        self("apply", "-f-", stdin=_as_list(objects))

    def get(self, *arguments: str) -> dict[str, Any]:
        """An object, or a list of them under `items`."""
        answer: dict[str, Any] = json.loads(self("get", *arguments, "--output=json"))
        return answer

    def refusal(self, *arguments: str, stdin: str | None = None) -> str:
        """Run a command that must fail, and return its complaint."""
        try:
            output = self(*arguments, stdin=stdin)
        except CommandFailed as failed:
            return str(failed)
        raise AssertionError(f"kubectl {' '.join(arguments)} was not refused: {output}")

    def refusal_of(self, *objects: Object) -> str:
        """Apply objects that must be refused, and return the complaint."""
        return self.refusal("apply", "-f-", stdin=_as_list(objects))

    def within(self, namespace: str) -> Kubectl:
        """The same in another namespace."""
        return replace(self, namespace=namespace)

    def as_service_account(self, name: str, directory: Path) -> Kubectl:
        """The same with a token of a service account and no other credentials, in a kubeconfig that is made in `directory`."""
        config = json.loads(self("config", "view", "--raw", "--minify", "--flatten", "--output=json"))
        # A client certificate would win over the token, so the user is replaced whole.
        config["users"] = [{"name": user["name"], "user": {"token": self("create", "token", name)}} for user in config["users"]]
        kubeconfig = directory / f"{name}.kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        return replace(self, record=replace(self.record, kubeconfig=str(kubeconfig)))

    def environment(self) -> dict[str, str]:
        """An environment in which kubectl and helm reach the cluster."""
        own = {"KUBECONFIG": self.record.kubeconfig}
        if self.record.no_proxy:
            own |= {"NO_PROXY": self.record.no_proxy, "no_proxy": self.record.no_proxy}
        return os.environ | own


def _as_list(objects: tuple[Object, ...]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
