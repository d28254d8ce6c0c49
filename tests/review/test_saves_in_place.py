"""An editor that truncates a file and writes it in place while an apply replaces it: nothing of either is lost."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from support.faults import killed_at, tree
from support.sessions import open_session, reply

from tui_agent.errors import EditFailed
from tui_agent.files import staging
from tui_agent.files.batch import Step, heal, write_batch
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate
from tui_agent.files.resolve_path import PathHandle
from tui_agent.files.text import md5
from tui_agent.session.session import Session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="others do not tell who writes a file")
BEFORE = "first\n" + "same\n" * 8 + "last\n"
CHANGE = reply("One.", fileChanges=[{"path": "a.txt", "edits": [{"search": "last", "replace": "model"}]}])


async def raced(session: Session, path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply; the editor opens and truncates the file when it is looked at for the last time, and writes it when it was
    replaced."""
    land, saves = staging.rename_into_place, list[threading.Thread]()

    def land_and_save(spot: PathHandle, *args: Any, **named: Any) -> None:
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

    monkeypatch.setattr(staging, "rename_into_place", land_and_save)
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


STEP_BASE, EDITED, MODEL = BEFORE.encode(), BEFORE.replace("first", "editor"), BEFORE.replace("last", "model")


def killed_in_place(folder: Path, number: int) -> tuple[bool, tuple[Gate, Path, Blobs]]:
    """A batch of one file that is killed before its call `number`; an editor writes into the old file as soon as it
    was replaced. Whether it was killed, and what heals it."""
    (folder / "work").mkdir(parents=True)
    path = folder / "work" / "a.txt"
    path.write_bytes(STEP_BASE)
    where = Gate(folder / "work"), folder / "data" / "journal.json", Blobs(folder / "data" / "blobs")
    merged = EDITED.replace("last", "model").encode()
    step = Step(
        "a.txt",
        MODEL.encode(),
        md5(STEP_BASE),
        merged=lambda there: merged if there == EDITED.encode() else None,
    )

    def write() -> None:
        editor, land, done = path.open("r+b"), staging.rename_into_place, list[bool]()

        def land_and_save(*given: Any, **named: Any) -> None:
            land(*given, **named)
            if not done:
                done.append(True)
                editor.write(EDITED.encode())
                editor.close()

        with patch.object(staging, "rename_into_place", land_and_save):
            write_batch(*where, [step])

    return killed_at(number, write), where


def test_killed_at_any_call_what_the_editor_wrote_is_there(tmp_path: Path) -> None:
    """As it wrote it, or merged with the change; before the file was replaced it has not written yet."""
    number = reached = 0
    killed = True
    while killed:
        number += 2
        killed, where = killed_in_place(tmp_path / str(number), number)
        heal(*where)
        found = tree(tmp_path / str(number) / "work")
        texts = [STEP_BASE, EDITED.encode(), EDITED.replace("last", "model").encode()]
        assert list(found) == ["a.txt"] and found["a.txt"] in texts, (number, found)
        assert reached == 0 or found["a.txt"] != STEP_BASE, number
        reached += found["a.txt"] != STEP_BASE
    assert reached > 3, "the kills must come behind the save"
