"""Telling a supervisor how the process is, by systemd's protocol (sd_notify(3)): READY, STOPPING, and the watchdog's beat."""

from __future__ import annotations

import socket
from collections.abc import Mapping


class Notifier:
    """Sends to the socket that the environment names; does nothing where there is none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if address else None
        self.watchdog: float | None = None
        """Seconds between two beats: half of what the supervisor allows, as sd_watchdog_enabled(3) advises."""
        if address and environ.get("WATCHDOG_USEC", "").isdecimal():
            self.watchdog = int(environ["WATCHDOG_USEC"]) / 2e6

    def send(self, state: str) -> None:
        """Send one state, such as READY=1. A supervisor that does not listen, or not now, is no reason to fail or to wait."""
        if self._socket is not None:
            try:
                self._socket.sendto(state.encode(), socket.MSG_DONTWAIT, self._address)
            except OSError:
                return

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
