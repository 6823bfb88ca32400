"""What an agent and its children say to each other: frames over a socket, each a length and one pickled value.

Both ends are this program and the child runs as the same user, so pickle is safe here; it keeps bytes, Decimal and sets whole.
A child sends only plain types and the classes below: one that a handler made (a text that is an enum, a float of numpy) goes
as what it is made of, so that no code of a handler's is imported where leases are renewed. A frame that cannot be read ends the
child, never the agent.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
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
    buffer = io.BytesIO()
    _Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    body = buffer.getbuffer()
    return HEADER.pack(len(body)) + body


def body_size(header: bytes) -> int:
    """Bytes of the body that follows a header. Raises ValueError for a length that no frame has."""
    (size,) = HEADER.unpack(header)
    if size > FRAME_BYTES:
        raise ValueError(f"a frame of {size} bytes")
    return int(size)


def unpack(body: bytes) -> Any:
    return _Unpacker(io.BytesIO(body)).load()


_OURS = "thunderagent."
_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: bytes.__bytes__,
}
_TAKEN = frozenset({("decimal", "Decimal"), *(("builtins", kind.__name__) for kind in (*_PLAIN, bytearray, set, frozenset))})


class _Packer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if not kind.__module__.startswith(_OURS):
            for base, plain in _PLAIN.items():
                if issubclass(kind, base):
                    return base, (plain(value),)
        return (kind, (value.value,)) if issubclass(kind, Enum) else NotImplemented


class _Unpacker(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_OURS) or (module, name) in _TAKEN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is neither plain nor ours")
