"""The audit log of the API server: a line of JSON for each request, with who asked, the verb, the object and the answer."""

from __future__ import annotations

POLICY: dict[str, object] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    # One line a request, when it is answered; a watch also gets one when it starts, since it may outlive the test.
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def flags(policy: str, log: str) -> dict[str, str]:
    """The API server's flags for a log that keeps everything: nothing is batched, and 10 GB are written before it rotates."""
    return {
        "audit-policy-file": policy,
        "audit-log-path": log,
        "audit-log-mode": "blocking",
        "audit-log-maxsize": "10000",
    }
