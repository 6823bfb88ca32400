"""Any arguments end in 0, 1 or 2, with data, or with one readable line that says what is wrong; never with a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import put_pending
from tests.hostile.inputs import SEEDED
from tests.unit.cli_world import World
from thunderagent.cli.main import main

WORDS = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                "-",
                "--",
                "-1",
                "0",
                "1",
                "9" * 400,
                "1e400",
                "nan",
                "inf",
                "-inf",
                "0x10",
                "1_0",
                "5m",
                "1h30m",
                "2026-12-31T08:00Z",
            ),
            *(
                "{}",
                "[]",
                "{",
                "null",
                '"x"',
                "5",
                '{"a": NaN}',
                '{"$float": 1}',
                '{"dependsOn": 5}',
                "[" * 9000,
                '{"a":' * 3000,
            ),
            *(
                "t-0",
                "t-1",
                "nobody",
                "x" * 3000,
                "PENDING",
                "pending",
                "json",
                "jsonl",
                "table",
                "yaml",
                "a=b",
                "=",
                "a=",
                "http://",
            ),
            *(
                "http://127.0.0.1:9",
                "ftp://x",
                "http://[",
                "http://127.0.0.1:99999",
                "/",
                ".",
                "/nowhere/at/all",
                "\0",
                "\ud800",
                "é",
                "\n",
            ),
        ]
    ),
    st.text(max_size=6),
)


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands(main))
STARTS_SOMETHING = {
    ("agent", "run"),
    ("pool", "run"),
    ("top",),
    ("demo",),
    ("dynamodb",),
    ("report",),
    ("table", "check"),
    ("table", "create"),
    ("table", "migrate"),
}
"""These would start processes, ask for a real DynamoDB, or go on until somebody stops them: their arguments alone are read."""


def arguments(command: click.Command) -> st.SearchStrategy[list[str]]:
    """Words, and the command's own options with and without values."""
    options = [name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts]
    part = st.one_of(WORDS.map(lambda word: [word]), st.tuples(st.sampled_from(options), WORDS).map(list))
    return st.lists(part, max_size=4).map(lambda parts: [word for each in parts for word in each])


OURS = settings(SEEDED, max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("path", [pytest.param(path, id=" ".join(path)) for path in ALL if path not in STARTS_SOMETHING])
@OURS
@given(data=st.data())
def test_a_command_ends_well_or_in_one_line(path: tuple[str, ...], data: st.DataObject) -> None:
    world = World()
    put_pending(world.store, "t-0", "t-1")
    given_words = data.draw(arguments(ALL[path]))

    result = world.run(*path, *given_words, input=data.draw(st.sampled_from(["", "{}\n", "{\n", "\0", "t-0\n"])))

    assert result.exit_code in {0, 1, 2}
    assert result.exit_code == 0 or is_told(result)


def is_told(result: Any) -> bool:
    """Whether the end says what was wrong, in lines that are no traceback."""
    return "error: " in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("path", [pytest.param(path, id=" ".join(path)) for path in sorted(STARTS_SOMETHING)])
@OURS
@given(data=st.data())
def test_the_arguments_of_a_command_are_read_or_refused(path: tuple[str, ...], data: st.DataObject) -> None:
    words = data.draw(arguments(ALL[path]))

    ended = 0
    try:
        ALL[path].make_context(" ".join(path), words)
    except click.ClickException as refused:
        ended = refused.exit_code if refused.format_message() else 1
    except click.exceptions.Exit as done:
        ended = done.exit_code
    assert ended in {0, 2}
