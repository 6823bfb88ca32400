"""A DynamoDB inside this process, for demos and tests on one machine: moto's, made atomic.

It keeps nothing: tables and tasks live in memory and are gone when it stops. It is not for anybody's real work.

moto evaluates a condition and writes the item in two steps. Served by several threads, as moto's own server does, two
claims of one task can both win. Here one lock is held around each call until its reply is complete, so that a
condition and its write are one step, as DynamoDB promises.
"""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from types import TracebackType
from typing import Any, Self
from wsgiref.handlers import SimpleHandler
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from thunderagent.errors import InvalidInput
from thunderagent.local.moto_application import moto_application

_ANY_ADDRESS = "0.0.0.0"
_DRAIN_SECONDS = 5.0
_STOP_LATENCY_SECONDS = 0.05

# One for the whole process, since moto's state is: two embedded DynamoDBs share its modules, though not their tables.
_one_call_at_a_time = threading.Lock()


class EmbeddedDynamoDB:
    """DynamoDB's HTTP interface on a port of this machine, served by threads of this process from memory.

    Credentials and regions are not looked at: every client sees the same tables. Instances do not see each other's,
    and what one held is gone when it stops or its process ends.

    Replies carry a ``Date`` header, and connections stay open between calls. Differences to DynamoDB are moto's: no
    capacity limits, no throttling, indexes that never lag; TTL is accepted and expires nothing; an item may have
    405,000 bytes, not 409,600; and what DynamoDB refuses (39-digit numbers, a wrong type in an index's key) is kept.

    Args:
        host: The address or name to listen on. Anything but a loopback address opens the tables to the network.
        port: The port to listen on; 0 takes a free one, and :attr:`port` says which.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host = host
        self._wanted_port = port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that is listened on. Raises RuntimeError before :meth:`start`."""
        if self._server is None:
            raise RuntimeError("The embedded DynamoDB has no port before start().")
        return self._server.server_port

    @property
    def endpoint(self) -> str:
        """The ``endpoint_url`` for a client on this machine. Raises RuntimeError before :meth:`start`."""
        host = "127.0.0.1" if self._host == _ANY_ADDRESS else self._host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Listen and serve; returns once connections are accepted.

        Raises:
            InvalidInput: moto is not installed, the port is taken, or the host is not an address of this machine.
            RuntimeError: It has been started already.
        """
        if self._server is not None:
            raise RuntimeError("The embedded DynamoDB has been started already.")
        application = moto_application()
        self._server = _listen(self._host, self._wanted_port)
        self._server.set_app(application)
        serve = partial(self._server.serve_forever, poll_interval=_STOP_LATENCY_SECONDS)
        self._thread = threading.Thread(target=serve, name="embedded-dynamodb", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more, let the calls that are being answered finish, close every connection.

        Does nothing if it does not run. It can be started again, empty.
        """
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.hang_up(_DRAIN_SECONDS)
        self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _listen(host: str, port: int) -> _Server:
    try:
        return _Server((host, port), _Connection)
    except (OSError, OverflowError) as refused:
        raise InvalidInput(
            f"The embedded DynamoDB cannot listen on {host}:{port}: {refused}. "
            "Stop what uses this port, or choose another one; 0 takes any free port."
        ) from refused


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """A thread for each connection, and a record of them, so that stopping can end those that stay open between calls."""

    daemon_threads = True
    request_queue_size = 128  # a pool's agents all connect at once

    def __init__(self, address: tuple[str, int], handler: type[_Connection]) -> None:
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind, without HTTPServer's reverse look-up of the address, which can take seconds where DNS is slow."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Record the connection before its thread exists: once the accept loop has ended, all are on record."""
        with self._changed:
            self._open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the connection to its end, then take it off the record."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._changed:
                self._open.discard(request)
                self._changed.notify_all()

    def hang_up(self, timeout: float) -> None:
        """Let no connection read a further call, and wait up to ``timeout`` seconds for replies that are on their way."""
        with self._changed:
            for connection in self._open:
                _stop_reading(connection)
            self._changed.wait_for(lambda: not self._open, timeout)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong, unless it is that a client has hung up, which agents that are killed do."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _stop_reading(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        return  # the client was faster


class _Connection(WSGIRequestHandler):
    """One connection of a client: call after call, until it hangs up. Prints nothing for a call; only for what is none."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    # wsgiref's own answers one call and hangs up; a new connection for each call costs a third of the throughput.
    handle = BaseHTTPRequestHandler.handle

    def do_POST(self) -> None:
        """Answer one call. Every operation of DynamoDB is a POST; http.server refuses other methods by itself."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.send_error(411)
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):  # the client hung up, or this server is stopping: half a call is none
            self.close_connection = True
            return
        reply = BytesIO()
        call = _Call(BytesIO(body), reply, self.get_stderr(), self.get_environ())
        with _one_call_at_a_time:
            call.run(self.server.get_app())  # type: ignore[attr-defined]
        self.wfile.write(reply.getvalue())


class _Call(SimpleHandler):
    """Runs the application for one call; writes the status line, Date and Server headers, and the reply's length."""

    http_version = "1.1"
    # wsgiref would copy this process's environment into every call.
    os_environ: dict[str, str] = {}  # noqa: RUF012 - so declared by wsgiref
    server_software = "EmbeddedDynamoDB"
