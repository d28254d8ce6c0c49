"""A terminal of any size is drawn: a window that is closing, or a client that names a wrong size, ends nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen

SIZES = [*((width, height) for width in (1, 2, 3, 5, 11) for height in (1, 3, 24)), (2, 1000), (1000, 2)]
OTHERS = [*((width, height) for width in (4, 7, 19) for height in (1, 2, 3, 6, 24)), (1, 2), (2, 6)]


@pytest.mark.parametrize(
    "keys", [(), ("f1",), ("ctrl+p",), ("ctrl+o", "m"), ("f4",), ("f6",), ("/",)], ids="-".join
)
async def test_each_small_size_is_drawn_and_the_screen_comes_back(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n" * 50)
    async with on_screen(tmp_path) as it:
        await it.press(*keys)
        for width, height in SIZES if keys else SIZES + OTHERS:
            await it.pilot.resize_terminal(width, height)
            await it.pilot.pause()
        await it.pilot.resize_terminal(120, 40)
        await it.press("escape", "escape", "f7", *"typed")
        await it.shows("typed")
