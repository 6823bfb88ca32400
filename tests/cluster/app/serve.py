"""A server for the tests of the cluster: answers with its pod's name, and takes two seconds to leave when told to.

`serve.py grow` takes memory until it is killed.
"""

import http.server
import os
import signal
import socket
import sys
import time
from types import FrameType

_DRAIN_SECONDS = 2


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = socket.gethostname().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: probes would fill the log."""


def _drain(signal_number: int, frame: FrameType | None) -> None:
    print("draining", flush=True)
    time.sleep(_DRAIN_SECONDS)
    print("drained", flush=True)
    os._exit(0)


def _grow() -> None:
    taken = []
    while True:
        taken.append(b"x" * (8 << 20))


def main() -> None:
    """Serve on port 8080, or grow."""
    if sys.argv[1:] == ["grow"]:
        _grow()
    signal.signal(signal.SIGTERM, _drain)
    server = http.server.ThreadingHTTPServer(("", 8080), _Answer)
    print("serving as uid", os.getuid(), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
