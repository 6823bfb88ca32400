"""What botocore raises, as the errors that say whose turn it is."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    ReadTimeoutError,
)

from thunderagent.errors import (
    IndexMissing,
    InvalidSettings,
    StoreAccessDenied,
    StoreRejected,
    StoreThrottled,
    StoreUnavailable,
    TableMissing,
)
from thunderagent.store.failures import translate

URL = "http://127.0.0.1:9"


def reply(code: str, message: str = "", status: int = 400) -> ClientError:
    error: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(error, "Query")


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        pytest.param(reply("ProvisionedThroughputExceededException"), StoreThrottled, id="throughput exceeded"),
        pytest.param(reply("ThrottlingException"), StoreThrottled, id="throttled"),
        pytest.param(reply("RequestLimitExceeded"), StoreThrottled, id="the account's limit"),
        pytest.param(reply("AccessDeniedException"), StoreAccessDenied, id="not allowed"),
        pytest.param(reply("ExpiredTokenException"), StoreAccessDenied, id="credentials that have expired"),
        pytest.param(reply("UnrecognizedClientException"), StoreAccessDenied, id="credentials that nobody knows"),
        pytest.param(NoCredentialsError(), StoreAccessDenied, id="no credentials"),
        pytest.param(reply("ResourceNotFoundException", "Requested resource not found"), TableMissing, id="no table"),
        pytest.param(
            reply("ValidationException", "The table does not have the specified index: x"), IndexMissing, id="no index"
        ),
        pytest.param(
            reply("ValidationException", "Cannot read from backfilling global secondary index: x"),
            IndexMissing,
            id="an index that is being built",
        ),
        pytest.param(
            reply("ResourceNotFoundException", "Invalid index: x for table: t."), IndexMissing, id="no index, as moto says"
        ),
        pytest.param(reply("ValidationException", "Item size has exceeded"), StoreRejected, id="an invalid request"),
        pytest.param(ParamValidationError(report="Limit"), StoreRejected, id="a request that was not sent"),
        pytest.param(reply("InternalServerError", status=500), StoreUnavailable, id="a server error"),
        pytest.param(reply("503", "Service Unavailable", status=503), StoreUnavailable, id="a proxy that has no server"),
        pytest.param(reply("408", "Request Timeout", status=408), StoreUnavailable, id="a server that gives up a connection"),
        pytest.param(reply("", status=0), StoreUnavailable, id="a reply that says nothing"),
        pytest.param(EndpointConnectionError(endpoint_url=URL), StoreUnavailable, id="no connection"),
        pytest.param(ConnectTimeoutError(endpoint_url=URL), StoreUnavailable, id="no connection in time"),
        pytest.param(ReadTimeoutError(endpoint_url=URL), StoreUnavailable, id="no reply in time"),
        pytest.param(OSError("reset"), StoreUnavailable, id="whatever else a network does"),
        pytest.param(NoRegionError(), InvalidSettings, id="no region"),
    ],
)
def test_what_a_call_raises_says_whose_turn_it_is(raised: Exception, error: type[Exception]) -> None:
    translated = translate(raised, "Query", "tasks")

    assert type(translated) is error
    assert error is InvalidSettings or "tasks" in str(translated)


def test_a_type_mismatch_in_an_index_key_is_not_taken_for_a_missing_index() -> None:
    refused = reply("ValidationException", "Type mismatch for Index Key createdAt Expected: N Actual: S IndexName: x")

    assert type(translate(refused, "PutItem", "tasks")) is StoreRejected
