"""What botocore tries by itself within one call: without a count of it, a table that throttles looks merely slow.

A retry that succeeds leaves no trace in the reply but its number. Which of the attempts were refused for throughput only an
event of botocore tells, which comes after each of them in the thread of the call.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thunderagent.store.failures import is_throttling

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_EVENT = "needs-retry.dynamodb"


@dataclass(frozen=True, slots=True)
class Tried:
    """``retries``: attempts after the first. ``throttles``: those of all attempts that were refused for throughput."""

    retries: int = 0
    throttles: int = 0


class Attempts:
    """Counts the attempts of the call that each thread makes."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def watch(self, client: DynamoDBClient) -> None:
        """Be told of the attempts of a client."""
        client.meta.events.register(_EVENT, self._note)

    def begin(self) -> None:
        """The thread begins a call."""
        self._of_thread.made, self._of_thread.throttles = 0, 0

    def tried(self) -> Tried:
        """In the call that the thread has begun last."""
        return Tried(max(0, self._of_thread.made - 1), self._of_thread.throttles)

    def _note(self, response: tuple[Any, dict[str, Any]] | None = None, **_: Any) -> None:
        """After an attempt. What it returns would be taken for the time to wait, so nothing."""
        self._of_thread.made += 1
        if response is not None and is_throttling(str(response[1].get("Error", {}).get("Code", ""))):
            self._of_thread.throttles += 1
