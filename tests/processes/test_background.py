"""Work in a thread that lets the loop come first."""

from __future__ import annotations

import asyncio
import importlib
import threading
from pathlib import Path

import pytest

from tui_agent.processes import background
from tui_agent.processes.background import CALLS, MOST_BUSY, NotWanted, Standstill, in_background


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


async def test_what_is_not_wanted_any_more_is_given_up() -> None:
    asked = 0

    def wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked < 3

    def work() -> None:
        while True:
            no_work()

    with pytest.raises(NotWanted):
        await in_background(work, wanted)
    assert asked == 3


async def test_work_that_can_wait_stands_still_while_a_person_waits_for_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = threading.Event()

    class Noting(Standstill):
        def wait(self) -> None:
            asked.set()
            super().wait()

    def work() -> None:
        for _ in range(2 * CALLS):
            no_work()

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


async def test_a_module_that_the_loop_waits_for_is_imported_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(background, "AT_MOST", 60.0)
    begun = threading.Event()
    monkeypatch.setattr(background, "test", (begun.set, threading.get_ident(), no_work), raising=False)
    (tmp_path / "waited_for.py").write_text(
        "import time\n"
        "from tui_agent.processes import background as b\n"
        "tell, loop, no_work = b.test\n"
        "tell()\n"
        "while not b._imports(loop): time.sleep(0.001)\n"
        f"for _ in range({8 * CALLS}): no_work()\n"
    )
    working = asyncio.create_task(in_background(lambda: importlib.import_module("waited_for")))
    await asyncio.to_thread(begun.wait, 10)
    importlib.import_module("waited_for")  # on the loop
    await working


def test_a_python_that_locks_its_modules_in_another_way_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    assert background._ACQUIRE is not None, "here it is known"
    source = compile(Path(background.__file__).read_text(), background.__file__, "exec")
    monkeypatch.delattr(importlib, "_bootstrap")
    found: dict[str, object] = {"__name__": background.__name__}
    exec(source, found)
    assert found["_ACQUIRE"] is None
