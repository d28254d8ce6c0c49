"""An editor that truncates a file and writes it in place while an apply replaces it: nothing of either is lost."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from support.sessions import open_session, reply

from tui_agent.errors import EditFailed
from tui_agent.files import staging
from tui_agent.files.walk import Spot
from tui_agent.session.session import Session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="others do not tell who writes a file")
BEFORE = "first\n" + "same\n" * 8 + "last\n"
CHANGE = reply("One.", fileChanges=[{"path": "a.txt", "edits": [{"search": "last", "replace": "model"}]}])


async def raced(session: Session, path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply; the editor opens and truncates the file when it is looked at for the last time, and writes it when it was
    replaced."""
    land, saves = staging.land, list[threading.Thread]()

    def land_and_save(spot: Spot, *args: Any, **named: Any) -> None:
        if saves or spot.name != path.name:
            return land(spot, *args, **named)
        editor = path.open("r+b")
        land(spot, *args, **named)
        os.ftruncate(editor.fileno(), 0)

        def save() -> None:
            editor.write(text.encode())
            editor.close()

        saves.append(threading.Timer(0.05, save))
        saves[0].start()

    monkeypatch.setattr(staging, "land", land_and_save)
    try:
        await session.review.apply()
    finally:
        saves[0].join()


@pytest.mark.parametrize(("theirs", "both"), [("first", True), ("last", False)])
async def test_both_are_kept_or_it_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str, both: bool
) -> None:
    path, text = tmp_path / "a.txt", BEFORE.replace(theirs, "editor")
    path.write_text(BEFORE)
    async with open_session(tmp_path, [CHANGE]) as session:
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        if both:
            await raced(session, path, text, monkeypatch)
            assert path.read_text() == text.replace("last", "model")
            return
        with pytest.raises(EditFailed):
            await raced(session, path, text, monkeypatch)
        assert path.read_text() == text
