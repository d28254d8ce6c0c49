"""What is kept for undo is shown, and removed only after a question."""

from __future__ import annotations

import os
from pathlib import Path

from support.screens import on_screen

from tui_agent.files.blobs import Blobs
from tui_agent.log.cleanup import CleanupResult
from tui_agent.ui.dialogs.questions import cleanup_summary_text, storage_rows


async def test_the_figure_is_shown_and_nothing_goes_without_a_choice(tmp_path: Path, home: Path) -> None:
    blobs = Blobs(home / "data" / "blobs")
    key = blobs.put(b"x" * 2048)
    os.utime(blobs.folder / key[:2] / key[2:], (0, 0))
    (tmp_path / "work").mkdir()
    async with on_screen(tmp_path / "work") as it:
        for choice, left in ((["enter"], True), (["down", "enter"], False)):
            await it.press("ctrl+o", "K")
            await it.shows("2.0 KiB of 1.0 GiB of undo data")
            await it.press(*choice)
            await it.until(lambda left=left: blobs.has(key) is left)
        await it.until(lambda: any("1 texts deleted" in one.text for one in it.session.state.notices.items))


def test_over_the_limit_only_what_is_too_much_goes() -> None:
    assert [row.value for row in storage_rows(3000, 2048)] == ["", "old", "young"]
    assert "down to 2.0 KiB" in storage_rows(3000, 2048)[1].words.plain
    assert "down to" not in storage_rows(1000, 2048)[1].words.plain


def test_what_could_not_go_is_said_with_its_reason() -> None:
    said = cleanup_summary_text(CleanupResult(3000, 3000, why_not="a log cannot be read"), 2048)
    assert said == "Nothing was deleted; a log cannot be read; 2.9 KiB of 2.0 KiB of undo data"
