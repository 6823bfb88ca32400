"""ministack, another DynamoDB written in Python: atomic, and three times as fast as moto's server, so the benchmarks use it
where moto's would be what is measured.

It pins a botocore of its own, so it lives in a virtual environment of its own, made once for each state of its requirements.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.standins.dynalite import StandInUnavailable
from tests.standins.installs import install_once
from tests.standins.ports import free_ports

_REPOSITORY = Path(__file__).parents[2]
_REQUIREMENTS = _REPOSITORY / "requirements" / "ministack.txt"
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0


class Ministack:
    """One ministack process on a free port of 127.0.0.1, holding its tables in memory, from entering to leaving.

    Entering raises :class:`StandInUnavailable` where it cannot be installed or does not start.
    """

    endpoint: str
    """The ``endpoint_url`` for clients, once entered."""

    def __enter__(self) -> Self:
        program = _installed() / "bin" / "ministack"
        (port,) = free_ports(1)
        settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "dynamodb", "IOT_MQTT_ENABLED": "0"}
        self._process = subprocess.Popen(
            [program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | settings
        )
        self.endpoint = f"http://127.0.0.1:{port}"
        try:
            self._wait_until_listening(port)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def _wait_until_listening(self, port: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise StandInUnavailable(f"ministack did not listen on port {port} within {_START_SECONDS:g} s")

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _installed() -> Path:
    """The virtual environment with ministack in it. Safe from several processes."""
    key = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:16]
    return install_once(f"ministack-{key}", _install)


def _install(folder: Path) -> None:
    uv = str(_REPOSITORY / "scripts" / "uv")
    _run(uv, "venv", "--quiet", "--relocatable", str(folder))
    python = str(folder / "bin" / "python")
    _run(uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "--requirement", str(_REQUIREMENTS))


def _run(*command: str) -> None:
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, text=True)
    except subprocess.CalledProcessError as failed:
        raise StandInUnavailable(f"{' '.join(command)} failed:\n{failed.stderr}") from failed
