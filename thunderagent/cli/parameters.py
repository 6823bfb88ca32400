"""What commands accept: the kinds of their arguments, and the options that all of them share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import click

from thunderagent.errors import InvalidInput
from thunderagent.settings import TableSettings, environment_variable
from thunderagent.task import Status
from thunderagent.times import parse_moment, parse_span

F = TypeVar("F", bound=Callable[..., Any])

Where = Mapping[str, str | None]
"""Which table: the flags of :func:`table_options` that were given, by the names of their settings."""

TABLE_OPTIONS = ("table", "index", "region", "endpoint")


class _Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click alone
    """A kind of argument that a function reads from text; its InvalidInput is told as wrong usage."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except InvalidInput as error:
            self.fail(str(error), param, ctx)


def _task_id(text: str) -> str:
    if not text:
        raise InvalidInput("a taskId is not empty.")
    return text


def _tag(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidInput(f"{text!r} is not a tag. Write key=value.")
    return key, value


SPAN = _Parsed("span", parse_span)
"""Seconds, written as 90, 90s, 5m, 2h."""

MOMENT = _Parsed("time", parse_moment)
"""Epoch seconds, written as such or as ISO 8601 with a zone."""

TASK_ID = _Parsed("task_id", _task_id)
TAG = _Parsed("key=value", _tag)
STATUS = click.Choice([str(status) for status in Status], case_sensitive=False)


def table_options(command: F) -> F:
    """The options that say which table; the command gets them as the mapping ``where``."""
    fields = {field.name: field for field in dataclasses.fields(TableSettings)}

    @functools.wraps(command)
    def gather(**arguments: Any) -> Any:
        where: Where = {name: arguments.pop(name) for name in TABLE_OPTIONS}
        return command(**arguments, where=where)

    decorated: Callable[..., Any] = gather
    for name in reversed(TABLE_OPTIONS):
        decorated = _setting_option(fields[name])(decorated)
    return cast("F", decorated)


def _setting_option(field: dataclasses.Field[Any]) -> Callable[[F], F]:
    """The flag of a setting, its help made from the setting's declaration."""
    default = "" if field.default is None else f"; default: {field.default}"
    return click.option(
        f"--{field.name.replace('_', '-')}",
        field.name,
        help=f"{field.metadata['doc']}  [env: {environment_variable(field)}{default}]",
    )
