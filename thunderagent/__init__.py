"""ThunderAgent: background tasks from one DynamoDB table, run by agents that scale from zero and back.

An application imports :class:`TaskQueue`; a handler imports :class:`Router`, :class:`Done`, :class:`Fail` and :class:`Snooze`.
Names are loaded when they are first used, so that a handler's process does not pay for importing boto3.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thunderagent.agent.handler import Done, Fail, HandlerStopped, Router, RunningTask, Snooze
    from thunderagent.queue import NewTask, TaskQueue
    from thunderagent.settings import AgentSettings, QueueSettings, TableSettings
    from thunderagent.task import Status, Task

__version__ = "0.1.0"

_HOMES = {
    "AgentSettings": "thunderagent.settings",
    "Done": "thunderagent.agent.handler",
    "Fail": "thunderagent.agent.handler",
    "HandlerStopped": "thunderagent.agent.handler",
    "NewTask": "thunderagent.queue",
    "QueueSettings": "thunderagent.settings",
    "Router": "thunderagent.agent.handler",
    "RunningTask": "thunderagent.agent.handler",
    "Snooze": "thunderagent.agent.handler",
    "Status": "thunderagent.task",
    "TableSettings": "thunderagent.settings",
    "Task": "thunderagent.task",
    "TaskQueue": "thunderagent.queue",
}

__all__ = [
    "AgentSettings",
    "Done",
    "Fail",
    "HandlerStopped",
    "NewTask",
    "QueueSettings",
    "Router",
    "RunningTask",
    "Snooze",
    "Status",
    "TableSettings",
    "Task",
    "TaskQueue",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thunderagent' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
