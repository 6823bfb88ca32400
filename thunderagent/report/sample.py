"""A sample of a local pool: what one cycle has shown, as a line of JSON. ``thunderagent pool run --samples`` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

VERSION = 1
"""Of the format. A reader leaves out lines of another one."""


class PoolSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cycle of a pool. Times in epoch seconds, ages in seconds; the counts of the backlog are None where it was not read.

    ``was`` is what ``desired`` was before the cycle. ``began`` is when the process of the pool began; since then ``tasks``,
    ``errors`` and ``waits`` count: what ended by outcome, runs that ended with an error by its name, waits by the upper bound
    of their bucket in seconds, each bucket with all below it.
    """

    sample: int
    at: float
    began: float
    pool: str
    ready: int | None = None
    waiting: int | None = None
    running: int | None = None
    expired: int | None = None
    oldest: float | None = None
    wanted: int | None = None
    was: int
    desired: int
    available: int
    starting: int
    minimum: int
    maximum: int
    reason: str
    sentence: str
    problem: str = ""
    conditions: dict[str, bool] = {}
    tasks: dict[str, float] = {}
    errors: dict[str, float] = {}
    waits: dict[str, float] = {}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A line that is no sample: its number from 1, and why."""

    line: int
    why: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PoolSample).decode


def sample_line(sample: PoolSample) -> bytes:
    """The line of a sample, with its end."""
    return _encode(sample) + b"\n"


def read_samples(lines: Iterable[bytes]) -> tuple[list[PoolSample], list[LeftOut]]:
    """The samples among the lines, in the order of their times, and what of the lines is none."""
    samples: list[PoolSample] = []
    left_out: list[LeftOut] = []
    for number, line in enumerate(lines, 1):
        read = _read(line)
        if isinstance(read, PoolSample):
            samples.append(read)
        else:
            left_out.append(LeftOut(number, read))
    return sorted(samples, key=lambda each: each.at), left_out


def _read(line: bytes) -> PoolSample | str:
    """The sample of a line, or why it is none."""
    try:
        sample = _decode(line)
    except msgspec.ValidationError as error:
        return f"it is no sample of a pool: {error}"
    except (msgspec.DecodeError, UnicodeDecodeError):
        torn = not line.endswith(b"\n")
        return "it is torn: the pool was writing it, or was killed" if torn else "it is no JSON"
    return sample if sample.sample == VERSION else f"its format is {sample.sample}, and this version reads {VERSION}"
