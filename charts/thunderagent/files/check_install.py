"""What `helm test` runs in a pod of the operator's image, as the operator: does it answer, and may it read the pools?

Arguments: the URL of /readyz, then the paths at the API server of the lists that the operator reads.
"""

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TRIES = 30
PAUSE = 2.0
"""Seconds between tries: what was installed a moment ago may still be starting."""


def fetch(url: str) -> bytes:
    """The body of a reply of success. Raises URLError."""
    request = urllib.request.Request(url)
    context = None
    if url.startswith("https:"):
        request.add_header("Authorization", f"Bearer {(ACCOUNT / 'token').read_text()}")
        context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=5, context=context) as reply:
        body: bytes = reply.read()
    return body


def fetch_in_time(url: str) -> bytes:
    """The same, with patience. Ends the program where that does not help."""
    for _ in range(TRIES):
        try:
            return fetch(url)
        except (urllib.error.URLError, OSError) as error:
            problem = f"{url}: {error}"
            time.sleep(PAUSE)
    sys.exit(problem)


def main(ready: str, *lists: str) -> None:
    """Ask for everything, and say what was seen."""
    print(ready, fetch_in_time(ready).decode().strip())
    for path in lists:
        pools = json.loads(fetch_in_time(f"https://kubernetes.default.svc{path}?limit=500"))
        print(path, pools["kind"], len(pools["items"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
