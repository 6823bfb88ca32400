"""Log lines as events with fields: text that a person can read, or a JSON object that a program can.

Every line about a task has the same keys: task_id, task_type, pool, owner, status, retry, wait_s, run_s, error, where they are
known. No line carries a payload, a result or what a handler has saved.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from logging.handlers import QueueHandler, QueueListener
from typing import Any

from thunderagent.errors import InvalidSettings

FORMAT = "%(asctime)s %(levelname)s %(message)s"

VARIABLE = "THUNDERAGENT_LOG_FORMAT"
"""The environment variable that chooses the form of the lines, in every program of ours."""

FLUSH = 2.0
"""Seconds at the end of a process in which lines may still be written."""


GATHER = 0.05
"""Seconds that a line may wait for others to be written with it."""


class LogForm(StrEnum):
    """How a line is written."""

    TEXT = "text"
    JSON = "json"


def set_up(text_format: str = FORMAT, environ: Mapping[str, str] = os.environ) -> None:
    """Send this process's log to stderr, in the form that :data:`VARIABLE` names. Raises InvalidSettings for an unknown one.

    botocore's own INFO lines say nothing that a user of ours needs.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_json_formatter() if form_named(environ) is LogForm.JSON else TextFormatter(text_format))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("botocore").setLevel(logging.WARNING)


def form_named(environ: Mapping[str, str]) -> LogForm:
    """The form that the environment asks for; text where it says nothing. Raises InvalidSettings for an unknown one."""
    name = environ.get(VARIABLE) or LogForm.TEXT
    if name not in set(LogForm):
        raise InvalidSettings(f"{VARIABLE} is {name!r}; write {' or '.join(LogForm)}.")
    return LogForm(name)


@contextmanager
def in_background() -> Iterator[None]:
    """Have a thread of its own format and write the lines: a reader of stderr that does not read must not stop who renews
    leases."""
    root = logging.getLogger()
    writers = root.handlers[:]
    lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    listener = _Writer(lines, *writers)
    listener.start()
    root.handlers = [_Handoff(lines)]
    try:
        yield
    finally:
        root.handlers = writers
        flush = threading.Thread(target=listener.stop, daemon=True)
        flush.start()
        flush.join(FLUSH)


def say(logger: logging.Logger, level: int, event: str, **fields: Any) -> None:
    """Log an event and its fields, which stand on the record as ``fields``; those that are None are left out.

    Nothing is formatted here: that is for the thread that writes the line, and not done at all where nobody listens.
    """
    if logger.isEnabledFor(level):
        logger.log(level, event, extra={"fields": {key: value for key, value in fields.items() if value is not None}})


class TextFormatter(logging.Formatter):
    """``event key=value ...`` in one line, whatever the values hold; a traceback in lines of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return super().formatMessage(record) + "".join(f" {key}={_text(value)}" for key, value in _fields(record).items())


def _json_formatter() -> logging.Formatter:
    from pythonjsonlogger.json import JsonFormatter  # noqa: PLC0415 - only who wants JSON pays for the import

    class EventFormatter(JsonFormatter):
        """One object a line: time, level, logger and event, then the fields as they are."""

        def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
            log_data["time"] = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
            log_data |= {"level": record.levelname, "logger": record.name, "event": record.getMessage()}
            log_data |= {key: _plain(value) for key, value in _fields(record).items()}
            if message_dict.get("exc_info"):
                log_data["traceback"] = message_dict["exc_info"]

    return EventFormatter(json_ensure_ascii=False)


class _Handoff(QueueHandler):
    """Hands records over as they are, to be formatted by who writes them. Only what may change meanwhile is fixed now."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        if record.args:
            record.msg, record.args = record.getMessage(), None
        return record


class _Writer(QueueListener):
    """Writes what has gathered, then lets lines gather again: a thread that wakes for each line costs more than the line."""

    def __init__(self, lines: queue.SimpleQueue[logging.LogRecord], *writers: logging.Handler) -> None:
        super().__init__(lines, *writers)
        self._lines = lines

    def dequeue(self, block: bool) -> logging.LogRecord:
        if self._lines.empty():
            time.sleep(GATHER)
        return super().dequeue(block)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _plain(value: object) -> object:
    """A value of JSON: an enum of text is its text, whatever else is unknown its ``str``."""
    if isinstance(value, bool | int):
        return value
    return round(value, 3) if isinstance(value, float) else str(value)


def _text(value: object) -> str:
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return text if text.split() == [text] else repr(text)
