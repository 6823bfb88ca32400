"""Clients of DynamoDB: an operator has one for each table, so what a further one keeps must be little."""

from __future__ import annotations

import json
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import botocore.endpoint
import pytest
from botocore.awsrequest import AWSPreparedRequest

from thunderagent.errors import StoreError
from thunderagent.settings import TableSettings
from thunderagent.store.base import CallReport
from thunderagent.store.dynamo import USER_AGENT, DynamoStore, open_client

MOST_BYTES = 2_000_000
"""A client of its own descriptions keeps about 9 MB."""


THROTTLED = "ProvisionedThroughputExceededException"
BROKEN = "InternalServerError"
OK = ""


class Table(ThreadingHTTPServer):
    """What answers as DynamoDB does: with these errors one after the other, and with success from then on."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.errors: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Table)
        code = self.server.errors.pop(0) if self.server.errors else OK
        body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no"} if code else {})
        self.send_response({OK: 200, BROKEN: 500}.get(code, 400))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setattr(botocore.endpoint, "time", NoWaiting())
    serving = Table()
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
    thread.start()
    yield serving
    serving.shutdown()
    serving.server_close()
    thread.join()


class NoWaiting:
    """The client's clock for its waits before a retry."""

    def sleep(self, seconds: float) -> None:
        """Not at all."""


@pytest.mark.parametrize(
    ("errors", "result", "retries", "throttles"),
    [
        pytest.param([], "ok", 0, 0, id="a call that succeeds at once"),
        pytest.param([THROTTLED, THROTTLED], "ok", 2, 2, id="one that succeeds after two throttled attempts"),
        pytest.param([BROKEN, THROTTLED], "ok", 2, 1, id="one with a retry for another reason"),
        pytest.param([THROTTLED] * 3, "throttled", 2, 3, id="one whose every attempt is throttled"),
        pytest.param(["ValidationException"], "StoreRejected", 0, 0, id="one that is refused for good"),
    ],
)
def test_what_the_client_tries_by_itself_is_told(
    table: Table, errors: list[str], result: str, retries: int, throttles: int
) -> None:
    told: list[CallReport] = []
    endpoint = f"http://127.0.0.1:{table.server_port}"
    store = DynamoStore(TableSettings(region="us-east-1", endpoint=endpoint, attempts=3), observer=told.append)
    store.call("GetItem", Key={})
    table.errors = list(errors)
    try:
        store.call("GetItem", Key={})
    except StoreError:
        assert result != "ok"
    store.close()
    assert [(each.result, each.retries, each.throttles) for each in told] == [("ok", 0, 0), (result, retries, throttles)]


def test_a_client_more_keeps_less_than_2_mb() -> None:
    settings = TableSettings(table="TaskTable", region="eu-central-1", endpoint="http://127.0.0.1:1")
    clients = [open_client(settings)]
    tracemalloc.start()
    try:
        clients += [open_client(settings) for _ in range(5)]
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for client in clients:
        client.close()
    assert kept / 5 < MOST_BYTES


class _Sent(Exception):
    """Raised in place of sending a request."""


def test_a_call_says_who_makes_it() -> None:
    """botocore puts its own text together anew for each call, unless the one given is used as it is."""
    client = open_client(TableSettings(table="TaskTable", region="eu-central-1", endpoint="http://127.0.0.1:1"))
    sent: list[AWSPreparedRequest] = []

    def catch(request: AWSPreparedRequest, **_: Any) -> None:
        sent.append(request)
        raise _Sent

    client.meta.events.register("before-send.dynamodb", catch)
    with pytest.raises(_Sent):
        client.get_item(TableName="TaskTable", Key={"taskId": {"S": "a"}})
    assert sent[0].headers["User-Agent"] in {USER_AGENT, USER_AGENT.encode()}
