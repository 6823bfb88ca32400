"""What all tests stand on: an embedded DynamoDB in a pod, the record that handlers write into, and the command line in a pod.

They are in a namespace of their own, so that a test can do what it likes to the namespace that its pools are in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.cluster.kubectl import Kubectl, Object
from tests.cluster.objects import pod, pod_spec, service
from tests.e2e.history import History, read_history

AWS = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
"""An AWS client needs some region and some credentials; the embedded DynamoDB looks at neither."""

DYNAMODB, RECORD = "dynamodb", "record"
DYNAMODB_PORT, RECORD_PORT = 8000, 8080


_UNTIL_CONNECTED = """
import socket, sys, time
for left in range(120, -1, -1):
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()
        break
    except OSError:
        if not left: raise
        time.sleep(0.5)
"""
"""A pod is ready a moment before its service leads there: long, where the proxy has just lost its API server."""


@dataclass(frozen=True)
class Images:
    """The names of the images, which the cluster has."""

    operator: str
    dynamodb: str
    app: str


@dataclass(frozen=True)
class Ground:
    """``kubectl`` is the administrator's, in the namespace of all this."""

    kubectl: Kubectl
    images: Images

    @property
    def endpoint(self) -> str:
        """The URL of the table, from anywhere in the cluster."""
        return f"http://{DYNAMODB}.{self.kubectl.namespace}.svc.cluster.local:{DYNAMODB_PORT}"

    def record(self, name: str) -> str:
        """The URL to which a handler posts its history, from anywhere in the cluster."""
        return f"http://{RECORD}.{self.kubectl.namespace}.svc.cluster.local:{RECORD_PORT}/{name}"

    def lay(self) -> None:
        """Create it all, and return once it is ready."""
        for name, port, image, command in (
            (DYNAMODB, DYNAMODB_PORT, self.images.dynamodb, ["thunderagent", "dynamodb", "--host=0.0.0.0"]),
            (RECORD, RECORD_PORT, self.images.app, ["python", "record.py"]),
        ):
            ready = {"readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1}}
            self.kubectl.apply(pod(name, pod_spec(image, command=command, **ready)), service(name, port, port))
        environment = {**AWS, "THUNDERAGENT_ENDPOINT": self.endpoint}
        command = ["python", "-c", "import signal; signal.pause()"]
        self.kubectl.apply(pod("cli", pod_spec(self.images.app, command=command, env=variables(environment))))
        self.kubectl("wait", "--for=condition=Ready", "--timeout=120s", f"pod/{DYNAMODB}", f"pod/{RECORD}", "pod/cli")
        self.kubectl("exec", "cli", "--", "python", "-c", _UNTIL_CONNECTED, DYNAMODB, str(DYNAMODB_PORT))

    def thunderagent(self, *arguments: str, stdin: str | None = None) -> str:
        """Run the command line in its pod, and return what it prints. Raises `CommandFailed`."""
        given = ["--stdin"] if stdin is not None else []
        return self.kubectl("exec", *given, "cli", "--", "thunderagent", *arguments, stdin=stdin)

    def lines(self, name: str) -> list[str]:
        """What has been posted to a name of the record."""
        path = f"/api/v1/namespaces/{self.kubectl.namespace}/services/{RECORD}:{RECORD_PORT}/proxy/{name}"
        return self.kubectl("get", f"--raw={path}").splitlines()

    def history(self, name: str) -> History:
        """What the handlers have written so far."""
        return read_history(self.lines(name))


@dataclass(frozen=True)
class Table:
    """One task table, spoken to by the command line."""

    ground: Ground
    name: str

    def create(self, *flags: str) -> None:
        self.ground.thunderagent("table", "create", "--table", self.name, *flags)

    def enqueue(self, tasks: Iterable[Mapping[str, Any]]) -> list[str]:
        """Enqueue a task for each line of `task enqueue --many`, and return the taskIds."""
        lines = "\n".join(json.dumps(task) for task in tasks)
        arguments = ("task", "enqueue", "--many", "-", "--output=jsonl", "--table", self.name)
        answers = self.ground.thunderagent(*arguments, stdin=lines).splitlines()
        return [json.loads(answer)["taskId"] for answer in answers]

    def counts(self) -> dict[str, int]:
        """Tasks by status, those of which there are any."""
        stats = json.loads(self.ground.thunderagent("stats", "--limit=5000", "--output=json", "--table", self.name))
        return {status: count for status, count in stats["counts"].items() if count}


def variables(environment: Mapping[str, str]) -> Sequence[Object]:
    """Environment variables as a container has them."""
    return [{"name": name, "value": value} for name, value in environment.items()]


def working(seconds: float, count: int) -> list[dict[str, Any]]:
    """Tasks that take so many seconds each."""
    return [{"payload": {"seconds": seconds}} for _ in range(count)]
