"""Running other programs, and telling what is being done and how long it took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.errors import ClusterError, CommandFailed

_LINES_SHOWN = 20


def run(*argv: str | Path, stdin: str | None = None, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a program to its end and return what it wrote to stdout.

    `env` replaces the whole environment. Raises `CommandFailed` when the program fails, `ClusterError` when it is not there.
    """
    words = [str(word) for word in argv]
    try:
        ended = subprocess.run(words, input=stdin, env=_with_sbin(env), cwd=cwd, text=True, capture_output=True, check=False)
    except FileNotFoundError as absent:
        raise ClusterError(f"{words[0]} is not on the PATH.") from absent
    if ended.returncode != 0:
        raise CommandFailed(_account(words, ended.returncode, ended.stderr or ended.stdout))
    return ended.stdout


def succeeds(*argv: str | Path, env: Mapping[str, str] | None = None) -> bool:
    """Whether a program runs and ends without an error; False too when it is not there or hangs for 20 s."""
    try:
        ended = subprocess.run([str(word) for word in argv], env=_with_sbin(env), capture_output=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0


def _with_sbin(env: Mapping[str, str] | None) -> dict[str, str]:
    """The environment, with the places of iptables, modprobe and debootstrap, which not every PATH of root has."""
    whole = dict(os.environ if env is None else env)
    whole["PATH"] = ":".join([*whole.get("PATH", os.defpath).split(":"), "/usr/local/sbin", "/usr/sbin", "/sbin"])
    return whole


def say(text: str) -> None:
    """Tell the person at the terminal something; stdout stays free for what programs read."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say what begins, and how many seconds it took once it is done."""
    say(f"{text} ...")
    began = time.monotonic()
    yield
    say(f"{text}: {time.monotonic() - began:.1f} s")


def wait_until(what: str, limit: float, holds: Callable[[], bool]) -> None:
    """Return once `holds()` is true. Raises `ClusterError`, naming `what`, when it is still false after `limit` seconds."""
    deadline = time.monotonic() + limit
    while not holds():
        if time.monotonic() > deadline:
            raise ClusterError(f"Waited {limit:.0f} s for {what}, in vain.")
        time.sleep(0.1)


def _account(words: list[str], status: int, written: str) -> str:
    last = "\n".join(f"    {line}" for line in written.strip().splitlines()[-_LINES_SHOWN:])
    return f"`{' '.join(words)}` ended with status {status}:\n{last or '    (it wrote nothing)'}"
