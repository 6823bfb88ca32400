"""A proxy between a client and a DynamoDB stand-in that makes calls go wrong as a test's script says.

It knows HTTP and DynamoDB's operations. Give clients, or agents in other processes, its ``endpoint``.
"""

from __future__ import annotations

import http.client
import json
import socket
import socketserver
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self, assert_never
from urllib.parse import urlsplit

from tests.faults.plan import (
    Answer,
    Call,
    Delay,
    DelayReply,
    DropReply,
    Fault,
    Gate,
    Hang,
    Reset,
    Rule,
    WrongChecksum,
    checksum,
)

THREAD_NAME = "fault-proxy"
"""What every thread of a proxy is called; none is left when it has been exited."""

_UPSTREAM_SECONDS = 30.0
_DRAIN_SECONDS = 10.0
_STOP_LATENCY_SECONDS = 0.05
# Of one connection, not of the message (RFC 9110, 7.6.1), or written anew for the other side.
_NOT_PASSED_ON = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class FaultProxy:
    """Forwards calls to ``upstream_endpoint`` from a port of 127.0.0.1, except where the script says otherwise.

    Attributes:
        date: When set, says what the ``Date`` header of every reply tells the client. None: what DynamoDB said.
        faulted: How many calls have met a fault.
        keeps_calls: Whether :attr:`calls` is kept; a test of a hundred thousand calls has no room for it.
    """

    def __init__(self, upstream_endpoint: str, *, keeps_calls: bool = True) -> None:
        parts = urlsplit(upstream_endpoint)
        self._upstream = (str(parts.hostname), int(parts.port or 80))
        self.date: Callable[[], datetime] | None = None
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._gates: set[Gate] = set()
        self._calls: list[Call] = []
        self._keeps_calls = keeps_calls
        self.faulted = 0
        self._stopping = False
        # Bound, never listening: keeps the port ours while connections are refused.
        self._reserved = _bound_socket()
        self._listener: _Listener | None = None

    @property
    def endpoint(self) -> str:
        """The ``endpoint_url`` for clients."""
        return f"http://127.0.0.1:{self._reserved.getsockname()[1]}"

    @property
    def calls(self) -> Sequence[Call]:
        """The calls dealt with so far; one that is held at a gate is not yet among them."""
        with self._lock:
            return tuple(self._calls)

    def script(self, *rules: Rule) -> None:
        """Follow these rules from now on, in place of those before; none: everything passes.

        Of several that pick a call the first applies. A rule is asked, and counts, only what those before it let by.
        """
        with self._lock:
            self._rules = list(rules)
            self._gates |= {rule.fault.gate for rule in rules if isinstance(rule.fault, Hang | Delay | DelayReply)}

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Meanwhile no connection is accepted, and those that were open are closed: DynamoDB cannot be reached."""
        self._stop_listening()
        try:
            yield
        finally:
            self._start_listening()

    def __enter__(self) -> Self:
        self._start_listening()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Reset what is held, close every connection and wait until no thread of the proxy is left."""
        self._stopping = True
        with self._lock:
            for gate in self._gates:
                gate.release()
        self._stop_listening()
        self._reserved.close()

    def _start_listening(self) -> None:
        port = int(self._reserved.getsockname()[1])
        self._listener = _Listener(("127.0.0.1", port), partial(_Connection, self))
        self._listener.start()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.stop()
            self._listener = None

    # --- for the connections -------------------------------------------------------------------------------------------

    def choose(self, operation: str, body: dict[str, Any]) -> Fault | None:
        """The fault that this call meets by the script."""
        with self._lock:
            fault = next((rule.fault for rule in self._rules if rule.picks(operation, body)), None)
            self.faulted += fault is not None
            return fault

    def answer(self, request: _Request, fault: Fault | None) -> _Reply | None:
        """Carry the fault out. The reply for the client, or None if its connection is to be reset."""
        match fault:
            case None:
                return self._forward(request)
            case Reset():
                return None
            case DropReply():
                self._forward(request)
                return None
            case Hang(gate):
                gate.hold()
                return None
            case Delay(gate):
                gate.hold()
                return None if self._stopping else self._forward(request)
            case DelayReply(gate):
                reply = self._forward(request)
                gate.hold()
                return reply
            case WrongChecksum():
                return self._forward(request).with_header("x-amz-crc32", "1")
            case Answer():
                return _made_up(fault)
            case _:
                assert_never(fault)

    def dated(self, reply: _Reply) -> _Reply:
        """The reply with the date that the test wants, if it wants one."""
        if self.date is None:
            return reply
        return reply.with_header("Date", format_datetime(self.date().astimezone(UTC), usegmt=True))

    def record(self, call: Call) -> None:
        """Add a call to :attr:`calls`."""
        if self._keeps_calls:
            with self._lock:
                self._calls.append(call)

    def _forward(self, request: _Request) -> _Reply:
        # A connection for each call: one that is kept may be closed by an idle stand-in just when it is used again.
        upstream = http.client.HTTPConnection(*self._upstream, timeout=_UPSTREAM_SECONDS)
        try:
            upstream.request("POST", request.path, body=request.body, headers=dict(request.headers))
            response = upstream.getresponse()
            return _Reply(response.status, _passed_on(response.getheaders()), response.read())
        finally:
            upstream.close()


