"""The audit log of the API server: a line of JSON for each request, with who asked, the verb, the object and the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

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


DECISION = "authorization.k8s.io/decision"


@dataclass(frozen=True, slots=True)
class Request:
    """One request for objects. ``at`` is in epoch seconds; ``resource`` has its subresource behind a slash; ``address`` is
    that of who asked. ``allowed`` says that the user has the right to it; the API server may refuse it all the same, as it does
    in a namespace that is on its way out. ``namespace`` and ``name`` are empty where the request was for none in particular."""

    at: float
    verb: str
    group: str
    resource: str
    status: int
    address: str
    allowed: bool
    namespace: str = ""
    name: str = ""


def requests_of(log: Path, user: str, since: float = 0.0) -> Iterator[Request]:
    """What a user has asked for objects, and nobody in that user's name, since a moment in epoch seconds."""
    with log.open() as lines:
        for line in lines:
            if user in line:
                entry = json.loads(line)
                at = datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()
                about = entry.get("objectRef", {})
                is_theirs = entry["user"]["username"] == user and "impersonatedUser" not in entry
                if is_theirs and at >= since and "resource" in about:
                    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
                    status, address = entry["responseStatus"]["code"], entry["sourceIPs"][0]
                    allowed = entry.get("annotations", {}).get(DECISION) == "allow"
                    where = about.get("namespace", ""), about.get("name", "")
                    yield Request(at, entry["verb"], about.get("apiGroup", ""), resource, status, address, allowed, *where)
