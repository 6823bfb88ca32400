"""The task table in DynamoDB. Every call goes through one place, which also reads the table's time from each reply."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

import botocore
import botocore.session
from boto3.dynamodb.types import TypeDeserializer
from botocore.config import Config
from botocore.exceptions import ClientError

from thunderagent.errors import StoreAccessDenied, StoreError, StoreThrottled, ThunderAgentError
from thunderagent.settings import TableSettings
from thunderagent.store.attempts import Attempts
from thunderagent.store.base import (
    LAYOUT_READ,
    Applied,
    BatchRead,
    CallReport,
    Cursor,
    Observer,
    Page,
    possible_ids,
    require_room,
    task_or_none,
)
from thunderagent.store.clock import TableClock
from thunderagent.store.conditions import holds
from thunderagent.store.dispatch import page_of_status
from thunderagent.store.expressions import put_arguments, update_arguments
from thunderagent.store.failures import CONDITION_FAILED, reply_code, translate
from thunderagent.store.layout import DISPATCH_INDEX, LAYOUT_ID, Layout, entry_record
from thunderagent.store.replies import take_items_as_json
from thunderagent.task import Attr, Record, Status, Task
from thunderagent.transitions import Transition
from thunderagent.values import read_attribute

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BATCH_KEYS = 100
"""Keys of one BatchGetItem: DynamoDB's limit."""

RENEWAL_TIMEOUT = 3.0
RENEWAL_ATTEMPTS = 2
"""Seconds and tries of a renewal: a lost packet must not hold a renewal for longer than leases can bear."""

UNCERTAIN = 5.0
"""Seconds between the bounds of the table's time from which on it is asked for anew: after an hour without a call, or so."""

USER_AGENT = f"ThunderAgent Botocore/{botocore.__version__}"
"""Who calls, for CloudTrail. botocore's own text has more parts, and is put together anew for each call."""

_METHODS = {
    "GetItem": "get_item",
    "BatchGetItem": "batch_get_item",
    "PutItem": "put_item",
    "UpdateItem": "update_item",
    "Query": "query",
    "Scan": "scan",
    "DescribeTable": "describe_table",
    "DescribeTimeToLive": "describe_time_to_live",
    "UpdateTimeToLive": "update_time_to_live",
    "CreateTable": "create_table",
    "UpdateTable": "update_table",
}

_deserialize = TypeDeserializer().deserialize


def open_client(settings: TableSettings) -> DynamoDBClient:
    """A client for the table, from a session of its own: clients are safe to share between threads, sessions are not."""
    config = Config(
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        retries={"mode": "standard", "total_max_attempts": settings.attempts},
        max_pool_connections=settings.connections,
        tcp_keepalive=True,
        user_agent=USER_AGENT,
        parameter_validation=False,  # every call is built in this package; the check costs a twentieth of a write
    )
    session = botocore.session.Session()
    session.register_component("data_loader", _descriptions())
    client = cast(
        "DynamoDBClient", session.create_client("dynamodb", settings.region, endpoint_url=settings.endpoint, config=config)
    )
    take_items_as_json(client)
    return client


@cache
def _descriptions() -> Any:
    """botocore's descriptions of services, read once: each session of its own would keep another 9 MB of them."""
    return botocore.session.Session().get_component("data_loader")


class _Laid:
    """The layout of a table as a store and its store for renewals know it, and when it was read, in monotonic seconds."""

    def __init__(self) -> None:
        self.layout: Layout | None = None
        self.read_at = float("-inf")
        self.reading = threading.Lock()
        """Held by the one call that reads it anew; the others go on with what is known."""


