"""Events of pools, by kopf, in a thread with a loop of its own.

kopf cancels every task of its loop when it ends, and it ends when the API server is away for too long. So it has its own loop,
is begun again whenever it ends, and nothing depends on it but how soon a change is noticed: the listing finds the rest.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import kopf

from controller.names import GROUP, PLURAL, VERSION
from thunderagent.backoff import full_jitter
from thunderagent.log import say

log = logging.getLogger("thunderagent.operator")

OnEvent = Callable[[str | None, Mapping[str, Any]], None]

BEGIN_BASE, BEGIN_CAP = 2.0, 30.0
"""Seconds before kopf is begun again, growing while it ends again."""

IDENTITY = "thunderagent-operator"
"""What kopf calls itself among its peers, of which there are none. Left to itself it looks up the name of the process's user,
and ends where that has none, as in a container with a numeric user."""


class Watch:
    """Calls ``on_event`` in kopf's thread with the kind of each event and the pool. ``namespaces``: none means all."""

    def __init__(self, on_event: OnEvent, namespaces: Sequence[str], rng: random.Random) -> None:
        self._on_event = on_event
        self._namespaces = namespaces
        self._rng = rng
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thunderagent-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; the thread is a daemon, so nobody has to wait for it."""
        self._stop.set()

    def _run(self) -> None:
        ended = 0
        while not self._stop.is_set():
            try:
                self._watch_once()
            except BaseException as error:  # whatever it is, it must not end the watch
                say(log, logging.WARNING, "the watch of pools ended", why=f"{type(error).__name__}: {error}")
            ended += 1
            self._stop.wait(full_jitter(self._rng, ended, base=BEGIN_BASE, cap=BEGIN_CAP))

    def _watch_once(self) -> None:
        scope: dict[str, Any] = {"namespaces": list(self._namespaces)} if self._namespaces else {"clusterwide": True}
        about: dict[str, Any] = {**scope, "identity": IDENTITY}
        kopf.run(registry=self._registry(), settings=_settings(), standalone=True, stop_flag=self._stop, **about)

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        def login(**arguments: Any) -> kopf.ConnectionInfo | None:
            return kopf.login_via_client(**arguments)

        @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
        async def seen(event: Mapping[str, Any], **_: Any) -> None:
            self._on_event(event["type"], event["object"])

        return registry


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False  # events on pools are written where the decision is
    settings.scanning.disabled = True  # watching namespaces and CRDs would ask for rights that nothing else needs
    settings.process.ultimate_exiting_timeout = None  # its SIGKILL would be for all of the process
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 60
    settings.watching.connect_timeout = 10
    settings.watching.server_timeout = 240
    return settings
