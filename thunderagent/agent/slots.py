"""Slots: how many tasks an agent may hold at once, by kind of handler and by task type, and how fast it may start them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from thunderagent.agent.handler import RouteInfo, RouteTable
from thunderagent.settings import AgentSettings


@dataclass(slots=True)
class _Bucket:
    """A token bucket: ``rate`` tokens a second, at most one second's worth (but one) in store."""

    rate: float
    tokens: float
    at: float

    def refill(self, now: float) -> None:
        self.tokens = min(max(1.0, self.rate), self.tokens + (now - self.at) * self.rate)
        self.at = now


class Slots:
    """Free and taken slots. ``clock`` is in monotonic seconds."""

    def __init__(self, settings: AgentSettings, routes: RouteTable, clock: Callable[[], float]) -> None:
        self._routes = routes
        self._clock = clock
        self._capacity = {
            False: settings.processes * settings.threads if routes.any_sync else 0,
            True: settings.processes * settings.async_tasks if routes.any_async else 0,
        }
        self._taken: Counter[bool] = Counter()
        self._by_type: Counter[str | None] = Counter()
        self._buckets: dict[str | None, _Bucket] = {}

    @property
    def total(self) -> int:
        return sum(self._capacity.values())

    @property
    def busy(self) -> int:
        return self._taken.total()

    @property
    def free(self) -> int:
        return self.total - self.busy

    def takes(self, task_type: str | None) -> bool:
        """Whether a task of this type could be started now."""
        info = self._routes.info(task_type)
        return (
            info is not None
            and self._has_place(info)
            and self._below_limit(task_type, info)
            and self._has_token(task_type, info)
        )

    def takes_next(self, task_type: str | None) -> bool:
        """Whether a task of this type could be started now or, where no slot is free, as soon as one is."""
        info = self._routes.info(task_type)
        if info is None or not self._has_token(task_type, info):
            return False
        return self._below_limit(task_type, info) and (self.free == 0 or self._has_place(info))

    def knows(self, task_type: str | None) -> bool:
        """Whether this agent runs tasks of this type at all."""
        return self._routes.info(task_type) is not None

    def take(self, task_type: str | None) -> bool:
        """Take a slot for a task of this type, if there is one."""
        info = self._routes.info(task_type)
        if info is None or not self.takes(task_type):
            return False
        self._taken[info.is_async] += 1
        self._by_type[task_type] += 1
        if task_type in self._buckets:
            self._buckets[task_type].tokens -= 1
        return True

    def give_back(self, task_type: str | None) -> None:
        info = self._routes.info(task_type)
        if info is not None:
            self._taken[info.is_async] -= 1
            self._by_type[task_type] -= 1

    def next_token_in(self) -> float:
        """Seconds until the first task type that is held back by its rate may start another; infinite where none is."""
        now = self._clock()
        waits = [
            (1 - bucket.tokens) / bucket.rate - (now - bucket.at) for bucket in self._buckets.values() if bucket.tokens < 1
        ]
        return max(0.0, min(waits, default=float("inf")))

    def _has_place(self, info: RouteInfo) -> bool:
        return self._taken[info.is_async] < self._capacity[info.is_async]

    def _below_limit(self, task_type: str | None, info: RouteInfo) -> bool:
        limit = info.settings.slots
        return limit is None or self._by_type[task_type] < limit

    def _has_token(self, task_type: str | None, info: RouteInfo) -> bool:
        if info.settings.rate is None:
            return True
        now = self._clock()
        bucket = self._buckets.setdefault(task_type, _Bucket(info.settings.rate, max(1.0, info.settings.rate), now))
        bucket.refill(now)
        return bucket.tokens >= 1
