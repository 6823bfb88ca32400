"""Log lines as events with fields, so that a person can read them and a program can too."""

from __future__ import annotations

import logging
from typing import Any


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
