"""Keeps what is posted to a path as a line of it, and gives the lines back. In memory: it goes with its pod."""

from __future__ import annotations

import http.server
import signal
import sys
import threading
from collections import defaultdict

lines: defaultdict[str, list[bytes]] = defaultdict(list)
lock = threading.Lock()


class Record(http.server.BaseHTTPRequestHandler):
    """POST adds a line, GET gives all of the path."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        line = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            lines[self.path].append(line)
        self._answer(b"")

    def do_GET(self) -> None:
        with lock:
            kept = b"\n".join(lines[self.path])
        self._answer(kept)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: each run writes two lines."""

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    """As many connections at once as a pool has agents."""

    request_queue_size = 128


def main() -> None:
    """Serve on port 8080 until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    Server(("", 8080), Record).serve_forever()


if __name__ == "__main__":
    main()
