"""dynalite, a DynamoDB written in JavaScript: a second opinion beside moto, with code that shares nothing with it.

Its index knows an item by the key of the index and 24 bits of the hash of the item's own key. So of some hundred items with one
createdAt two may, once in some thousand tables, share an entry, and one of them is never found.

It is installed with npm at the versions of ``package-lock.json``, once for each state of that file, into a folder of
the repository that git ignores.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.standins.installs import install_once

_HERE = Path(__file__).parent
_MANIFEST = ("package.json", "package-lock.json")
_NODE_MAJOR = 20  # dynalite 4's own minimum
_INSTALL_SECONDS = 300
_STOP_SECONDS = 10


class StandInUnavailable(Exception):
    """The stand-in cannot be run on this machine; the text says why."""


def available() -> str | None:
    """Why dynalite cannot be run here, or None if node and npm are there and new enough."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            return f"dynalite needs {program}, which is not on the PATH"
    version = _output("node", "--version").lstrip("v")
    if int(version.partition(".")[0]) < _NODE_MAJOR:
        return f"dynalite needs node {_NODE_MAJOR} or newer, and this is {version}"
    return None


class Dynalite:
    """One dynalite process on a free port of 127.0.0.1, holding its tables in memory, from entering to leaving.

    Entering raises :class:`StandInUnavailable` where node or npm are absent or npm cannot install.
    """

    endpoint: str
    """The ``endpoint_url`` for clients, once entered."""

    def __enter__(self) -> Self:
        reason = available()
        if reason is not None:
            raise StandInUnavailable(reason)
        package = _installed() / "node_modules" / "dynalite"
        self._process = subprocess.Popen(
            ["node", str(_HERE / "serve_dynalite.js"), str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        # It prints its port when it listens, so this line is also the sign that it answers.
        first_line = self._process.stdout.readline().strip()
        if not first_line.isdecimal():
            rest = self._stop()
            raise StandInUnavailable(f"dynalite did not start: {first_line}\n{rest}")
        self.endpoint = f"http://127.0.0.1:{first_line}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def _stop(self) -> str:
        """Stop the process and return what it printed."""
        self._process.terminate()
        try:
            return self._process.communicate(timeout=_STOP_SECONDS)[0]
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.communicate()[0]


def _installed() -> Path:
    """The folder with dynalite in it, installing it on the first call for this lock file. Safe from several processes."""
    key = hashlib.sha256(b"".join((_HERE / name).read_bytes() for name in _MANIFEST)).hexdigest()[:16]
    return install_once(f"dynalite-{key}", _install)


def _install(folder: Path) -> None:
    folder.mkdir()
    for name in _MANIFEST:
        shutil.copy(_HERE / name, folder)
    _npm(folder, "ci", "--no-audit", "--no-fund")
    # Newer npm runs the install scripts that package.json allows, older npm runs all; this covers ignore-scripts=true.
    _npm(folder, "rebuild", "--ignore-scripts=false", "classic-level")


def _npm(folder: Path, *arguments: str) -> None:
    command = ["npm", *arguments]
    try:
        subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_INSTALL_SECONDS, check=True)
    except subprocess.TimeoutExpired as slow:
        raise StandInUnavailable(f"{' '.join(command)} took more than {_INSTALL_SECONDS} s") from slow
    except subprocess.CalledProcessError as failed:
        raise StandInUnavailable(f"{' '.join(command)} failed:\n{failed.stderr.decode(errors='replace')}") from failed


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
