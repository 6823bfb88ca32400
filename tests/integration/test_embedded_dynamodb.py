"""The embedded DynamoDB as its users meet it: a claim is won once, a connection is kept, an error says what to do."""

from __future__ import annotations

import email.utils
import http.client
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from tests.standins.aws import INDEX, FreshTable, client_for, create_task_table
from thunderagent.errors import InvalidInput
from thunderagent.local.dynamodb import EmbeddedDynamoDB

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

RACERS = 6
ROUNDS = 60


@pytest.fixture
def embedded() -> Iterator[EmbeddedDynamoDB]:
    with EmbeddedDynamoDB() as dynamodb:
        yield dynamodb


# --- claims --------------------------------------------------------------------------------------------------------


def test_of_agents_that_race_for_a_task_exactly_one_wins(standin_endpoint: str) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(client_for(standin_endpoint))) for _ in range(RACERS)]
        table = create_task_table(clients[0])
        race = _Race(clients, table)
        with ThreadPoolExecutor(RACERS) as pool:
            winners = [race.run(pool, f"task-{number}") for number in range(ROUNDS)]

    assert winners == [1] * ROUNDS


class _Race:
    """Claims of one PENDING task by several clients that start at the same moment."""

    def __init__(self, clients: list[DynamoDBClient], table: str) -> None:
        self._clients = clients
        self._table = table
        self._start = threading.Barrier(len(clients))

    def run(self, pool: ThreadPoolExecutor, task_id: str) -> int:
        """The number of clients whose claim went through."""
        item = {"taskId": {"S": task_id}, "status": {"S": "PENDING"}, "createdAt": {"N": "1"}}
        self._clients[0].put_item(TableName=self._table, Item=item)
        return sum(pool.map(lambda client: self._claim(client, task_id), self._clients))

    def _claim(self, client: DynamoDBClient, task_id: str) -> bool:
        self._start.wait()
        try:
            client.update_item(
                TableName=self._table,
                Key={"taskId": {"S": task_id}},
                UpdateExpression="SET #status = :running",
                ConditionExpression="#status = :pending",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={":running": {"S": "RUNNING"}, ":pending": {"S": "PENDING"}},
            )
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True


def test_a_new_table_has_the_index_of_the_published_format(fresh_table: FreshTable) -> None:
    client, name = fresh_table
    for number in (3, 1, 2):
        item = {"taskId": {"S": str(number)}, "status": {"S": "PENDING"}, "createdAt": {"N": str(number)}}
        client.put_item(TableName=name, Item=item)

    page = client.query(
        TableName=name,
        IndexName=INDEX,
        KeyConditionExpression="#status = :pending",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":pending": {"S": "PENDING"}},
    )

    assert [item["taskId"]["S"] for item in page["Items"]] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("lock_time", "claimed"),
    [
        pytest.param(None, True, id="absent: claimed"),
        pytest.param({"N": "99"}, True, id="a number below: claimed"),
        pytest.param({"N": "101"}, False, id="a number above: not claimed"),
        pytest.param({"N": "9.9E+1"}, True, id="a number in another spelling: claimed"),
        pytest.param({"S": "99"}, False, id="a string: not claimed"),
        pytest.param({"BOOL": True}, False, id="a boolean: not claimed"),
        pytest.param({"NULL": True}, False, id="null: not claimed"),
        pytest.param({"L": []}, False, id="a list: not claimed"),
    ],
)
def test_a_condition_compares_only_what_is_of_one_type(
    fresh_table: FreshTable, lock_time: dict[str, Any] | None, claimed: bool
) -> None:
    client, name = fresh_table
    lock = {} if lock_time is None else {"lockTime": lock_time}
    client.put_item(TableName=name, Item={"taskId": {"S": "1"}, **lock})

    assert _claim_when_due(client, name) is claimed


def _claim_when_due(client: DynamoDBClient, table: str) -> bool:
    try:
        client.update_item(
            TableName=table,
            Key={"taskId": {"S": "1"}},
            UpdateExpression="SET lockOwner = :owner",
            ConditionExpression="attribute_not_exists(lockTime) OR lockTime <= :now",
            ExpressionAttributeValues={":owner": {"S": "me"}, ":now": {"N": "100"}},
        )
    except client.exceptions.ConditionalCheckFailedException:
        return False
    return True


# --- connections ---------------------------------------------------------------------------------------------------


def test_each_reply_says_what_time_it_is(embedded: EmbeddedDynamoDB) -> None:
    with closing(client_for(embedded.endpoint)) as client:
        before = datetime.now(UTC)
        reply = client.list_tables()
        after = datetime.now(UTC)

    date = email.utils.parsedate_to_datetime(reply["ResponseMetadata"]["HTTPHeaders"]["date"])
    assert before - timedelta(seconds=1) < date <= after  # whole seconds, rounded down


def test_a_client_keeps_its_connection_from_call_to_call(embedded: EmbeddedDynamoDB, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="urllib3.connectionpool"), closing(client_for(embedded.endpoint)) as client:
        for _ in range(5):
            client.list_tables()
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.describe_table(TableName="no-such-table")
        client.list_tables()

    opened = [text for text in caplog.messages if "Starting new" in text or "Resetting dropped" in text]
    assert len(opened) == 1


