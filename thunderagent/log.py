"""Log lines as events with fields, so that a person can read them and a program can too."""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from typing import Any

FORMAT = "%(asctime)s %(levelname)s %(message)s"


FLUSH = 2.0
"""Seconds at the end of a process in which lines may still be written."""


def set_up(format: str = FORMAT) -> None:
    """Send this process's log to stderr. botocore's own INFO lines say nothing that a user of ours needs."""
    logging.basicConfig(level=logging.INFO, format=format, stream=sys.stderr)
    logging.getLogger("botocore").setLevel(logging.WARNING)


@contextmanager
def in_background() -> Iterator[None]:
    """Have a thread of its own write the lines: a reader of stderr that does not read must not stop who renews leases."""
    root = logging.getLogger()
    writers = root.handlers[:]
    lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    listener = QueueListener(lines, *writers)
    listener.start()
    root.handlers = [QueueHandler(lines)]
    try:
        yield
    finally:
        root.handlers = writers
        flush = threading.Thread(target=listener.stop, daemon=True)
        flush.start()
        flush.join(FLUSH)


def say(logger: logging.Logger, level: int, event: str, **fields: Any) -> None:
    """Log an event and its fields as ``event key=value ...``; the fields also stand on the record as ``fields``."""
    if logger.isEnabledFor(level):
        present = {key: value for key, value in fields.items() if value is not None}
        logger.log(
            level,
            "%s",
            " ".join([event, *(f"{key}={_text(value)}" for key, value in present.items())]),
            extra={"fields": present},
        )


def _text(value: object) -> str:
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return text if text.split() == [text] else repr(text)
