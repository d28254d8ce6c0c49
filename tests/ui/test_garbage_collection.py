"""What is left behind is collected when nobody waits, or when it is too much."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Generator
from pathlib import Path

import pytest
from support.screens import on_screen
from support.trees import until
from textual.geometry import Region

from tui_agent.ui import garbage_collection
from tui_agent.ui.garbage_collection import Garbage


class Node:
    """Refers to itself, as widgets do."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Generator[list[float]]:
    """Seconds without a key; the collector is as it is when the program starts."""
    monkeypatch.setattr(garbage_collection, "QUIET", 0.001)
    threshold = gc.get_threshold()
    gc.disable()
    yield [60.0]
    gc.set_threshold(*threshold)
    gc.enable()


def left_behind() -> weakref.ref[Node]:
    return weakref.ref(Node())


async def test_it_is_collected_when_nobody_types(idle: list[float]) -> None:
    collector = Garbage(lambda: idle[0])
    collector.begin()
    idle[0], node = 0.0, left_behind()
    collector.collect_soon()
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert node() is not None
    idle[0] = 1.0
    await until(lambda: node() is None)
    collector.close()
    assert not gc.isenabled()
    assert collector._on_collection not in gc.callbacks


@pytest.mark.parametrize("many", [False, True])
async def test_garbage_of_a_start_is_collected_if_few_objects_are_new(idle: list[float], many: bool) -> None:
    gc.collect()
    node, kept = left_behind(), [[] for _ in range(many * garbage_collection.FEW)]
    collector = Garbage(lambda: idle[0])
    collector.begin()
    assert (node() is not None) is many
    collector.close()
    del kept
    gc.unfreeze()


@pytest.mark.parametrize(
    ("seconds", "running", "limit"),
    [(1.0, False, "MOST_ADDED"), (1.0, True, "MANY_ADDED"), (0.0, True, "TOO_MUCH_ADDED")],
)
async def test_all_of_it_is_collected_when_it_is_much(
    idle: list[float], monkeypatch: pytest.MonkeyPatch, seconds: float, running: bool, limit: str
) -> None:
    """Also the objects of an older generation, during a turn, and at last between two keys."""
    collector = Garbage(lambda: idle[0], lambda: running)
    collector.begin()
    kept = Node()
    gc.collect(1)
    node = weakref.ref(kept)
    del kept
    monkeypatch.setattr(garbage_collection, "MOST_ADDED", 0)
    monkeypatch.setattr(garbage_collection, limit, 0)
    idle[0], more = seconds, [Node() for _ in range(1000)]
    Region(0, 0, 3, 3).intersection(Region(1, 1, 3, 3))
    assert Region.intersection.cache_info().currsize
    collector.collect_soon()
    await until(lambda: node() is None)
    assert more and not Region.intersection.cache_info().currsize
    collector.close()


async def test_new_objects_and_older_ones_are_collected_in_two_rounds(
    idle: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes tens of milliseconds after a long reply; a key between them is handled."""
    collector, rounds = Garbage(lambda: idle[0]), []
    collector.begin()
    monkeypatch.setattr(garbage_collection, "MOST_ADDED", -(10**9))
    monkeypatch.setattr(garbage_collection.gc, "collect", lambda generation=2: rounds.append(generation))
    monkeypatch.setattr(
        collector, "_collect", lambda quiet: (rounds.append(0), Garbage._collect(collector, quiet))
    )
    collector.collect_soon()
    await until(lambda: 2 in rounds)
    assert rounds == [0, 1, 0, 2]
    collector.close()


async def test_a_full_collection_that_takes_long_waits_for_a_reader(
    idle: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects older than the first drawing are not visited: that takes longer than all others together."""
    collector, visited = Garbage(lambda: idle[0]), []
    oldest = Node()
    collector.begin()
    collect = gc.collect

    def collected(generation: int = 2) -> int:
        if generation == 2:
            visited.append({id(one) for one in gc.get_objects()})
        return collect(generation)

    monkeypatch.setattr(garbage_collection.gc, "collect", collected)
    monkeypatch.setattr(garbage_collection, "MOST_ADDED", -(10**9))
    monkeypatch.setattr(garbage_collection, "SHARE", 10**9)
    newest = Node()
    for frame, seconds in ((10.0, 1.0), (-1.0, garbage_collection.READING)):
        monkeypatch.setattr(garbage_collection, "FRAME", frame)
        idle[0] = seconds
        collector.collect_soon()
        await until(lambda: len(visited) > 0)
        seen = visited.pop()
        assert id(oldest) not in seen
        assert id(newest) in seen
    idle[0] = garbage_collection.READING - 1
    collector.collect_soon()
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not visited
    monkeypatch.setattr(garbage_collection, "MANY_ADDED", -(10**9))
    await until(lambda: len(visited) > 0)
    collector.close()


async def test_much_of_it_waits_for_the_keys_of_a_turn(
    idle: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = Garbage(lambda: idle[0], lambda: True)
    collector.begin()
    monkeypatch.setattr(garbage_collection, "MANY_ADDED", 0)
    idle[0], node = 0.0, left_behind()
    collector.collect_soon()
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert node() is not None
    idle[0] = garbage_collection.NO_KEY
    await until(lambda: node() is None)
    collector.close()


async def test_a_new_size_counts_as_a_key(tmp_path: Path) -> None:
    """It is drawn at once, and a full collection would come between."""
    async with on_screen(tmp_path) as it:
        it.app.keyboard._read_at -= 100
        assert it.app.garbage._idle() >= 100
        await it.pilot.resize_terminal(100, 30)
        await it.until(lambda: it.app.garbage._idle() < 100, "the wait begins again")
