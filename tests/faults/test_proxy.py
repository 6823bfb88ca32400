"""Each fault as the user of a real client meets it, and that the proxy is otherwise not noticed."""

from __future__ import annotations

import email.utils
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
)

from tests.faults.plan import (
    ANY,
    INTERNAL_ERROR,
    THROTTLED,
    TOKEN_EXPIRED,
    UNAVAILABLE,
    Answer,
    Delay,
    DelayReply,
    DropReply,
    Fault,
    Gate,
    Hang,
    Reset,
    Rule,
    WrongChecksum,
)
from tests.faults.proxy import THREAD_NAME, FaultProxy
from tests.standins.aws import FreshTable, client_for

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def proxy(moto_endpoint: str) -> Iterator[FaultProxy]:
    with FaultProxy(moto_endpoint) as proxy:
        yield proxy
    assert THREAD_NAME not in [thread.name for thread in threading.enumerate()]


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[DynamoDBClient]:
    with closing(client_for(proxy.endpoint)) as client:
        yield client


@pytest.fixture
def table(fresh_moto_table: FreshTable) -> str:
    return fresh_moto_table.name


def put(client: DynamoDBClient, table: str, task_id: str = "1") -> Any:
    return client.put_item(TableName=table, Item={"taskId": {"S": task_id}})


def is_stored(table: FreshTable, task_id: str = "1") -> bool:
    return "Item" in table.client.get_item(TableName=table.name, Key={"taskId": {"S": task_id}}, ConsistentRead=True)


def outcome(client: DynamoDBClient, table: str, task_id: str = "1") -> str:
    """``ok``, or the name of what was raised."""
    try:
        put(client, table, task_id)
    except ClientError as refused:
        return str(refused.response["Error"]["Code"])
    except Exception as failed:
        return type(failed).__name__
    return "ok"


# --- each fault ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code", "status"),
    [
        pytest.param(THROTTLED, "ProvisionedThroughputExceededException", 400, id="throttled"),
        pytest.param(TOKEN_EXPIRED, "ExpiredTokenException", 400, id="token expired"),
        pytest.param(Answer("ValidationException"), "ValidationException", 400, id="called invalid"),
        pytest.param(Answer("AccessDeniedException"), "AccessDeniedException", 400, id="access denied"),
        pytest.param(INTERNAL_ERROR, "InternalServerError", 500, id="internal error"),
        pytest.param(UNAVAILABLE, "ServiceUnavailable", 503, id="unavailable"),
    ],
)
def test_an_answer_is_the_error_that_its_code_says_and_nothing_is_written(
    proxy: FaultProxy, client: DynamoDBClient, fresh_moto_table: FreshTable, fault: Answer, code: str, status: int
) -> None:
    proxy.script(Rule("PutItem", fault))

    with pytest.raises(ClientError) as raised:
        put(client, fresh_moto_table.name)

    assert raised.value.response["Error"]["Code"] == code
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert not is_stored(fresh_moto_table)


@pytest.mark.parametrize(
    ("fault", "stored"),
    [
        pytest.param(Reset(), False, id="reset before DynamoDB had it: not written"),
        pytest.param(DropReply(), True, id="the reply lost: written"),
    ],
)
def test_a_reset_connection_does_not_tell_whether_the_write_went_through(
    proxy: FaultProxy, client: DynamoDBClient, fresh_moto_table: FreshTable, fault: Fault, stored: bool
) -> None:
    proxy.script(Rule("PutItem", fault))

    with pytest.raises(ConnectionClosedError):
        put(client, fresh_moto_table.name)

    assert is_stored(fresh_moto_table) is stored


def test_a_reset_is_a_reset_for_the_client_s_socket(proxy: FaultProxy, client: DynamoDBClient, table: str) -> None:
    proxy.script(Rule("PutItem", Reset()))

    with pytest.raises(ConnectionClosedError) as raised:
        put(client, table)

    assert "ConnectionResetError" in repr(raised.value.kwargs["error"])


def test_refused_connections_end_and_the_client_goes_on_with_the_same_endpoint(
    proxy: FaultProxy, client: DynamoDBClient, table: str
) -> None:
    put(client, table)
    with proxy.refusing():
        with pytest.raises(EndpointConnectionError):
            put(client, table)
        with closing(client_for(proxy.endpoint)) as newcomer, pytest.raises(EndpointConnectionError):
            put(newcomer, table)

    assert outcome(client, table) == "ok"


