"""Clients of DynamoDB: an operator has one for each table, so what a further one keeps must be little."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest

from thunderagent.settings import TableSettings
from thunderagent.store.dynamo import USER_AGENT, open_client

MOST_BYTES = 2_000_000
"""A client of its own descriptions keeps about 9 MB."""


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
