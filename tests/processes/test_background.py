"""Work in a thread that lets the loop come first."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tui_agent.processes import background
from tui_agent.processes.background import CALLS, MOST_BUSY, in_background


def no_work() -> None:
    pass


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "SLICE", 0.0)


async def test_the_loop_has_a_round_between_two_slices() -> None:
    rounds, slices = 0, 50

    async def turn() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    def work() -> int:
        before = rounds
        for _ in range(CALLS * slices):
            no_work()
        return rounds - before

    turning = asyncio.create_task(turn())
    assert await in_background(work) >= slices
    turning.cancel()


async def test_it_goes_on_where_the_loop_waits_for_it() -> None:
    done = threading.Event()

    def work() -> None:
        for _ in range(2 * CALLS * MOST_BUSY):
            no_work()
        done.set()

    working = asyncio.create_task(in_background(work))
    await asyncio.sleep(0)
    assert done.wait(10), "the loop does not turn meanwhile"
    await working


async def test_what_it_raises_arrives() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_background(lambda: 1 // 0)
