"""Handlers whose own cost is known: none, and a tenth of a second of waiting."""

from __future__ import annotations

import time

from thunderagent import RunningTask

WORK_SECONDS = 0.1


def nothing(task: RunningTask) -> None:
    """End at once."""


def tenth(task: RunningTask) -> None:
    """Wait for :data:`WORK_SECONDS`, as for a slow service."""
    time.sleep(WORK_SECONDS)
