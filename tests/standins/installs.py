"""Stand-ins that are installed once, each into a folder of the repository that git ignores."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_CACHE = Path(__file__).parents[2] / ".cache" / "standins"


def install_once(name: str, install: Callable[[Path], None]) -> Path:
    """The folder of this name, filled by ``install`` on the first call. Safe from several processes."""
    folder = _CACHE / name
    _CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(_CACHE / "lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=_CACHE) as scratch:
                unfinished = Path(scratch) / name
                install(unfinished)
                unfinished.rename(folder)  # the last step: what exists under this name is complete
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file at ``path`` for this process alone; the kernel lets go of it even if the process is killed."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
