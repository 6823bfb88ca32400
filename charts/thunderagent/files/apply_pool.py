"""What the demo's set-up runs: applies the demo's pool as soon as its kind is known to the API server.

It cannot be part of the release, since Helm looks up the kinds of all objects before it creates the first. Instead the pool is
owned by the Deployment of the demo's DynamoDB, which is: Kubernetes removes the pool with it.

Arguments: the file with the pool as JSON, and the name of the Deployment.
"""

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TRIES = 60
PAUSE = 2.0
"""Seconds between tries."""


def call(method: str, path: str, body: Any = None) -> Any:
    """One call to the API server. Raises URLError."""
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/apply-patch+yaml"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"https://kubernetes.default.svc{path}", data, headers, method=method)
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=10, context=context) as reply:
        return json.load(reply)


def apply(pool: Any, owner: str) -> None:
    """Server-side apply of the pool, owned by the Deployment. Raises URLError."""
    namespace, name = pool["metadata"]["namespace"], pool["metadata"]["name"]
    deployment = call("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/{owner}")
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": deployment["metadata"]["uid"]}
    pool["metadata"]["ownerReferences"] = [reference]
    path = f"/apis/thunderagent.dev/v1alpha1/namespaces/{namespace}/thunderagentpools/{name}"
    call("PATCH", f"{path}?fieldManager=thunderagent-demo&force=true", pool)


def main(file: str, owner: str) -> None:
    """Apply it, with patience. Ends the program where that does not help."""
    for _ in range(TRIES):
        try:
            apply(json.loads(Path(file).read_text()), owner)
        except (urllib.error.URLError, OSError) as error:
            words = error.read().decode() if isinstance(error, urllib.error.HTTPError) else ""
            problem = f"{error} {words}"
            time.sleep(PAUSE)
        else:
            print(f"pool {file} applied")
            return
    sys.exit(problem)


if __name__ == "__main__":
    main(*sys.argv[1:])