@dataclass(frozen=True)
class _Request:
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True)
class _Reply:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def with_header(self, name: str, value: str) -> _Reply:
        others = tuple(header for header in self.headers if header[0].lower() != name.lower())
        return replace(self, headers=(*others, (name, value)))


def _made_up(answer: Answer) -> _Reply:
    body = answer.body()
    headers = (
        ("Content-Type", "application/x-amz-json-1.0"),
        ("x-amz-crc32", checksum(body)),
        ("Date", format_datetime(datetime.now(UTC), usegmt=True)),
    )
    return _Reply(answer.status, headers, body)


def _passed_on(headers: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in headers if name.lower() not in _NOT_PASSED_ON)


def _bound_socket() -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    return bound


class _Listener(socketserver.ThreadingTCPServer):
    """Accepts connections, a thread for each, and ends them all when it stops."""

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        self._serving: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)
        serve = partial(self.serve_forever, poll_interval=_STOP_LATENCY_SECONDS)
        self._accepting = _proxy_thread(serve)

    def start(self) -> None:
        self._accepting.start()

    def stop(self) -> None:
        """Accept no more, close the connections that wait for a call, and wait for those that are busy with one."""
        self.shutdown()
        self._accepting.join()
        self.server_close()
        with self._lock:
            serving = dict(self._serving)
        for connection in serving:
            with suppress(OSError):  # the client was faster
                connection.shutdown(socket.SHUT_RD)
        for thread in serving.values():
            thread.join(_DRAIN_SECONDS)
            if thread.is_alive():
                raise TimeoutError("A call is still held: open its gate first.")

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = _proxy_thread(partial(self.process_request_thread, request, client_address))
        with self._lock:
            self._serving[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        """Close without the polite goodbye that socketserver says first, which would turn a reset into an end."""
        with self._lock:
            self._serving.pop(request, None)
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong in the proxy; that a client or the stand-in has hung up is daily business here."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _proxy_thread(run: Callable[[], None]) -> threading.Thread:
    return threading.Thread(target=run, name=THREAD_NAME, daemon=True)


class _Connection(BaseHTTPRequestHandler):
    """One connection of a client, call after call."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, proxy: FaultProxy, *arguments: Any) -> None:
        self._proxy = proxy
        super().__init__(*arguments)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        request = _Request(self.path, _passed_on(self.headers.items()), self.rfile.read(length))
        if len(request.body) < length:
            self._reset()
            return
        operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        body = json.loads(request.body)
        fault = self._proxy.choose(operation, body)
        reply = self._proxy.answer(request, fault)
        self._proxy.record(Call(operation, body, fault, reply.status if reply else None))
        if reply is None:
            self._reset()
        else:
            self._send(self._proxy.dated(reply))

    def _send(self, reply: _Reply) -> None:
        self.send_response_only(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def _reset(self) -> None:
        """Make the kernel send a reset, not an end, when this connection is closed, which is next."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.close_connection = True