class DynamoStore:
    """The task table in DynamoDB. Safe to share between threads.

    ``observer`` is told of every call. ``clock`` is shared between the stores of one process: all know the table's time.
    ``refresh_time``: ask for the table's time where no reply has told it for so long that it has become uncertain. Without it
    the time is asked for once, and never again by whoever must not be kept waiting for it. ``laid``: what another store of the
    table keeps of its layout, and this one only uses.
    """

    def __init__(
        self,
        settings: TableSettings,
        *,
        clock: TableClock | None = None,
        observer: Observer | None = None,
        refresh_time: bool = True,
        laid: _Laid | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or TableClock()
        self._laid = laid or _Laid()
        self._keeps_layout = laid is None
        self._observer = observer
        self._refresh_time = refresh_time
        self._lock = threading.Lock()
        self._attempts = Attempts()
        self._client: DynamoDBClient | None = None

    def for_renewals(self) -> DynamoStore:
        """A store of the same table with its own connections and short time-outs."""
        settings = replace(
            self.settings, connect_timeout=RENEWAL_TIMEOUT, read_timeout=RENEWAL_TIMEOUT, attempts=RENEWAL_ATTEMPTS
        )
        return DynamoStore(
            settings, clock=self.clock, observer=self._observer, refresh_time=self._refresh_time, laid=self._laid
        )

    def now(self) -> int:
        self._learn_time()
        return self.clock.now()

    def lease_end(self, seconds: float) -> int:
        self._learn_time()
        return self.clock.lease_end(seconds)

    def get(self, task_id: str) -> Task | None:
        item = self.call("GetItem", Key=_key(task_id), ConsistentRead=True).get("Item")
        return None if item is None else Task.from_record(_record(item))

    def get_many(self, task_ids: Collection[str]) -> BatchRead:
        found: dict[str, Task] = {}
        unknown: set[str] = set()
        units = 0.0
        for ids in _batches(possible_ids(task_ids), BATCH_KEYS):
            keys: dict[str, Any] = {"Keys": [_key(task_id) for task_id in ids], "ConsistentRead": True}
            reply = self._request("BatchGetItem", RequestItems={self.settings.table: keys})
            units += _units(reply)
            for item in _of_table(reply["Responses"], self.settings.table):
                task = task_or_none(_record(item))
                if task is None:
                    unknown.add(item[Attr.TASK_ID]["S"])
                else:
                    found[task.task_id] = task
            for unprocessed in reply.get("UnprocessedKeys", {}).values():
                unknown |= {key[Attr.TASK_ID]["S"] for key in unprocessed["Keys"]}
        return BatchRead(found, frozenset(unknown), units)

    def apply(self, transition: Transition, *, want_task: bool = False) -> Applied:
        operation, arguments = _write(self.layout().filed(transition), want_task)
        try:
            reply = self.call(operation, ReturnValuesOnConditionCheckFailure="ALL_OLD", **arguments)
        except ClientError as refused:
            return self._judge(transition, cast("dict[str, Any] | None", refused.response.get("Item")))
        if not want_task:
            return Applied(True)
        item = arguments["Item"] if transition.creates else reply["Attributes"]
        return Applied(True, task_or_none(_record(item)))

    def page(self, status: Status, *, limit: int, cursor: Cursor | None = None, newest_first: bool = False) -> Page:
        require_room(limit)
        if not self.layout().classic_index:
            return page_of_status(self, self._scan, status, limit=limit, cursor=cursor)
        arguments: dict[str, Any] = {
            "IndexName": self.settings.index,
            "KeyConditionExpression": "#status = :status",
            "ExpressionAttributeNames": {"#status": Attr.STATUS.value},
            "ExpressionAttributeValues": {":status": {"S": str(status)}},
            "Limit": limit,
            "ScanIndexForward": not newest_first,
        }
        if cursor is not None:
            arguments["ExclusiveStartKey"] = cursor
        reply = self.call("Query", **arguments)
        tasks = tuple(Task.from_record(_record(item)) for item in reply["Items"])
        return Page(tasks, reply.get("LastEvaluatedKey"), _units(reply))

    def entries(self, partition: str, *, limit: int, until: int | None = None, cursor: Cursor | None = None) -> Page:
        require_room(limit)
        condition = "#dispatch = :partition"
        arguments: dict[str, Any] = {
            "IndexName": DISPATCH_INDEX,
            "ExpressionAttributeNames": {"#dispatch": Attr.DISPATCH.value},
            "ExpressionAttributeValues": {":partition": {"S": partition}},
            "Limit": limit,
        }
        if until is not None:
            condition += " AND #dueAt <= :until"
            arguments["ExpressionAttributeNames"]["#dueAt"] = Attr.DUE_AT.value
            arguments["ExpressionAttributeValues"][":until"] = {"N": str(until)}
        if cursor is not None:
            arguments["ExclusiveStartKey"] = cursor
        reply = self.call("Query", KeyConditionExpression=condition, **arguments)
        entries = (task_or_none(entry_record(_record(item))) for item in reply["Items"])
        tasks = tuple(entry for entry in entries if entry is not None)
        return Page(tasks, reply.get("LastEvaluatedKey"), _units(reply))

    def layout(self) -> Layout:
        laid = self._laid
        if laid.layout is None:
            self._read_layout()
        elif self._keeps_layout and self.clock.read() - laid.read_at > LAYOUT_READ and laid.reading.acquire(blocking=False):
            try:
                self._read_layout()
            finally:
                laid.reading.release()
        return cast("Layout", laid.layout)

    def forget_layout(self) -> None:
        """Read the layout anew before the next write or page: it has just been changed."""
        self._laid.read_at = float("-inf")

    def _read_layout(self) -> None:
        began = self.clock.read()
        item = self.call("GetItem", Key=_key(LAYOUT_ID), ConsistentRead=True).get("Item")
        self._laid.layout = Layout.from_record(None if item is None else _record(item))
        self._laid.read_at = began

    def _scan(self, status: Status, limit: int, cursor: Cursor | None) -> Page:
        arguments: dict[str, Any] = {} if cursor is None else {"ExclusiveStartKey": cursor}
        reply = self.call(
            "Scan",
            FilterExpression="#status = :status",
            ExpressionAttributeNames={"#status": Attr.STATUS.value},
            ExpressionAttributeValues={":status": {"S": str(status)}},
            Limit=limit,
            **arguments,
        )
        tasks = tuple(Task.from_record(_record(item)) for item in reply["Items"])
        return Page(tasks, reply.get("LastEvaluatedKey"), _units(reply))

    def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Call DynamoDB on this table. Raises a StoreError, or botocore's ClientError for a failed condition alone."""
        return self._request(operation, TableName=self.settings.table, **arguments)

    def close(self) -> None:
        """Close the connections. The store can still be used; it then opens new ones."""
        self._forget_client()

    def _request(self, operation: str, **arguments: Any) -> dict[str, Any]:
        if operation in _METERED:
            arguments["ReturnConsumedCapacity"] = "TOTAL"
        sent = self.clock.read()
        self._attempts.begin()
        try:
            reply: dict[str, Any] = getattr(self._connected(), _METHODS[operation])(**arguments)
        except ClientError as error:
            self._note_reply(error.response, sent)
            if reply_code(error) == CONDITION_FAILED:
                self._report(operation, "condition_failed", sent)
                raise
            raise self._failed(error, operation, sent) from error
        except Exception as error:
            raise self._failed(error, operation, sent) from error
        self._note_reply(reply, sent)
        self._report(operation, "ok", sent, _units(reply))
        return reply

    def _judge(self, transition: Transition, item: Mapping[str, Any] | None) -> Applied:
        """Whether a write whose condition failed had gone through before. Where a stand-in sends no item, it is read."""
        if item is None:
            item = self.call("GetItem", Key=_key(transition.task_id), ConsistentRead=True).get("Item")
        if item is None:
            return Applied(False)
        proven = holds(transition.proof, {name: _deserialize(value) for name, value in item.items()})
        return Applied(proven, task_or_none(_record(item)), repeated=proven)

    def _learn_time(self) -> None:
        if self.clock.known and (not self._refresh_time or self.clock.uncertainty() <= UNCERTAIN):
            return
        try:
            self._read_layout()
        except StoreError:
            if not self.clock.known:
                raise

    def _note_reply(self, reply: Mapping[str, Any], sent: float) -> None:
        date = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            self.clock.observe(_epoch_seconds(date), sent, self.clock.read())

    def _connected(self) -> DynamoDBClient:
        with self._lock:
            if self._client is None:
                self._client = open_client(self.settings)
                self._attempts.watch(self._client)
            return self._client

    def _failed(self, error: Exception, operation: str, sent: float) -> ThunderAgentError:
        translated = translate(error, operation, self.settings.table)
        if isinstance(translated, StoreAccessDenied):
            self._forget_client()  # credentials may have been renewed where they come from; a new session reads them anew
        self._report(operation, "throttled" if isinstance(translated, StoreThrottled) else type(translated).__name__, sent)
        return translated

    def _forget_client(self) -> None:
        with self._lock:
            forgotten, self._client = self._client, None
        if forgotten is not None:
            forgotten.close()

    def _report(self, operation: str, result: str, sent: float, units: float = 0.0) -> None:
        if self._observer is not None:
            tried = self._attempts.tried()
            seconds = self.clock.read() - sent
            self._observer(CallReport(operation, result, seconds, units, tried.retries, tried.throttles))


_METERED = frozenset({"GetItem", "BatchGetItem", "PutItem", "UpdateItem", "Query", "Scan"})


def _write(transition: Transition, want_task: bool) -> tuple[str, dict[str, Any]]:
    if transition.creates:
        return "PutItem", put_arguments(transition)
    returned = {"ReturnValues": "ALL_NEW"} if want_task else {}
    return "UpdateItem", update_arguments(transition) | returned


def _key(task_id: str) -> dict[str, Any]:
    return {Attr.TASK_ID.value: {"S": task_id}}


@lru_cache(maxsize=4)
def _epoch_seconds(date: str) -> float:
    """A Date header in epoch seconds. All replies of one second have the same."""
    return parsedate_to_datetime(date).timestamp()


def _record(item: Mapping[str, Any]) -> Record:
    return {name: _value(name, attribute) for name, attribute in item.items()}


def _value(name: str, attribute: Any) -> Any:
    """An attribute in Python. Most are text or whole numbers, which mean themselves."""
    if "S" in attribute:
        return attribute["S"]
    if (number := attribute.get("N", "")).isdecimal():
        return int(number)
    return read_attribute(name, _deserialize(attribute))


def _of_table(responses: Mapping[str, Any], table: str) -> Sequence[Mapping[str, Any]]:
    """The items of the one table asked for; a reply names it by ARN where the request did."""
    return responses.get(table) or next(iter(responses.values()), [])


def _units(reply: Mapping[str, Any]) -> float:
    consumed = reply.get("ConsumedCapacity") or {}
    parts = consumed if isinstance(consumed, list) else [consumed]
    return float(sum(part.get("CapacityUnits", 0.0) for part in parts))


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
