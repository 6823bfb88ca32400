"""Whole commands as a user types them: real processes against the embedded DynamoDB, and ``table`` against each stand-in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.faults.plan import THROTTLED, DropReply, Reset, Rule
from tests.faults.proxy import FaultProxy
from tests.standins.aws import INDEX, FreshTable, client_for, create_task_table
from thunderagent.cli.main import main
from thunderagent.cli.surroundings import Surroundings

THUNDERAGENT = [sys.executable, "-m", "thunderagent"]


# --- one embedded DynamoDB and a table in it, made by commands ----------------------------------------------------------


class Shell:
    """Runs ``thunderagent`` with the settings that ``thunderagent dynamodb`` printed."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.environment = os.environ | settings

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*THUNDERAGENT, *arguments], env=self.environment, **(pipes | options))

    def run(self, *arguments: str, input: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, **options) as process:
            stdout, stderr = process.communicate(input, timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


@pytest.fixture(scope="module")
def printed() -> Iterator[dict[str, str]]:
    """The settings that ``thunderagent dynamodb`` prints; SIGTERM ends it well."""
    with Shell({}).start("dynamodb", "--port", "0") as process:
        assert process.stdout is not None
        exports = [process.stdout.readline().removeprefix("export ").strip().partition("=") for _ in range(4)]
        yield {name: value for name, _, value in exports}
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0
    assert stderr.endswith("stopped\n")


@pytest.fixture
def shell(printed: dict[str, str]) -> Shell:
    """A shell with these settings, and a table of its own."""
    with closing(client_for(printed["THUNDERAGENT_ENDPOINT"], region=printed["AWS_REGION"])) as client:
        return Shell(printed | {"THUNDERAGENT_TABLE": create_task_table(client)})


def test_a_table_that_was_just_made_is_healthy(shell: Shell) -> None:
    checked = shell.run("table", "check", "--scan", "10", "--table", "fresh")
    assert checked.returncode == 1
    assert "table-missing" in checked.stdout
    assert shell.run("table", "create", "--table", "fresh", "--tag", "team=reports").stdout == "fresh\n"
    checked = shell.run("table", "check", "--scan", "10", "--table", "fresh")
    assert (checked.returncode, checked.stdout) == (0, "")
    assert checked.stderr == "Checked the table fresh and 0 of its tasks: 0 errors, 0 warnings, 0 infos.\n"


def test_a_table_that_exists_is_an_error_unless_that_was_expected(shell: Shell) -> None:
    again = shell.run("table", "create")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr.startswith(f"error: There is a table {shell.environment['THUNDERAGENT_TABLE']} already.")
    expected = shell.run("table", "create", "--if-missing")
    assert (expected.returncode, expected.stdout) == (0, f"{shell.environment['THUNDERAGENT_TABLE']}\n")
    assert "TTL is off there" in expected.stderr


def test_a_task_from_enqueue_to_redrive(shell: Shell) -> None:
    assert shell.run("task", "enqueue", '{"größe": {"$decimal": "1.10"}}', "--id", "t", "--type", "mail").stdout == "t\n"
    assert json.loads(shell.run("task", "get", "t", "-o", "json").stdout)["payload"] == {"größe": {"$decimal": "1.10"}}
    assert "t     PENDING  mail" in shell.run("task", "list").stdout
    assert float(json.loads(shell.run("stats", "-o", "json").stdout)["readUnits"]) > 0
    assert shell.run("task", "cancel", "t", "--reason", "not now").stdout == "t\n"
    waited = shell.run("task", "wait", "t")
    assert (waited.returncode, waited.stdout) == (1, "t  FAILED  Cancelled: not now\n")
    assert shell.run("task", "redrive", "--all-failed").stdout == "t\n"
    late = shell.run("task", "wait", "t", "--timeout", "0")
    assert (late.returncode, late.stdout) == (1, "")


def test_many_from_a_file(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps({"taskId": f"m{number}", "payload": {}, "delay": "1h"}) + "\n" for number in range(450)))
    first = shell.run("task", "enqueue", f"@{file}", "--many")
    assert (first.returncode, first.stderr) == (0, "450 enqueued, 0 existing, 0 failed\n")
    again = shell.run("task", "enqueue", f"@{file}", "--many", "-o", "jsonl")
    assert {json.loads(line)["state"] for line in again.stdout.splitlines()} == {"existing"}


def test_a_reader_that_goes_away_ends_the_command_quietly(shell: Shell) -> None:
    shell.run("task", "enqueue", "--id", "first")
    with shell.start("task", "list", "-o", "jsonl") as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=60)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.parametrize("arguments", [("task", "list"), ("--help",)], ids=["a command's data", "the help"])
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["written at the end", "written at once"])
def test_a_full_disk_is_told(shell: Shell, arguments: tuple[str, ...], unbuffered: str) -> None:
    buffered = Shell(shell.environment | {"PYTHONUNBUFFERED": unbuffered})
    with Path("/dev/full").open("w") as full:
        listed = buffered.run(*arguments, stdout=full)
    assert listed.returncode == 1
    assert listed.stderr == "error: [Errno 28] No space left on device\n"


