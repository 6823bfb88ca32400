"""Watching the replicas that a Deployment is asked for: each change, when it came, and what that adds up to."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from tests.cluster.kubectl import Kubectl

# One JSON object a line: kubectl prints a Deployment over many.
_FORM = '--output=jsonpath={"["}{.spec.replicas}{","}{.status.replicas}{"]"}{"\\n"}'


@dataclass
class Replicas:
    """What was seen of one Deployment: (epoch seconds, replicas asked for, pods that there are)."""

    seen: list[tuple[float, int, int]] = field(default_factory=list)

    @property
    def asked(self) -> list[tuple[float, int]]:
        """Each number of replicas that was asked for, and since when."""
        changes: list[tuple[float, int]] = []
        for at, asked, _ in self.seen:
            if not changes or changes[-1][1] != asked:
                changes.append((at, asked))
        return changes

    @property
    def values(self) -> list[int]:
        """The numbers alone, as they followed each other."""
        return [asked for _, asked in self.asked]

    @property
    def scale_downs(self) -> int:
        """How often fewer were asked for."""
        return sum(after < before for before, after in pairwise(self.values))

    @property
    def seconds(self) -> float:
        """Replica-seconds: how long how many pods were there, until the last of what was seen."""
        return sum(pods * (until - since) for (since, _, pods), (until, _, _) in pairwise(self.seen))


@contextmanager
def watched(kubectl: Kubectl, deployment: str) -> Iterator[Replicas]:
    """Watch a Deployment, which need not be there yet, for as long as the context lasts."""
    command = ("get", "deployments", f"--field-selector=metadata.name={deployment}", "--watch", _FORM)
    replicas = Replicas()
    with subprocess.Popen(
        [str(kubectl.program), f"--namespace={kubectl.namespace}", *command],
        stdout=subprocess.PIPE,
        text=True,
        env=kubectl.environment(),
    ) as watch:
        reader = threading.Thread(target=_read, args=(watch, replicas))
        reader.start()
        try:
            yield replicas
        finally:
            watch.kill()
            reader.join()


def _read(watch: subprocess.Popen[str], replicas: Replicas) -> None:
    assert watch.stdout is not None
    for line in watch.stdout:
        asked, pods = json.loads(line.replace(",]", ",0]"))
        replicas.seen.append((time.time(), asked, pods))