def test_a_hanging_call_times_out_and_is_never_carried_out(proxy: FaultProxy, fresh_moto_table: FreshTable) -> None:
    gate = Gate()
    proxy.script(Rule("PutItem", Hang(gate)))

    with closing(client_for(proxy.endpoint, timeout=0.1)) as client, pytest.raises(ReadTimeoutError):
        put(client, fresh_moto_table.name)
    gate.release()

    assert not is_stored(fresh_moto_table)


@pytest.mark.parametrize(
    ("fault_at", "stored_meanwhile"),
    [
        pytest.param(Delay, False, id="held on its way: not yet written"),
        pytest.param(DelayReply, True, id="its reply held: already written"),
    ],
)
def test_a_delayed_call_goes_on_when_the_test_says_so(
    proxy: FaultProxy,
    client: DynamoDBClient,
    fresh_moto_table: FreshTable,
    fault_at: type[Delay | DelayReply],
    stored_meanwhile: bool,
) -> None:
    gate = Gate()
    proxy.script(Rule("PutItem", fault_at(gate)))

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(put, client, fresh_moto_table.name)
        gate.wait_for_call()
        stored = is_stored(fresh_moto_table)
        gate.release()
        slow.result()

    assert stored is stored_meanwhile
    assert is_stored(fresh_moto_table)


@pytest.mark.parametrize("fault_at", [Hang, Delay])
def test_what_is_held_when_the_proxy_stops_is_reset_and_not_carried_out(
    moto_endpoint: str, fresh_moto_table: FreshTable, fault_at: type[Hang | Delay]
) -> None:
    gate = Gate()
    with ThreadPoolExecutor(1) as pool:
        with FaultProxy(moto_endpoint) as proxy, closing(client_for(proxy.endpoint)) as client:
            proxy.script(Rule("PutItem", fault_at(gate)))
            slow = pool.submit(outcome, client, fresh_moto_table.name)
            gate.wait_for_call()

        assert slow.result() == "ConnectionClosedError"
    assert not is_stored(fresh_moto_table)


def test_a_wrong_checksum_makes_the_client_try_again(proxy: FaultProxy, table: str) -> None:
    proxy.script(Rule("PutItem", WrongChecksum(), at={1}))

    with closing(client_for(proxy.endpoint, tries=2)) as client:
        put(client, table)

    assert [call.fault for call in proxy.calls] == [WrongChecksum(), None]


# --- which calls ---------------------------------------------------------------------------------------------------


def test_a_rule_can_pick_the_second_and_third_call_of_an_operation(
    proxy: FaultProxy, client: DynamoDBClient, table: str
) -> None:
    proxy.script(Rule("PutItem", THROTTLED, at=range(2, 4)))

    seen = []
    for _ in range(4):
        client.get_item(TableName=table, Key={"taskId": {"S": "1"}})
        seen.append(outcome(client, table))

    assert seen == ["ok", THROTTLED.code, THROTTLED.code, "ok"]


def test_a_rule_can_pick_by_what_the_call_says(proxy: FaultProxy, client: DynamoDBClient, table: str) -> None:
    proxy.script(Rule("PutItem", THROTTLED, where=lambda body: body["Item"]["taskId"]["S"] == "b"))

    assert [outcome(client, table, task_id) for task_id in "abc"] == ["ok", THROTTLED.code, "ok"]


def test_a_rule_for_any_operation_picks_reads_and_writes(proxy: FaultProxy, client: DynamoDBClient, table: str) -> None:
    proxy.script(Rule(ANY, INTERNAL_ERROR))

    assert outcome(client, table) == INTERNAL_ERROR.code
    with pytest.raises(client.exceptions.InternalServerError):
        client.get_item(TableName=table, Key={"taskId": {"S": "1"}})


def test_a_seed_makes_the_same_calls_fail_each_time(proxy: FaultProxy, client: DynamoDBClient, table: str) -> None:
    runs = []
    for _ in range(2):
        proxy.script(Rule("PutItem", THROTTLED, probability=0.5, random=Random(7)))
        runs.append([outcome(client, table) for _ in range(12)])

    assert runs[0] == runs[1]
    assert set(runs[0]) == {"ok", THROTTLED.code}


