"""What an agent and its children say to each other: frames over a socket, each a length and one pickled value.

Both ends are this program and the child runs as the same user, so pickle is safe here; it keeps bytes, Decimal and sets whole.
A child sends only plain types and the classes below. A frame that cannot be read ends the child, never the agent.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thunderagent.agent.handler import RouteTable
from thunderagent.task import Outcome

HEADER = struct.Struct("!I")
FRAME_BYTES = 64 * 1024 * 1024
"""No honest frame is longer: an item has 400 KB."""


# --- from the agent to a child


@dataclass(frozen=True, slots=True)
class Start:
    """Run the task of this record."""

    run: int
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a run: set ``lease_lost``, and cancel an async handler."""

    run: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Tell a run whether its lease has ended unrenewed."""

    run: int
    lost: bool


@dataclass(frozen=True, slots=True)
class Saved:
    """Answer to a Save that waits: whether the table has it."""

    run: int
    ok: bool


@dataclass(frozen=True, slots=True)
class Exit:
    """Leave: nothing more will come."""


# --- from a child to the agent


@dataclass(frozen=True, slots=True)
class Ready:
    """The handler is imported; these are its routes."""

    routes: RouteTable


@dataclass(frozen=True, slots=True)
class Broken:
    """The handler cannot be imported."""

    reason: str


@dataclass(frozen=True, slots=True)
class Save:
    run: int
    progress: Mapping[str, Any]
    wait: bool


@dataclass(frozen=True, slots=True)
class Enqueued:
    task_id: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A run has ended; ``stopped`` where the handler ended because it was told to stop."""

    run: int
    outcome: Outcome
    stopped: bool = False


def pack(value: object) -> bytes:
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(body)) + body


def body_size(header: bytes) -> int:
    """Bytes of the body that follows a header. Raises ValueError for a length that no frame has."""
    (size,) = HEADER.unpack(header)
    if size > FRAME_BYTES:
        raise ValueError(f"a frame of {size} bytes")
    return int(size)


def unpack(body: bytes) -> Any:
    return pickle.loads(body)
