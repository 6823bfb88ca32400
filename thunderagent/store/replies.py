"""Items in DynamoDB's replies, taken as the JSON has them.

botocore walks the description of each attribute of each item, which takes several times as long as reading the JSON. In this
protocol (JSON 1.0) what that comes to is the JSON again, but for binary values, which are base64 there, and for timestamps,
which no reply about items has. So the JSON is used as it stands; a reply that may hold a binary value is left to botocore.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ABOUT_ITEMS = ("GetItem", "BatchGetItem", "PutItem", "UpdateItem", "Query", "Scan")
_BINARY = (b'"B"', b'"BS"')


def take_items_as_json(client: DynamoDBClient) -> None:
    """Have the client read replies about items as plain JSON, by botocore's event ``before-parse``."""
    for operation in ABOUT_ITEMS:
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _take_json)


def _take_json(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    body = response_dict["body"]
    if response_dict["status_code"] != 200 or any(name in body for name in _BINARY):
        return
    try:
        reply = json.loads(body)
    except ValueError:
        return  # botocore says what is wrong with it
    if isinstance(reply, dict):
        customized_response_dict.update((name, value) for name, value in reply.items() if value is not None)
        response_dict["body"] = b"{}"
