"""Log lines as events with fields, so that a person can read them and a program can too."""

from __future__ import annotations

import logging
import sys
from typing import Any

FORMAT = "%(asctime)s %(levelname)s %(message)s"


def set_up(format: str = FORMAT) -> None:
    """Send this process's log to stderr. botocore's own INFO lines say nothing that a user of ours needs."""
    logging.basicConfig(level=logging.INFO, format=format, stream=sys.stderr)
    logging.getLogger("botocore").setLevel(logging.WARNING)


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
    return repr(text) if not text or any(char.isspace() for char in text) else text
