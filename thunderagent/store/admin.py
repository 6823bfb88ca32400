"""Making a task table, and describing one that is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

from thunderagent.errors import LayoutChanged, StoreAccessDenied, StoreRejected, StoreUnavailable, TableExists, TableMissing
from thunderagent.store.dynamo import DynamoStore, open_client
from thunderagent.store.failures import translate
from thunderagent.store.layout import CLASSIC, DISPATCH_INDEX, MIGRATION_ID, PROJECTED, VERSION, Layout
from thunderagent.task import Attr, Record
from thunderagent.values import read_attribute

_deserialize = TypeDeserializer().deserialize
_serialize = TypeSerializer().serialize


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


def create_table(
    store: DynamoStore,
    *,
    layout: Layout = CLASSIC,
    deletion_protection: bool = False,
    tags: dict[str, str] | None = None,
) -> None:
    """Create the table of the published format with the indexes of a layout, PAY_PER_REQUEST.

    Raises TableExists; returns before the table is ready. Then :func:`write_layout` says in it which layout it has.
    """
    indexes = [*([CLASSIC_INDEX] if layout.classic_index else []), *([DISPATCH] if layout.keyed else [])]
    attributes = {Attr.TASK_ID.value: "S"} | {attr: kind for index in indexes for attr, kind in index.types.items()}
    arguments: dict[str, Any] = {
        "AttributeDefinitions": _definitions(attributes),
        "KeySchema": [{"AttributeName": Attr.TASK_ID.value, "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [index.arguments(index.name or store.settings.index) for index in indexes],
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


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """An index as it is to be made: its name (empty: the one of the settings), its keys with their types, what it projects."""

    name: str
    types: Mapping[str, str]
    projected: tuple[str, ...] | None

    def arguments(self, name: str) -> dict[str, Any]:
        """What DynamoDB is told, whose first key is the HASH."""
        projection: dict[str, Any] = {"ProjectionType": "ALL"}
        if self.projected is not None:
            projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(self.projected)}
        kinds = zip(self.types, ("HASH", "RANGE"), strict=True)
        schema = [{"AttributeName": attr, "KeyType": kind} for attr, kind in kinds]
        return {"IndexName": name, "KeySchema": schema, "Projection": projection}


CLASSIC_INDEX: Final = IndexPlan("", {Attr.STATUS.value: "S", Attr.CREATED_AT.value: "N"}, None)
DISPATCH: Final = IndexPlan(
    DISPATCH_INDEX, {Attr.DISPATCH.value: "S", Attr.DUE_AT.value: "N"}, tuple(attr.value for attr in PROJECTED)
)


def _definitions(types: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": attr, "AttributeType": kind} for attr, kind in types.items()]


def add_index(store: DynamoStore, plan: IndexPlan) -> bool:
    """Begin to add an index to a table that is there, which goes on being used. False where it has one of that name."""
    name = plan.name or store.settings.index
    shape = describe(store)
    if any(each.name == name for each in shape.indexes):
        return False
    types = {**shape.attribute_types, **plan.types}
    store.call(
        "UpdateTable",
        AttributeDefinitions=_definitions(types),
        GlobalSecondaryIndexUpdates=[{"Create": plan.arguments(name)}],
    )
    return True


def drop_index(store: DynamoStore, name: str) -> bool:
    """Begin to remove an index. False where the table has none of that name."""
    if all(each.name != name for each in describe(store).indexes):
        return False
    store.call("UpdateTable", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}}])
    return True


def write_layout(store: DynamoStore, layout: Layout) -> Layout:
    """Have the table say that it has this layout, and return it as written.

    Raises LayoutChanged where somebody else has changed it since it was read.
    """
    written = replace(layout, version=layout.version + 1)
    names = {"#version": VERSION}
    values: dict[str, Any] = {":version": {"N": str(layout.version)}}
    condition = "#version = :version" + (" OR attribute_not_exists(#version)" if layout.version == 0 else "")
    item = {name: _serialize(value) for name, value in written.to_record().items()}
    try:
        store.call(
            "PutItem",
            Item=item,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )
    except ClientError:
        raise LayoutChanged(
            f"Somebody else is changing the layout of {store.settings.table}. Let them finish, then try again."
        ) from None
    store.forget_layout()
    return written


@dataclass(frozen=True, slots=True)
class ScanPage:
    """Records of the table in no order, and where the scan goes on; None at its end."""

    records: tuple[Record, ...]
    cursor: Mapping[str, Any] | None


def scan_page(store: DynamoStore, limit: int, cursor: Mapping[str, Any] | None) -> ScanPage:
    """Items straight from the table, read consistently. Raises a StoreError."""
    more: dict[str, Any] = {} if cursor is None else {"ExclusiveStartKey": cursor}
    reply = store.call("Scan", Limit=limit, ConsistentRead=True, **more)
    return ScanPage(tuple(_record(item) for item in reply["Items"]), reply.get("LastEvaluatedKey"))


@dataclass(frozen=True, slots=True)
class ScanPlace:
    """How far a migration's scan has got: for how many shards it files, where it goes on, what it has seen and filed."""

    shards: int
    cursor: Mapping[str, Any] | None = None
    seen: int = 0
    filed: int = 0


def read_place(store: DynamoStore, shards: int) -> ScanPlace:
    """Where a scan for so many shards was stopped, or the beginning of a new one."""
    item = store.call("GetItem", Key={Attr.TASK_ID.value: {"S": MIGRATION_ID}}, ConsistentRead=True).get("Item", {})
    record = _record(item)
    if record.get("shards") != shards or "cursor" not in record:
        return ScanPlace(shards)
    cursor = {Attr.TASK_ID.value: {"S": record["cursor"]}}
    return ScanPlace(shards, cursor, int(record.get("seen", 0)), int(record.get("filed", 0)))


def write_place(store: DynamoStore, place: ScanPlace) -> None:
    """Keep how far a scan has got, so that another run goes on from there."""
    record = {Attr.TASK_ID.value: MIGRATION_ID, "shards": place.shards, "seen": place.seen, "filed": place.filed}
    if place.cursor is not None:
        record["cursor"] = place.cursor[Attr.TASK_ID]["S"]
    store.call("PutItem", Item={name: _serialize(value) for name, value in record.items()})


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
    return {name: read_attribute(name, _deserialize(value)) for name, value in item.items()}


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