def test_ctrl_c_while_waiting(shell: Shell) -> None:
    shell.run("task", "enqueue", "--id", "slow")
    shell.run("task", "enqueue", "--id", "quick")
    shell.run("task", "cancel", "quick")
    with shell.start("task", "wait", "quick", "slow") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "quick  FAILED  Cancelled: Cancelled on request.\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "interrupted\n")
    assert process.returncode == 130


def test_an_output_without_unicode_gets_escapes(shell: Shell) -> None:
    shell.run("task", "enqueue", '{"a": "€"}', "--id", "größe-in-€")
    old = Shell(shell.environment | {"PYTHONIOENCODING": "latin-1"})
    assert "größe-in-\\u20ac" in old.run("task", "list", encoding="latin-1").stdout
    shown = old.run("task", "list", "-o", "json", encoding="latin-1").stdout
    assert json.loads(shown)[0]["payload"] == {"a": "€"}


def test_a_port_that_is_taken_is_told(shell: Shell) -> None:
    port = shell.environment["THUNDERAGENT_ENDPOINT"].rpartition(":")[2]
    taken = shell.run("dynamodb", "--port", port)
    assert (taken.returncode, taken.stdout) == (1, "")
    (line,) = taken.stderr.splitlines()
    assert line.startswith(f"error: The embedded DynamoDB cannot listen on 127.0.0.1:{port}")


# --- table create and check, in this process ----------------------------------------------------------------------------


def run(endpoint: str, *arguments: str, wall: float = 0.0) -> Result:
    """Run a command against a stand-in; this machine's clock is ``wall`` seconds off, and nothing sleeps."""
    surroundings = Surroundings(sleep=lambda _: None, wall=lambda: datetime.now(UTC).timestamp() + wall)
    return CliRunner().invoke(
        main, [*arguments, "--endpoint", endpoint], obj=surroundings, prog_name="thunderagent", catch_exceptions=False
    )


def codes(endpoint: str, table: str, *arguments: str, wall: float = 0.0) -> tuple[int, list[str]]:
    """The exit code of a check, and the codes of what it found."""
    result = run(endpoint, "table", "check", "--table", table, *arguments, "-o", "json", wall=wall)
    return result.exit_code, [finding["code"] for finding in json.loads(result.stdout)["findings"]]


@pytest.mark.parametrize("arguments", [["stats"], ["task", "get", "t"], ["table", "create"], ["table", "check"]], ids=" ".join)
def test_a_table_that_cannot_be_reached_is_one_line(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THUNDERAGENT_ATTEMPTS", "1")
    refused = run("http://127.0.0.1:9", *arguments)
    assert (refused.exit_code, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith("error: ")
    assert "http://127.0.0.1:9" in line


def test_tables_are_made_on_every_stand_in(standin_endpoint: str) -> None:
    created = run(standin_endpoint, "table", "create", "--table", "made-by-the-command")
    assert created.exit_code == 0
    assert created.stdout == "made-by-the-command\n"
    has_ttl = "This DynamoDB has no TTL" not in created.stderr
    assert codes(standin_endpoint, "made-by-the-command") == ((0, []) if has_ttl else (1, ["ttl-off"]))


def test_a_table_is_protected_and_tagged(fresh_moto_table: FreshTable, moto_endpoint: str) -> None:
    arguments = ["--deletion-protection", "--tag", "team=reports", "--tag", "stage=test=1"]
    assert run(moto_endpoint, "table", "create", "--table", "protected", *arguments).exit_code == 0
    table = fresh_moto_table.client.describe_table(TableName="protected")["Table"]
    assert table["DeletionProtectionEnabled"] is True
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    tags = fresh_moto_table.client.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"team": "reports", "stage": "test=1"}
    ttl = fresh_moto_table.client.describe_time_to_live(TableName="protected")["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "expiresAt")


def make(
    table: FreshTable, name: str, *, index_range: str = "createdAt", range_type: str = "N", projection: Any = "ALL"
) -> None:
    """A table that differs from the published format in the index."""
    table.client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "taskId", "AttributeType": "S"},
            {"AttributeName": "status", "AttributeType": "S"},
            {"AttributeName": index_range, "AttributeType": "N" if range_type == "N" else "S"},
        ],
        KeySchema=[{"AttributeName": "taskId", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": INDEX,
                "KeySchema": [
                    {"AttributeName": "status", "KeyType": "HASH"},
                    {"AttributeName": index_range, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": projection},
            }
        ],
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({"index_range": "updatedAt"}, "index-keys-wrong", id="the index is over updatedAt"),
        pytest.param({"range_type": "S"}, "index-key-type-wrong", id="createdAt is text"),
        pytest.param({"projection": "KEYS_ONLY"}, "index-projection-wrong", id="the index projects keys alone"),
    ],
)
def test_a_table_that_is_not_of_the_format(
    fresh_moto_table: FreshTable, moto_endpoint: str, changes: dict[str, Any], code: str, request: pytest.FixtureRequest
) -> None:
    name = f"odd-{code}"
    make(fresh_moto_table, name, **changes)
    exit_code, found = codes(moto_endpoint, name)
    assert exit_code == 1
    assert code in found
    assert "ttl-off" in found


