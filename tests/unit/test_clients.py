"""Clients of DynamoDB: an operator has one for each table, so what a further one keeps must be little."""

from __future__ import annotations

import tracemalloc

from thunderagent.settings import TableSettings
from thunderagent.store.dynamo import open_client

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
