"""A proposal that drops most of a long file: all of it is applied when the key is pressed a second time."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen
from support.sessions import reply

LONG = "".join(f"line {number}\n" for number in range(60))
SHORT = LONG[: LONG.index("line 20\n")]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text(LONG)
    (work / "b.txt").write_text("one\n")
    return work


async def test_what_drops_most_of_its_file_is_said_and_applied_by_the_second_press(work: Path) -> None:
    changes = [
        {"path": "notes.txt", "content": SHORT},
        {"path": "b.txt", "edits": [{"search": "one", "replace": "two"}]},
    ]
    async with on_screen(work, [reply("Shorter.", fileChanges=changes)]) as it:
        await it.press(*"shorten notes.txt and b.txt", "enter")
        await it.until(lambda: len(it.session.state.review.open) == 2, "proposed")
        await it.until(lambda: not it.session.state.turn.running, "the turn has ended")
        await it.press("f8")
        await it.shows("notes.txt loses 40 lines. F8 again")
        assert (work / "notes.txt").read_text() == LONG
        assert (work / "b.txt").read_text() == "one\n"
        await it.press("f8")
        await it.until(lambda: (work / "b.txt").read_text() == "two\n", "the rest too")
        assert (work / "notes.txt").read_text() == SHORT
        await it.until(lambda: not it.session.state.review.open, "nothing is pending")