def test_another_index_is_suggested(fresh_moto_table: FreshTable, moto_endpoint: str) -> None:
    checked = run(moto_endpoint, "table", "check", "--table", fresh_moto_table.name, "--index", "by-status")
    assert checked.exit_code == 1
    assert f"use --index {INDEX}" in checked.stdout


def put(table: FreshTable, task_id: str, **attributes: Any) -> None:
    now = int(datetime.now(UTC).timestamp())
    record: dict[str, Any] = {
        "status": {"S": "PENDING"},
        "payload": {"M": {}},
        "createdAt": {"N": str(now - 1000)},
        "updatedAt": {"N": str(now - 1000)},
        "retryCount": {"N": "0"},
        "maxRetry": {"N": "3"},
    }
    table.client.put_item(TableName=table.name, Item={"taskId": {"S": task_id}} | record | attributes)


def waits_for(*task_ids: str) -> dict[str, Any]:
    ids = {"L": [{"S": task_id} for task_id in task_ids]}
    return {"payload": {"M": {"dependsOn": ids}}, "waitingFor": ids}


def test_tasks_are_looked_at_within_the_limit(fresh_moto_table: FreshTable, moto_endpoint: str) -> None:
    put(fresh_moto_table, "chain-0", **waits_for("chain-1"))
    put(fresh_moto_table, "chain-1", **waits_for("chain-2"), createdAt={"N": "2000000000"})
    put(fresh_moto_table, "chain-2", **waits_for("chain-0"), createdAt={"N": "2000000001"})
    put(fresh_moto_table, "odd", status={"S": "queued"})
    exit_code, found = codes(moto_endpoint, fresh_moto_table.name, "--limit", "1")
    assert exit_code == 1
    assert "cut" in found
    assert "dependency-cycle" not in found, "two of its tasks are beyond the limit"
    exit_code, found = codes(moto_endpoint, fresh_moto_table.name, "--scan", "100")
    assert {"dependency-cycle", "not-a-task"} <= set(found)


@pytest.fixture
def proxy(moto_endpoint: str) -> Iterator[FaultProxy]:
    with FaultProxy(moto_endpoint) as proxy:
        yield proxy


def test_throttling_is_told_although_the_check_gets_through(fresh_moto_table: FreshTable, proxy: FaultProxy) -> None:
    proxy.script(Rule("Query", THROTTLED, at={1, 3}))
    _, found = codes(proxy.endpoint, fresh_moto_table.name)
    assert "throttled" in found


def test_a_partition_that_stays_throttled_is_cut_and_the_rest_is_read(fresh_moto_table: FreshTable, proxy: FaultProxy) -> None:
    proxy.script(Rule("Query", THROTTLED, where=lambda body: body["ExpressionAttributeValues"][":status"]["S"] == "DONE"))
    checked = run(proxy.endpoint, "table", "check", "--table", fresh_moto_table.name, "-o", "json")
    assert checked.exit_code == 1
    read = json.loads(checked.stdout)["read"]
    assert (read["DONE"]["cut"], read["FAILED"]["cut"]) == (True, False)


def test_a_lost_reply_does_not_end_a_check(fresh_moto_table: FreshTable, proxy: FaultProxy) -> None:
    proxy.script(Rule("DescribeTable", Reset(), at={1}), Rule("Query", DropReply(), at={2}))
    assert codes(proxy.endpoint, fresh_moto_table.name) == (1, ["ttl-off"])


@pytest.mark.parametrize(
    ("machine", "found"),
    [(0.0, False), (3.0, False), (30.0, True), (-30.0, True)],
    ids=["in time", "a little ahead", "far ahead", "far behind"],
)
def test_this_machines_clock_is_held_against_dynamodbs(
    fresh_moto_table: FreshTable, moto_endpoint: str, machine: float, found: bool
) -> None:
    assert ("clock-offset" in codes(moto_endpoint, fresh_moto_table.name, wall=machine)[1]) is found


def test_the_clock_that_counts_is_that_of_the_replies(fresh_moto_table: FreshTable, proxy: FaultProxy) -> None:
    proxy.date = lambda: datetime.now(UTC) + timedelta(hours=1)
    assert "clock-offset" in codes(proxy.endpoint, fresh_moto_table.name)[1]
    assert "clock-offset" not in codes(proxy.endpoint, fresh_moto_table.name, wall=3600)[1]
