"""``docs/settings.md``, from the dataclasses that declare the settings and the command line that takes some as flags."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from scripts.reference.markdown import code, page, table
from thunderagent.agent.events import ERROR_CHARS
from thunderagent.agent.handler import TypeSettings
from thunderagent.cli.agent import run
from thunderagent.log import VARIABLE
from thunderagent.settings import AgentSettings, QueueSettings, TableSettings, base_type, environment_variable

_INTRODUCTION = """# Settings

A setting is given as a flag of a command or as an argument of its dataclass in Python; else it is read from the
environment; else it has its default. An environment variable that is empty counts as not set. A value that is out of its
bounds, or not of its type, ends the program with an error that names the setting. Times are in seconds, unless a unit is
named."""

_TYPES = """Each task type can have settings of its own; what they leave open, the agent's settings decide. In code they are
given with the handler: `@router.task("report", timeout=600, slots=2)`. Where an agent is run they are given as
JSON, which wins over the code: `THUNDERAGENT_TYPES='{"report": {"timeout": 900}}'`. In the file of a pool they
stand under `spec.agent.taskTypes`: see [the fields of a pool](pool.md)."""

_LOG_LINES = f"""Every program writes its log to stderr: text that a person reads, or with `{VARIABLE}=json` one JSON object a
line. Each has `time`, `level`, `logger` and `event`, and a line about a task `task_id`, `task_type`, `pool`, `owner`, `status`,
`retry`, `wait_s`, `run_s` and `error`, as far as they are known. Neither payloads nor results are written to it; the message
of an exception that a handler raised is, cut to {ERROR_CHARS} characters."""

_NOUNS = {str: "text", int: "whole number", float: "number"}

Field = dataclasses.Field[Any]


def settings_page() -> str:
    """The page."""
    flags = _flags(run)
    return page(
        "thunderagent/settings.py",
        _INTRODUCTION,
        *_section("The task table", TableSettings, "For every program that speaks to the table.", flags),
        *_section("An agent", AgentSettings, "Flags of `thunderagent agent run`.", flags),
        *_section("An application", QueueSettings, "For `TaskQueue`, beside those of the table.", {}),
        "## Log lines",
        _LOG_LINES,
        "## One task type",
        _TYPES,
        table(("Setting", "Type", "Bounds", "Meaning"), _type_rows()),
    )


def _section(title: str, settings: type, introduction: str, flags: Mapping[str, str]) -> tuple[str, str, str]:
    kinds = typing.get_type_hints(settings)
    rows = (
        (
            _names(field, flags.get(field.name)),
            _NOUNS[base_type(kinds[field.name])],
            _default(field.default),
            _bounds(field),
            field.metadata["doc"],
        )
        for field in dataclasses.fields(settings)
    )
    heading = f"## {title}: `{settings.__name__}`"
    return heading, introduction, table(("Setting, variable, flag", "Type", "Default", "Bounds", "Meaning"), rows)


def _names(field: Field, flag: str | None) -> str:
    names = [field.name, environment_variable(field), *([] if flag is None else [flag])]
    return "<br>".join(map(code, names))


def _flags(command: click.Command) -> dict[str, str]:
    """The flags that a command takes, by the names of their settings."""
    return {param.name: param.opts[0] for param in command.params if isinstance(param, click.Option) and param.name}


def _default(value: object) -> str:
    if value in (None, ""):
        return ""
    return code(f"{value:g}" if isinstance(value, float) else value)


def _type_rows() -> Iterator[Sequence[str]]:
    kinds = typing.get_type_hints(TypeSettings)
    for field in dataclasses.fields(TypeSettings):
        yield code(field.name), _NOUNS[base_type(kinds[field.name])], _bounds(field), field.metadata["doc"]


def _bounds(field: Field) -> str:
    """The bounds that a setting declares, in words."""
    above, least, most = (field.metadata[key] for key in ("above", "minimum", "maximum"))
    if least is not None and most is not None:
        return f"{least} to {most}"
    words = {"above": above, "at least": least, "at most": most}
    return ", ".join(f"{word} {value}" for word, value in words.items() if value is not None)
