"""The task table as an agent's event loop sees it: calls that do not block the loop, and whether the table can be reached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from thunderagent.errors import IndexMissing, StoreError, StoreRejected, StoreThrottled
from thunderagent.store.base import Store

T = TypeVar("T")


class Call(Protocol):
    """Runs a blocking function away from the event loop: in a thread, or inline in a simulation."""

    def __call__(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Awaitable[T]: ...


class Contact:
    """How long the table has answered without a break. ``clock`` is in monotonic seconds.

    After a break longer than a renewal interval nothing may be taken over until contact has lasted for a renewal interval: the
    leases that ended meanwhile belong to agents that could not renew either, and these get the time to do so.
    """

    def __init__(self, clock: Callable[[], float], renewal_interval: float) -> None:
        self._clock = clock
        self._interval = renewal_interval
        self._last = clock()
        self._unbroken_since: float | None = None
        self.broken = False
        """Whether the last call failed to reach the table."""

    def good(self) -> bool:
        """Note a reply. True where it is the first after a break longer than a renewal interval."""
        now = self._clock()
        returned = now - self._last > self._interval and self.broken
        if returned:
            self._unbroken_since = now
        self._last = now
        self.broken = False
        return returned

    def bad(self) -> None:
        self.broken = True

    @property
    def may_take_over(self) -> bool:
        if self.broken:
            return False
        return self._unbroken_since is None or self._clock() - self._unbroken_since >= self._interval


class Table:
    """Two ways to one table: ``do`` for everything, ``renew`` for renewals, which have connections and threads of their own."""

    def __init__(self, store: Store, renewals: Store, call: Call, renewal_call: Call, contact: Contact) -> None:
        self.store = store
        self.renewals = renewals
        self.contact = contact
        self.on_return: Callable[[], None] = lambda: None
        self._call = call
        self._renewal_call = renewal_call

    async def do(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """A function of the main store, or one that reads through it. Raises StoreError."""
        return await self._noted(self._call(function, *args, **kwargs))

    async def renew(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """A function of the store for renewals. Raises StoreError."""
        return await self._noted(self._renewal_call(function, *args, **kwargs))

    async def _noted(self, call: Awaitable[T]) -> T:
        try:
            result = await call
        except (StoreThrottled, StoreRejected, IndexMissing):
            self._good()  # it said no, but it was there to say so
            raise
        except StoreError:
            self.contact.bad()
            raise
        self._good()
        return result

    def _good(self) -> None:
        if self.contact.good():
            self.on_return()