def test_of_two_rules_the_first_that_picks_a_call_applies(proxy: FaultProxy, client: DynamoDBClient, table: str) -> None:
    proxy.script(Rule("PutItem", THROTTLED, at={1}), Rule(ANY, INTERNAL_ERROR, at={1}))

    assert [outcome(client, table) for _ in range(3)] == [THROTTLED.code, INTERNAL_ERROR.code, "ok"]


def test_an_empty_script_ends_the_faults(proxy: FaultProxy, client: DynamoDBClient, table: str) -> None:
    proxy.script(Rule(ANY, Reset()))
    first = outcome(client, table)
    proxy.script()

    assert (first, outcome(client, table)) == ("ConnectionClosedError", "ok")


# --- otherwise not noticed -----------------------------------------------------------------------------------------


def test_without_a_fault_the_reply_is_that_of_the_stand_in(
    proxy: FaultProxy, client: DynamoDBClient, fresh_moto_table: FreshTable
) -> None:
    item: dict[str, Any] = {"taskId": {"S": "ü" * 1000}, "payload": {"B": bytes(range(256)) * 40}}
    client.put_item(TableName=fresh_moto_table.name, Item=item)

    page = client.scan(TableName=fresh_moto_table.name)

    assert page["Items"] == [item]
    assert page["Items"] == fresh_moto_table.client.scan(TableName=fresh_moto_table.name)["Items"]


def test_dynalite_can_be_the_upstream(dynalite_endpoint: str) -> None:
    with FaultProxy(dynalite_endpoint) as proxy, closing(client_for(proxy.endpoint)) as client:
        assert client.list_tables()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_the_connection_outlives_calls_and_errors_but_not_a_reset(
    proxy: FaultProxy, client: DynamoDBClient, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="urllib3.connectionpool"):
        proxy.script(Rule("PutItem", THROTTLED, at={2}), Rule("PutItem", Reset(), at={3}))
        seen = [outcome(client, table) for _ in range(5)]

    assert seen == ["ok", THROTTLED.code, "ok", "ConnectionClosedError", "ok"]
    assert sum("Starting new" in text or "Resetting dropped" in text for text in caplog.messages) == 2


def test_the_calls_are_recorded_with_what_became_of_them(proxy: FaultProxy, client: DynamoDBClient, table: str) -> None:
    proxy.script(Rule("PutItem", THROTTLED, at={1}), Rule("PutItem", Reset(), at={1}))
    for _ in range(3):
        outcome(client, table)

    assert [(call.operation, call.fault, call.status) for call in proxy.calls] == [
        ("PutItem", THROTTLED, 400),
        ("PutItem", Reset(), None),
        ("PutItem", None, 200),
    ]
    assert proxy.calls[0].body["TableName"] == table


@pytest.mark.parametrize("rules", [[], [Rule(ANY, THROTTLED)]], ids=["in a reply", "in an error"])
def test_the_date_is_what_the_test_says(proxy: FaultProxy, client: DynamoDBClient, table: str, rules: list[Rule]) -> None:
    proxy.script(*rules)
    proxy.date = lambda: datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)

    try:
        headers = put(client, table)["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as refused:
        headers = refused.response["ResponseMetadata"]["HTTPHeaders"]

    assert email.utils.parsedate_to_datetime(headers["date"]) == datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_many_clients_at_once_each_get_their_own_reply(proxy: FaultProxy, fresh_moto_table: FreshTable) -> None:
    with closing(client_for(proxy.endpoint)) as client, ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda number: _put_and_get(client, fresh_moto_table.name, str(number)), range(64)))

    assert replies == [str(number) for number in range(64)]


def _put_and_get(client: DynamoDBClient, table: str, task_id: str) -> str:
    put(client, table, task_id)
    item: dict[str, Any] = client.get_item(TableName=table, Key={"taskId": {"S": task_id}})["Item"]
    return str(item["taskId"]["S"])


def test_an_upstream_that_is_gone_is_a_closed_connection(table: str) -> None:
    with (
        FaultProxy("http://127.0.0.1:9") as proxy,
        closing(client_for(proxy.endpoint)) as client,
        pytest.raises(HTTPClientError),
    ):
        put(client, table)
