"""Replies about items, taken as their JSON stands, held against botocore's own reading of the same bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from thunderagent.settings import TableSettings
from thunderagent.store.dynamo import open_client

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SETTINGS = TableSettings(table="TaskTable", region="eu-central-1", endpoint="http://127.0.0.1:1")
UNITS = {"TableName": "TaskTable", "CapacityUnits": 1.5}
ITEM = {
    "taskId": {"S": "a"},
    "note": {"S": 'ä 😀 \u2028 "quoted"'},
    "empty": {"S": ""},
    "count": {"N": "12"},
    "ratio": {"N": "0.5"},
    "yes": {"BOOL": True},
    "nothing": {"NULL": True},
    "list": {"L": [{"S": "x"}, {"L": []}, {"M": {}}]},
    "map": {"M": {"S": {"S": "x"}, "N": {"M": {"L": {"N": "1"}}}}},
    "texts": {"SS": ["x", "y"]},
    "numbers": {"NS": ["1", "2.5"]},
}
BINARY = {"taskId": {"S": "a"}, "raw": {"B": "AAH/"}, "many": {"BS": ["AA==", "AQ=="]}, "deep": {"L": [{"B": ""}]}}
KEY = {"taskId": {"S": "a"}}
QUERY = {"KeyConditionExpression": "taskId = :a"}


class _Body:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: object, **__: object) -> list[bytes]:
        return [self._body]


def _answering(client: Any, body: bytes, status: int = 200) -> DynamoDBClient:
    """The client, each of whose calls is answered so, without a network."""
    headers: Any = {"x-amzn-requestid": "r", "Date": "Tue, 01 Dec 2026 12:00:00 GMT"}
    client.meta.events.register(
        "before-send.dynamodb", lambda request, **_: AWSResponse(request.url, status, headers, _Body(body))
    )
    answering: DynamoDBClient = client
    return answering


def _ours(body: bytes, status: int = 200) -> DynamoDBClient:
    return _answering(open_client(SETTINGS), body, status)


def _botocores(body: bytes, status: int = 200) -> DynamoDBClient:
    client = botocore.session.Session().create_client("dynamodb", SETTINGS.region, endpoint_url=SETTINGS.endpoint)
    return _answering(client, body, status)


CALLS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "an item": ("get_item", {"Key": KEY}, {"Item": ITEM, "ConsumedCapacity": UNITS}),
    "no item": ("get_item", {"Key": KEY}, {}),
    "members that say null": ("get_item", {"Key": KEY}, {"Item": ITEM, "ConsumedCapacity": None}),
    "an item with binary values": ("get_item", {"Key": KEY}, {"Item": BINARY}),
    "a put": ("put_item", {"Item": KEY}, {"ConsumedCapacity": UNITS}),
    "an update": ("update_item", {"Key": KEY}, {"Attributes": ITEM, "ConsumedCapacity": UNITS}),
    "a page": (
        "query",
        QUERY,
        {"Items": [ITEM, KEY], "Count": 2, "ScannedCount": 2, "LastEvaluatedKey": KEY, "ConsumedCapacity": UNITS},
    ),
    "a page with one binary value": ("query", QUERY, {"Items": [ITEM, BINARY], "Count": 2, "ScannedCount": 2}),
    "an empty page": ("query", QUERY, {"Items": [], "Count": 0, "ScannedCount": 0}),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_reply_comes_to_what_botocore_reads_from_it(call: str) -> None:
    method, arguments, reply = CALLS[call]
    body = json.dumps(reply).encode()
    ours, botocores = (
        getattr(client, method)(TableName="TaskTable", **arguments) for client in (_ours(body), _botocores(body))
    )
    assert ours == botocores


def test_a_batch_comes_to_what_botocore_reads_from_it() -> None:
    keys: Any = {"RequestItems": {"TaskTable": {"Keys": [KEY]}}}
    body = json.dumps({"Responses": {"TaskTable": [ITEM]}, "UnprocessedKeys": {"TaskTable": {"Keys": [KEY]}}}).encode()
    assert _ours(body).batch_get_item(**keys) == _botocores(body).batch_get_item(**keys)


def test_a_refusal_carries_the_item_as_botocore_reads_it() -> None:
    kind = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"
    body = json.dumps({"__type": kind, "message": "The conditional request failed", "Item": ITEM}).encode()
    seen: list[Any] = []
    for client in (_ours(body, 400), _botocores(body, 400)):
        with pytest.raises(ClientError) as refused:
            client.update_item(TableName="TaskTable", Key=KEY)
        seen.append(refused.value.response)
    assert seen[0]["Item"] == ITEM
    assert seen[0] == seen[1]


@pytest.mark.parametrize("body", [b"<html>not JSON</html>", b"[]", b'"text"'], ids=["HTML", "a list", "a text"])
def test_what_is_no_reply_is_left_to_botocore(body: bytes) -> None:
    outcomes = []
    for client in (_ours(body), _botocores(body)):
        try:
            outcomes.append(str(client.get_item(TableName="TaskTable", Key=KEY)))
        except Exception as error:
            outcomes.append(repr(error))
    assert outcomes[0] == outcomes[1]


def test_botocore_still_has_the_event_that_this_stands_on() -> None:
    """A member that no description names gets through only where the JSON was taken as it stands."""
    reply: Any = _ours(b'{"NotInAnyDescription": 1}').get_item(TableName="TaskTable", Key=KEY)
    assert reply["NotInAnyDescription"] == 1
