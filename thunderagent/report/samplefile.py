"""The file of a local pool's samples: appended to, and bounded by keeping the last one beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from thunderagent.errors import InvalidInput, NoReport
from thunderagent.report.sample import LeftOut, PoolSample, read_samples, sample_line

LIMIT = 16 * 1024 * 1024
"""Bytes of the file, after which it becomes the one before and a new one begins. Both together hold some days at a cycle each
5 seconds."""


def earlier(path: Path) -> Path:
    """Where the samples before those of the file are kept."""
    return path.with_name(f"{path.name}.1")


class SampleFile:
    """Appends samples. Raises InvalidInput where the file cannot be written or holds something else."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self._path = path
        self._limit = limit
        try:
            _require_own(path)
            self._file = path.open("ab", buffering=0)
            if _is_torn(path):
                self._file.write(b"\n")  # the last process was killed while it wrote; its line must not spoil the next one
        except OSError as error:
            raise InvalidInput(f"Samples cannot be written to {path}: {error.strerror}. Name another file.") from None

    def add(self, sample: PoolSample) -> None:
        """Append one. Raises OSError, as for a full disk."""
        line = sample_line(sample)
        if self._file.tell() + len(line) > self._limit:
            self._file.close()
            self._path.replace(earlier(self._path))
            self._file = self._path.open("ab", buffering=0)
        self._file.write(line)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_file(path: Path) -> tuple[list[PoolSample], list[LeftOut]]:
    """The samples of the file and of the one before it. Raises NoReport where there is none to be read."""
    try:
        samples, left_out = read_samples(_lines(path))
        before = read_samples(_lines(earlier(path)))[0] if earlier(path).is_file() else []
    except OSError as error:
        raise NoReport(
            f"{path} cannot be read: {error.strerror}. Name a file that `pool run --samples FILE` has written."
        ) from None
    if not samples and not before:
        why = f" Line {left_out[0].line}: {left_out[0].why}." if left_out else " It is empty."
        raise NoReport(f"{path} holds no samples of a pool.{why} Name a file that `pool run --samples FILE` has written.")
    return [*before, *samples], left_out


def _require_own(path: Path) -> None:
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        first = file.readline(100_000)
    if not read_samples([first])[0]:
        raise InvalidInput(f"{path} holds something other than samples of a pool. Name another file.")


def _is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file
