"""Making a task table, and describing one that is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import ClientError

from thunderagent.errors import StoreAccessDenied, StoreRejected, StoreUnavailable, TableExists, TableMissing
from thunderagent.store.dynamo import DynamoStore, open_client
from thunderagent.store.failures import translate
from thunderagent.task import Attr, Record
from thunderagent.values import decode

_deserialize = TypeDeserializer().deserialize


@dataclass(frozen=True, slots=True)
class IndexShape:
    """A global secondary index as DynamoDB describes it."""

    name: str
    status: str
    keys: tuple[tuple[str, str], ...]
    projection: str


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table as DynamoDB describes it. ``ttl`` is the attribute that TTL works on, None where it is off, "?" if not known."""

    status: str
    keys: tuple[tuple[str, str], ...]
    attribute_types: dict[str, str]
    indexes: tuple[IndexShape, ...]
    billing: str
    deletion_protection: bool
    ttl: str | None


@dataclass(frozen=True, slots=True)
class Scanned:
    """Records of the table in no order. ``cut`` says that there are more."""

    records: tuple[Record, ...]
    cut: bool


def create_table(store: DynamoStore, *, deletion_protection: bool = False, tags: dict[str, str] | None = None) -> None:
    """Create the table of the published format, PAY_PER_REQUEST. Raises TableExists; returns before it is ready."""
    arguments: dict[str, Any] = {
        "AttributeDefinitions": [
            {"AttributeName": Attr.TASK_ID.value, "AttributeType": "S"},
            {"AttributeName": Attr.STATUS.value, "AttributeType": "S"},
            {"AttributeName": Attr.CREATED_AT.value, "AttributeType": "N"},
        ],
        "KeySchema": [{"AttributeName": Attr.TASK_ID.value, "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": store.settings.index,
                "KeySchema": [
                    {"AttributeName": Attr.STATUS.value, "KeyType": "HASH"},
                    {"AttributeName": Attr.CREATED_AT.value, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    if deletion_protection:
        arguments["DeletionProtectionEnabled"] = True
    if tags:
        arguments["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
    try:
        store.call("CreateTable", **arguments)
    except StoreRejected as error:
        cause = error.__cause__
        if isinstance(cause, ClientError) and cause.response["Error"].get("Code") == "ResourceInUseException":
            raise TableExists(
                f"There is a table {store.settings.table} already. `thunderagent table check` looks at it."
            ) from None
        raise


def enable_ttl(store: DynamoStore) -> bool:
    """Turn TTL on for expiresAt. False where this DynamoDB has no TTL (a stand-in); the table must be ACTIVE."""
    try:
        store.call("UpdateTimeToLive", TimeToLiveSpecification={"Enabled": True, "AttributeName": Attr.EXPIRES_AT.value})
    except StoreRejected as error:
        if "already enabled" in str(error):
            return True
        if "UnknownOperation" in str(error):
            return False
        raise
    return True


def wait_until_active(
    store: DynamoStore,
    sleep: Callable[[float], None],
    *,
    tries: int = 120,
    pause: float = 1.0,
    report: Callable[[str], None] = lambda state: None,
) -> None:
    """Wait until the table and its indexes are ACTIVE; ``report`` is told what is still waited for, each ``pause`` seconds.

    Raises StoreUnavailable when they are not after all tries.
    """
    for _ in range(tries):
        pending = _not_active(store)
        if not pending:
            return
        report(f"Waiting for {pending}")
        sleep(pause)
    raise StoreUnavailable(
        f"Of the table {store.settings.table}, {pending} after {tries * pause:g} s. Wait, then run `thunderagent table check`."
    )


def _not_active(store: DynamoStore) -> str:
    """The first part of the table that is not ACTIVE, and its state; empty where all are."""
    try:
        table = store.call("DescribeTable")["Table"]
    except TableMissing:  # a table just created may not be seen at once
        return f"the table {store.settings.table} (not to be seen yet)"
    parts = {f"the table {store.settings.table}": table["TableStatus"]}
    parts |= {f"the index {each['IndexName']}": each.get("IndexStatus", "ACTIVE") for each in _indexes(table)}
    return next((f"{name} ({status})" for name, status in parts.items() if status != "ACTIVE"), "")


def describe(store: DynamoStore) -> TableShape:
    """The table as it is. Raises TableMissing."""
    table = store.call("DescribeTable")["Table"]
    return TableShape(
        status=table["TableStatus"],
        keys=_keys(table["KeySchema"]),
        attribute_types={each["AttributeName"]: each["AttributeType"] for each in table.get("AttributeDefinitions", [])},
        indexes=tuple(_index_shape(each) for each in _indexes(table)),
        billing=table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"),
        deletion_protection=bool(table.get("DeletionProtectionEnabled", False)),
        ttl=_ttl_attribute(store),
    )


def scan(store: DynamoStore, limit: int) -> Scanned:
    """Items straight from the table, at most ``limit``, also those that no index shows. Costs read units for each.

    Raises a StoreError.
    """
    records: list[Record] = []
    arguments: dict[str, Any] = {"TableName": store.settings.table}
    with closing(open_client(store.settings)) as client:
        while len(records) < limit:
            try:
                reply = client.scan(Limit=limit - len(records), **arguments)
            except Exception as error:
                raise translate(error, "Scan", store.settings.table) from error
            records += [_record(item) for item in reply["Items"]]
            if "LastEvaluatedKey" not in reply:
                return Scanned(tuple(records), cut=False)
            arguments["ExclusiveStartKey"] = reply["LastEvaluatedKey"]
    return Scanned(tuple(records), cut=True)


def _record(item: Mapping[str, Any]) -> Record:
    return {name: decode(_deserialize(value)) for name, value in item.items()}


def _indexes(table: dict[str, Any]) -> list[dict[str, Any]]:
    indexes: list[dict[str, Any]] = table.get("GlobalSecondaryIndexes", [])
    return indexes


def _index_shape(index: dict[str, Any]) -> IndexShape:
    return IndexShape(
        index["IndexName"],
        index.get("IndexStatus", "ACTIVE"),
        _keys(index["KeySchema"]),
        index.get("Projection", {}).get("ProjectionType", "?"),
    )


def _keys(schema: list[dict[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((key["AttributeName"], key["KeyType"]) for key in schema)


def _ttl_attribute(store: DynamoStore) -> str | None:
    try:
        ttl = store.call("DescribeTimeToLive").get("TimeToLiveDescription", {})
    except (StoreRejected, StoreAccessDenied):
        return "?"  # a stand-in without TTL, or a role that may not look
    return ttl.get("AttributeName") if ttl.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"} else None
