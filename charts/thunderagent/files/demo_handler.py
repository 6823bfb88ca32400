"""The demo's handler: work that takes as many seconds as the task says."""

import time
from typing import Any


def handle(task: Any) -> dict[str, Any]:
    """Sleep, and say for how long. ``task.payload`` may have ``seconds``, 2 if it does not."""
    seconds = float(task.payload.get("seconds", 2))
    time.sleep(seconds)
    return {"slept": seconds}
