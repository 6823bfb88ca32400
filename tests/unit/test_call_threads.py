"""Blocking calls of an event loop: they run beside each other, and each caller hears how its own call ended."""

from __future__ import annotations

import asyncio
import threading

import pytest

from thunderagent.agent.threads import CallThreads


def test_a_call_returns_or_raises_what_the_function_does_and_its_arguments_arrive() -> None:
    async def scenario() -> None:
        with CallThreads(2, "test") as call:
            assert await call(divmod, 7, 2) == (3, 1)
            assert await call(int, "ff", base=16) == 255
            with pytest.raises(ValueError, match="nothing"):
                await call(int, "nothing")

    asyncio.run(scenario())


def test_calls_run_beside_each_other_up_to_the_limit_and_the_others_wait_their_turn() -> None:
    async def scenario() -> None:
        together = threading.Barrier(3)
        with CallThreads(3, "test") as call:
            names = await asyncio.gather(*(call(_meet, together) for _ in range(9)))
        assert set(names) == {"test-0", "test-1", "test-2"}

    asyncio.run(scenario())


def test_a_thread_is_started_only_when_all_others_are_busy() -> None:
    async def scenario() -> None:
        with CallThreads(8, "test") as call:
            names = {await call(_own_name) for _ in range(5)}
        assert names == {"test-0"}

    asyncio.run(scenario())


def test_a_call_that_nobody_waits_for_any_more_is_not_begun() -> None:
    async def scenario() -> None:
        release, begun = threading.Event(), threading.Event()
        with CallThreads(1, "test") as call:
            first = call(release.wait)
            call(begun.set).cancel()
            release.set()
            await first
            assert await call(begun.is_set) is False

    asyncio.run(scenario())


def test_closing_waits_for_the_call_under_way() -> None:
    async def scenario() -> None:
        entered, release = threading.Event(), threading.Event()
        with CallThreads(1, "test") as call:
            under_way = call(_enter_and_wait, entered, release)
            await asyncio.to_thread(entered.wait)
            release.set()
        assert await under_way == "left"

    asyncio.run(scenario())


def _own_name() -> str:
    return threading.current_thread().name


def _meet(barrier: threading.Barrier) -> str:
    barrier.wait(30)
    return _own_name()


def _enter_and_wait(entered: threading.Event, release: threading.Event) -> str:
    entered.set()
    release.wait()
    return "left"
