"""A listing that comes in parts keeps the known list where nothing has changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.processes.child import ChildProcess
from tui_agent.workspace.listing import PathListing, list_by_child

PATHS = st.sets(st.sampled_from("abcdefgh")).map(sorted)


class Scripted:
    """A child that lists what it is told to, a few paths at a time."""

    def __init__(self, paths: list[str], gone: list[str], size: int) -> None:
        self._parts = [paths[at : at + size] for at in range(0, len(paths), size)]
        self._gone = gone

    async def stream(self, method: str, params: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        yield {"source": "git", "unnamed": 0, "cut": False}
        for part in self._parts:
            yield {"paths": list(part)}
        yield {"listed": True}
        yield {"gone": self._gone, "status": {"branch": "main"}}


@given(PATHS, PATHS, PATHS, st.integers(1, 4))
async def test_the_parts_make_the_listing(
    known: list[str], found: list[str], gone: list[str], size: int
) -> None:
    child = cast("ChildProcess", Scripted(found, gone, size))
    early: list[PathListing] = []
    before = list(known)
    listed = await list_by_child(child, Path(), known, early.append)
    left = [path for path in found if path not in gone]
    assert (early[0].paths, listed.paths, known) == (found, left, before)
    assert (listed.paths is known) == (left == known)
    assert (early[0].status, listed.status) == (None, {"branch": "main"})


async def test_what_the_person_should_know(tmp_path: Path) -> None:
    class Cut(Scripted):
        async def stream(self, method: str, params: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
            yield {"source": "walk", "unnamed": 3, "cut": True}
            yield {"listed": True}

    listed = await list_by_child(cast("ChildProcess", Cut([], [], 1)), tmp_path, [])
    assert "3 files have names that are not UTF-8" in listed.note
    assert "more than 500,000 files" in listed.note
