"""Work in a thread that lets the loop come first."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from pathlib import Path

import pytest

from tui_agent.processes import background
from tui_agent.processes.background import (
    MOST_BUSY,
    BackgroundPause,
    WorkCancelled,
    in_background,
    pause,
    start_task,
)


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "SLICE", 0.0)


async def test_a_task_is_held_until_it_is_done() -> None:
    tasks: set[asyncio.Task[int]] = set()

    async def work() -> int:
        return 3

    task = start_task(tasks, work(), "adds")
    assert tasks == {task} and task.get_name() == "adds"
    assert await task == 3
    await asyncio.sleep(0)
    assert not tasks


async def test_the_loop_has_a_round_between_two_slices() -> None:
    rounds, slices = 0, 50

    async def turn() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    def work() -> int:
        before = rounds
        for _ in range(slices):
            pause()
        return rounds - before

    turning = asyncio.create_task(turn())
    assert await in_background(work) >= slices
    turning.cancel()


async def test_it_goes_on_where_the_loop_waits_for_it() -> None:
    done = threading.Event()

    def work() -> None:
        for _ in range(2 * MOST_BUSY):
            pause()
        done.set()

    working = asyncio.create_task(in_background(work))
    await asyncio.sleep(0)
    assert done.wait(10), "the loop does not turn meanwhile"
    await working


async def test_what_is_not_wanted_any_more_is_given_up() -> None:
    asked = 0

    def wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked < 3

    def work() -> None:
        while True:
            pause()

    with pytest.raises(WorkCancelled):
        await in_background(work, wanted)
    assert asked == 3


async def test_work_that_can_wait_stands_still_while_a_person_waits_for_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = threading.Event()

    class Noting(BackgroundPause):
        def wait(self) -> None:
            asked.set()
            super().wait()

    def work() -> None:
        for _ in range(2):
            pause()

    monkeypatch.setattr(background, "standstill", standstill := Noting())
    standstill.begin(30)
    await in_background(work)
    working = asyncio.create_task(in_background(work, can_wait=True))
    assert await asyncio.to_thread(asked.wait, 10)
    assert not working.done()
    standstill.end()
    await working
    standstill.begin(0)
    await in_background(work, can_wait=True)


async def test_what_it_raises_arrives() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_background(lambda: 1 // 0)


async def test_an_import_elsewhere_asks_all_finders_while_one_is_removed() -> None:
    during = await in_background(lambda: sys.meta_path)  # as an import in another thread holds it
    assert len(during) == len(sys.meta_path) + 1 and during[1:] == sys.meta_path


async def test_it_pauses_between_two_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    names = [f"paused_at_{number}" for number in range(5)]
    for name in names:
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "pausing.py").write_text("".join(f"import {name}\n" for name in names))
    asked: list[bool] = []
    await in_background(lambda: importlib.import_module("pausing"), lambda: asked.append(True) or True)
    assert len(asked) >= len(names) and not [one for one in sys.meta_path if "Between" in type(one).__name__]


def test_a_pause_outside_of_such_work_does_nothing() -> None:
    pause()
