"""How commands end, and what is common to all: exit codes, one line an error, where data and messages go, settings."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.builders import Time
from tests.unit.cli_world import Refusing, World
from thunderagent.cli.main import COMMANDS, main
from thunderagent.errors import StoreAccessDenied, StoreThrottled


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_help_is_there(name: str) -> None:
    assert f"  {name} " in CliRunner().invoke(main, ["--help"]).stdout
    assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_help_and_completion_load_neither_boto3_nor_rich() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from thunderagent.cli.main import main\n"
        "for args in (['--help'], ['task', 'enqueue', '--help'], ['table', '--help'], ['table', 'check', '--help'],\n"
        "             ['stats', '--help'], ['dynamodb', '--help']):\n"
        "    assert CliRunner().invoke(main, args).exit_code == 0\n"
        "print(sorted({'boto3', 'botocore', 'rich', 'moto', 'prometheus_client'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_shell_completes_commands() -> None:
    environment = {"_THUNDERAGENT_COMPLETE": "bash_complete", "COMP_WORDS": "thunderagent task en", "COMP_CWORD": "2"}
    result = CliRunner().invoke(main, env=environment, prog_name="thunderagent")
    assert result.output == "plain,enqueue\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["nonsense"], "No such command", id="a command that does not exist"),
        pytest.param(["task", "nonsense"], "No such command", id="a subcommand that does not exist"),
        pytest.param(["task", "get"], "Missing argument 'ID'", id="no taskId"),
        pytest.param(["task", "get", ""], "a taskId is not empty", id="an empty taskId"),
        pytest.param(["task", "wait"], "Missing argument", id="nothing to wait for"),
        pytest.param(["task", "cancel"], "Missing argument", id="nothing to cancel"),
        pytest.param(["task", "get", "x", "--colour"], "No such option", id="an option that does not exist"),
        pytest.param(["task", "get", "x", "-o", "xml"], "'xml' is not one of", id="a form that does not exist"),
        pytest.param(["task", "list", "--limit", "0"], "not in the range", id="a limit of nothing"),
        pytest.param(["task", "list", "--status", "LOST"], "'LOST' is not one of", id="a status that no task has"),
        pytest.param(["task", "wait", "x", "--timeout", "soon"], "not a time span", id="a time-out that is no span"),
        pytest.param(["task", "redrive"], "or --all-failed", id="nothing to redrive"),
        pytest.param(["task", "redrive", "x", "--all-failed"], "or --all-failed", id="one and all to redrive"),
        pytest.param(["task", "redrive", "x", "--type", "t"], "--type goes with", id="a type for one to redrive"),
        pytest.param(["stats", "-o", "jsonl"], "'jsonl' is not one of", id="lines for a single thing"),
        pytest.param(["stats", "--limit", "none"], "not a valid integer", id="a limit that is no number"),
        pytest.param(["stats", "--endpoint", "localhost:8000"], "is not a URL", id="an endpoint that is no URL"),
        pytest.param(["table", "create", "--tag", "team"], "Write key=value", id="a tag without a value"),
        pytest.param(["table", "check", "--scan", "0"], "not in the range", id="a scan of nothing"),
        pytest.param(["dynamodb", "--port", "70000"], "not in the range", id="a port that no machine has"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(world: World, arguments: list[str], words: str) -> None:
    result = world.run(*arguments)
    first, second = result.stderr.splitlines()
    assert result.exit_code == 2
    assert result.stdout == ""
    assert first.startswith("error: ")
    assert words in first
    assert second.startswith("See `thunderagent")


def test_no_command_shows_help_and_is_wrong_usage(world: World) -> None:
    result = world.run()
    assert result.exit_code == 2
    assert "Commands:" in result.output


def test_a_setting_of_the_environment_that_is_wrong_is_wrong_usage(world: World) -> None:
    world.environ["THUNDERAGENT_ATTEMPTS"] = "many"
    result = world.run("stats")
    assert result.exit_code == 2
    assert "THUNDERAGENT_ATTEMPTS is 'many'" in result.stderr


def test_flags_come_before_the_environment_and_that_before_defaults(world: World) -> None:
    world.environ |= {"THUNDERAGENT_TABLE": "from-env", "AWS_REGION": "eu-west-1", "THUNDERAGENT_ENDPOINT": "http://x:1"}
    assert world.run("stats", "--table", "from-flag", "--index", "i").exit_code == 0
    (opened,) = world.opened
    assert (opened.table, opened.index, opened.region, opened.endpoint) == ("from-flag", "i", "eu-west-1", "http://x:1")


def test_an_error_of_ours_is_one_line_and_exit_code_1(world: World) -> None:
    result = world.run("task", "get", "nope")
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: There is no task nope.")


def test_an_error_of_the_table_is_one_line_even_where_its_words_have_several(world: World) -> None:
    world.used = Refusing(world.time, StoreAccessDenied("not\nallowed \x1b[31m"))
    result = world.run("task", "enqueue")
    assert result.exit_code == 1
    assert result.stderr == "error: not\\nallowed \\x1b[31m\n"


def test_debug_shows_where_an_error_came_from(world: World) -> None:
    result = world.run("--debug", "task", "get", "nope")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "error: There is no task nope." in result.stderr


def test_ctrl_c_ends_with_130() -> None:
    class Interrupted(Time):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt

    world = World(Interrupted())
    world.run("task", "enqueue", "--id", "a")
    result = world.run("task", "wait", "a")
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"


def test_a_throttled_table_is_tried_again_and_then_told(world: World) -> None:
    world.used = Refusing(world.time, StoreThrottled("DynamoDB throttled PutItem on TaskTable"))
    result = world.run("task", "enqueue", "--id", "a")
    assert result.exit_code == 1
    assert result.stderr == "error: DynamoDB throttled PutItem on TaskTable\n"
    assert world.time.slept