def test_nothing_is_printed_for_a_call(embedded: EmbeddedDynamoDB, capfd: pytest.CaptureFixture[str]) -> None:
    with closing(client_for(embedded.endpoint)) as client:
        client.list_tables()

    assert capfd.readouterr() == ("", "")


def test_a_request_without_a_length_is_refused(embedded: EmbeddedDynamoDB) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", embedded.port)) as connection:
        connection.putrequest("POST", "/")
        connection.endheaders()

        assert connection.getresponse().status == 411


def test_half_a_call_gets_no_answer(embedded: EmbeddedDynamoDB) -> None:
    with socket.create_connection(("127.0.0.1", embedded.port), timeout=5) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n{")
        connection.shutdown(socket.SHUT_WR)

        assert connection.recv(1) == b""


# --- who sees what --------------- ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access_key", "region"),
    [
        pytest.param("AKIAIOSFODNN7EXAMPLE", "eu-central-1", id="another access key"),
        pytest.param("testing", "us-west-2", id="another region"),
        pytest.param("testing", "local", id="a region that AWS does not have"),
    ],
)
def test_every_client_sees_the_same_tables(embedded: EmbeddedDynamoDB, access_key: str, region: str) -> None:
    with (
        closing(client_for(embedded.endpoint)) as one,
        closing(client_for(embedded.endpoint, access_key=access_key, region=region)) as other,
    ):
        name = create_task_table(one)

        assert other.list_tables()["TableNames"] == [name]


def test_two_instances_in_one_process_do_not_see_each_other_s_tables(embedded: EmbeddedDynamoDB) -> None:
    with EmbeddedDynamoDB() as second, closing(client_for(embedded.endpoint)) as one:
        create_task_table(one)
        with closing(client_for(second.endpoint)) as other:
            assert other.list_tables()["TableNames"] == []


# --- starting and stopping -----------------------------------------------------------------------------------------


def test_nothing_is_kept_over_a_stop() -> None:
    dynamodb = EmbeddedDynamoDB()
    for _ in range(2):
        dynamodb.start()
        with closing(client_for(dynamodb.endpoint)) as client:
            assert client.list_tables()["TableNames"] == []
            create_task_table(client)
        dynamodb.stop()


def test_stopping_closes_a_connection_that_waits_for_its_next_call() -> None:
    before = threading.active_count()
    dynamodb = EmbeddedDynamoDB()
    dynamodb.start()
    with closing(client_for(dynamodb.endpoint)) as client:
        client.list_tables()
        dynamodb.stop()

        with pytest.raises(EndpointConnectionError):
            client.list_tables()
    assert threading.active_count() == before


def test_calls_that_are_being_answered_when_it_stops_are_answered_or_refused_whole() -> None:
    dynamodb = EmbeddedDynamoDB()
    dynamodb.start()
    with closing(client_for(dynamodb.endpoint)) as client, ThreadPoolExecutor(4) as pool:
        name = create_task_table(client)
        busy = [pool.submit(_put_until_refused, client, name) for _ in range(4)]
        dynamodb.stop()

        refusals = [type(future.result()) for future in busy]
    assert ClientError not in refusals


def _put_until_refused(client: DynamoDBClient, name: str) -> Exception:
    while True:
        try:
            client.put_item(TableName=name, Item={"taskId": {"S": "1"}})
        except Exception as refused:
            return refused


def test_stopping_twice_or_before_a_start_does_nothing() -> None:
    dynamodb = EmbeddedDynamoDB()
    dynamodb.stop()
    dynamodb.start()
    dynamodb.stop()
    dynamodb.stop()


def test_a_second_start_is_an_error(embedded: EmbeddedDynamoDB) -> None:
    with pytest.raises(RuntimeError, match="started already"):
        embedded.start()


@pytest.mark.parametrize("ask", [lambda it: it.port, lambda it: it.endpoint], ids=["port", "endpoint"])
def test_before_the_start_there_is_no_port(ask: Callable[[EmbeddedDynamoDB], Any]) -> None:
    with pytest.raises(RuntimeError, match="before start"):
        ask(EmbeddedDynamoDB())


def test_a_port_that_is_taken_is_named_in_the_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=rf"127\.0\.0\.1:{port}: .*in use.*choose another"):
            EmbeddedDynamoDB(port=port).start()


@pytest.mark.parametrize(
    ("host", "port"),
    [
        pytest.param("192.0.2.1", 0, id="an address of another machine"),
        pytest.param("127.0.0.1", 70_000, id="a port above 65535"),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_named_in_the_error(host: str, port: int) -> None:
    with pytest.raises(InvalidInput, match=f"{host}:{port}"):
        EmbeddedDynamoDB(host=host, port=port).start()


@pytest.mark.parametrize("package", ["moto", "flask"])
def test_without_the_extra_the_error_says_how_to_install_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "moto"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(InvalidInput, match=rf"needs the package {package}.*pip install 'thunderagent\[local\]'"):
        EmbeddedDynamoDB().start()
