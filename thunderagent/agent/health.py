"""/healthz and /metrics over HTTP, in a thread of their own, so that a stalled event loop is seen rather than waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from thunderagent.errors import InvalidSettings
from thunderagent.metrics import add_process_metrics

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class HealthServer:
    """Serves until closed. ``problem`` says what is wrong, or None when the process is healthy.

    ``registry`` gets the metrics of the process itself, too. /metrics is written in the format that the asker prefers:
    OpenMetrics, or Prometheus's text.
    """

    def __init__(self, host: str, port: int, registry: CollectorRegistry, problem: Callable[[], str | None]) -> None:
        self._problem = problem
        add_process_metrics(registry)
        self._metrics = make_wsgi_app(registry)
        try:
            self._server = make_server(host, port, self._app, _Server, _QuietHandler)
        except OSError as error:
            raise InvalidSettings(f"Cannot listen on {host}:{port} for /healthz: {error}. Give another --port.") from None
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="thunderagent-health", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _app(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return self._metrics(environ, start_response)  # type: ignore[no-any-return]
        if path in {"/healthz", "/readyz"}:
            problem = self._problem() if path == "/healthz" else None
            return _text(start_response, "200 OK" if problem is None else "503 Service Unavailable", problem or "ok")
        return _text(start_response, "404 Not Found", "There are /healthz, /readyz and /metrics.")


def _text(start_response: StartResponse, status: str, text: str) -> list[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode() + b"\n"]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed per request."""
