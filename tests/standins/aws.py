"""Clients and tables for tests: dummy credentials, short timeouts, no retries, and an environment without a way to AWS."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Mapping, MutableMapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

REGION = "eu-central-1"
INDEX = "status-createdAt-index"

_NOWHERE = "http://127.0.0.1:9"  # nothing listens there: a client that was given no endpoint is refused at once

DUMMY_ENVIRONMENT: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ENDPOINT_URL": _NOWHERE,
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}
"""What every test and every process that a test starts finds in place of the user's own AWS settings."""


def cut_off_from_aws(environ: MutableMapping[str, str]) -> None:
    """Replace every ``AWS_`` variable (profiles, roles, session tokens, endpoints) by :data:`DUMMY_ENVIRONMENT`."""
    for name in [name for name in environ if name.startswith("AWS_")]:
        del environ[name]
    environ.update(DUMMY_ENVIRONMENT)


def client_for(
    endpoint: str, *, region: str = REGION, access_key: str = "testing", timeout: float = 10.0, tries: int = 1
) -> DynamoDBClient:
    """A client of the stand-in at ``endpoint``. Close it, or the test fails for the sockets that it leaves open.

    ``timeout`` is in seconds, for connecting and for each read; ``tries`` counts the first one.
    """
    config = Config(
        connect_timeout=timeout,
        read_timeout=timeout,
        retries={"total_max_attempts": tries, "mode": "standard"},
        max_pool_connections=50,
    )
    with _making_clients:
        return _session().client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id=access_key,
            aws_secret_access_key="testing",
            config=config,
        )


_making_clients = threading.Lock()  # clients may be shared by threads, the session that makes them may not


@cache
def _session() -> boto3.session.Session:
    """One for all clients, which then read DynamoDB's definition, half a second's work, once."""
    return boto3.session.Session()


class FreshTable(NamedTuple):
    """An empty task table of the published format, and a client of the stand-in that has it."""

    client: DynamoDBClient
    name: str


def create_task_table(client: DynamoDBClient) -> str:
    """Create an empty table of the published format (DESIGN.md, section 3), wait until it is active, return its name.

    TTL is not switched on: not every stand-in can.
    """
    name = f"tasks-{uuid.uuid4().hex[:12]}"
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "taskId", "AttributeType": "S"},
            {"AttributeName": "status", "AttributeType": "S"},
            {"AttributeName": "createdAt", "AttributeType": "N"},
        ],
        KeySchema=[{"AttributeName": "taskId", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": INDEX,
                "KeySchema": [
                    {"AttributeName": "status", "KeyType": "HASH"},
                    {"AttributeName": "createdAt", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 0, "MaxAttempts": 500})
    return name
