"""What may go wrong with a call to DynamoDB, and the rules by which a test says when it does."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

_PATIENCE_SECONDS = 30.0


class Gate:
    """Holds calls until the test lets them go, so that no test has to sleep."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._open = threading.Event()

    def wait_for_call(self) -> None:
        """Return once a call is held here. Raises TimeoutError if none comes within half a minute."""
        if not self._reached.wait(_PATIENCE_SECONDS):
            raise TimeoutError("No call has reached the gate.")

    def release(self) -> None:
        """Let go what is held, and whatever comes later."""
        self._open.set()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    def hold(self) -> None:
        """For the proxy: wait here until the test, or the proxy's end, opens the gate."""
        self._reached.set()
        self._open.wait()


# --- faults --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reset:
    """The connection is reset and the call never reaches DynamoDB."""


@dataclass(frozen=True)
class DropReply:
    """DynamoDB carries the call out, then the connection is reset: the client cannot know whether it was."""


@dataclass(frozen=True)
class Hang:
    """Nothing is answered and nothing is carried out. When the gate opens, or the proxy stops, the connection is reset."""

    gate: Gate


@dataclass(frozen=True)
class Delay:
    """The call waits at the gate on its way to DynamoDB, and goes on when it opens. The proxy's end resets it."""

    gate: Gate


@dataclass(frozen=True)
class DelayReply:
    """DynamoDB carries the call out, and the reply waits at the gate on its way back."""

    gate: Gate


@dataclass(frozen=True)
class WrongChecksum:
    """DynamoDB carries the call out, and the reply's ``x-amz-crc32`` is not that of its body.

    botocore tries such a call again. After its last try the retry mode ``standard`` hands the reply out as if it were
    sound; ``legacy`` raises ``ChecksumError``.
    """


@dataclass(frozen=True)
class Answer:
    """An error in DynamoDB's form, without asking DynamoDB.

    Attributes:
        code: As in its API reference: ``ProvisionedThroughputExceededException``, ``ExpiredTokenException``, ...
        status: The HTTP status; DynamoDB uses 400 for everything but its own failures, 500 and 503.
        message: The text beside the code.
    """

    code: str
    status: int = 400
    message: str = "This is what the test asked for."

    def body(self) -> bytes:
        """The JSON that DynamoDB would send."""
        return json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{self.code}", "message": self.message}).encode()


Fault = Reset | DropReply | Hang | Delay | DelayReply | WrongChecksum | Answer

INTERNAL_ERROR = Answer("InternalServerError", 500)
UNAVAILABLE = Answer("ServiceUnavailable", 503)
THROTTLED = Answer("ProvisionedThroughputExceededException")
TOKEN_EXPIRED = Answer("ExpiredTokenException")


def checksum(body: bytes) -> str:
    """The ``x-amz-crc32`` of a reply's body."""
    return str(zlib.crc32(body))


# --- when ----------------------------------------------------------------------------------------------------------

ANY = "*"


def _always(body: Mapping[str, Any]) -> bool:
    return True


@dataclass
class Rule:
    """One line of a script: which calls meet the fault.

    Attributes:
        operation: DynamoDB's name of the call (``UpdateItem``), or :data:`ANY`.
        fault: What happens to the calls that the rule picks.
        at: Which of the calls of this operation, counted from 1: ``{2}``, ``range(1, 4)``. None: all.
        where: Picks by the call's parameters, to tell a claim from a renewal, say. Calls that it refuses do not count.
        probability: Of those, the share that meets the fault, drawn from ``random``.
        random: Seed it, so that the test fails the same way twice.
    """

    operation: str
    fault: Fault
    at: Container[int] | None = None
    where: Callable[[Mapping[str, Any]], bool] = _always
    probability: float = 1.0
    random: Random = field(default_factory=lambda: Random(0))
    _seen: int = field(default=0, init=False)

    def picks(self, operation: str, body: Mapping[str, Any]) -> bool:
        """Whether this call meets the fault. Counts it, so ask once for each call."""
        if self.operation not in (ANY, operation) or not self.where(body):
            return False
        self._seen += 1
        if self.at is not None and self._seen not in self.at:
            return False
        return self.random.random() < self.probability


@dataclass(frozen=True)
class Call:
    """A call that the proxy has dealt with: ``status`` is what the client was answered, None if it was reset."""

    operation: str
    body: Mapping[str, Any]
    fault: Fault | None
    status: int | None
