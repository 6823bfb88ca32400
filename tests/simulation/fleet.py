"""The agents of a history: a fixed number on hosts of their own, or the pods of a pool that two operators scale."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from tests.simulation import chaos
from tests.simulation.agents import Host, Setting
from tests.simulation.checker import Violation
from tests.simulation.operators import Operators

Work = Coroutine[Any, Any, None]


class Fleet(Protocol):
    """All agents of a history."""

    patience: float
    """Seconds within which no agent is left once :meth:`end` has been called."""

    def start(self) -> list[Work]:
        """Start them. What comes back is what happens to them; it ends once faults have."""

    def mend(self) -> None:
        """Faults have ended: whoever is down, stopped or cut off is brought back."""

    def end(self) -> None:
        """All tasks have ended: have the agents end, unless they do so by themselves."""

    @property
    def busy(self) -> int:
        """Slots that hold a task."""

    @property
    def is_gone(self) -> bool:
        """Whether no agent runs any more."""


class FixedFleet:
    """Agents as services on hosts: somebody starts them again."""

    def __init__(self, setting: Setting) -> None:
        self.patience = setting.plan.settings.drain
        self._setting = setting
        self._hosts = [Host(setting, f"host-{number}", f"-/host-{number}/1") for number in range(setting.plan.agents)]

    def start(self) -> list[Work]:
        for host in self._hosts:
            host.start()
        return chaos.of_agents(self._setting, lambda: self._hosts)

    def mend(self) -> None:
        for host in self._hosts:
            host.machine.is_cut = False
            host.go_on()
            if not host.is_up:
                host.start()

    def end(self) -> None:
        for host in self._hosts:
            host.stop()

    @property
    def busy(self) -> int:
        return sum(host.busy for host in self._hosts)

    @property
    def is_gone(self) -> bool:
        return not any(host.is_up for host in self._hosts)


class PooledFleet:
    """Agents as pods: the operator starts them, and once nothing is left to do there are none."""

    def __init__(self, setting: Setting, found: Callable[[Violation], None]) -> None:
        self.patience = setting.plan.settings.drain + 120.0  # windows, cooldown, two low readings, and the drain
        self._setting = setting
        self._operators = Operators(setting, found)

    def start(self) -> list[Work]:
        return [*self._operators.start(), *chaos.of_agents(self._setting, lambda: self._operators.nodes.up)]

    def mend(self) -> None:
        self._operators.api.is_away = False
        for host in self._operators.nodes.up:
            host.machine.is_cut = False
            host.go_on()

    def end(self) -> None:
        """The pool scales to 0."""

    @property
    def busy(self) -> int:
        return sum(host.busy for host in self._operators.nodes.up)

    @property
    def is_gone(self) -> bool:
        return self._operators.is_at_rest
