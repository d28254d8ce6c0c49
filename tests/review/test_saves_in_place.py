"""An editor that truncates a file and writes it in place while an apply replaces it: nothing of either is lost."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from support.faults import killed_at, tree
from support.sessions import open_session, reply
from support.trees import until

from tui_agent.errors import EditFailed
from tui_agent.files import batch, staging
from tui_agent.files.batch import Step, heal, write_batch
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, PathHandle
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


def saved_over(path: Path, text: str, way: str, pause: float = 0.0) -> None:
    """An editor that has opened the file earlier, or opens it by name now, truncates it and writes it later."""
    if way == "renames":
        path.with_name("new").write_text(text)
        path.with_name("new").replace(path)
        return
    with path.open("r+b") as file:
        file.truncate(0)
        file.flush()
        time.sleep(pause)
        file.write(text.encode())


@pytest.mark.parametrize("way", ["in place", "renames"])
@pytest.mark.parametrize("moment", ["renamed", "synced", "recorded"])
@pytest.mark.parametrize(
    ("theirs", "both"), [("first", True), ("same\nsame\nsame\nsame\n", True), ("last", False)]
)
async def test_a_save_that_begins_before_the_end_of_the_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str, both: bool, moment: str, way: str
) -> None:
    path, text = tmp_path / "a.txt", BEFORE.replace(theirs, "editor\n", 1)
    other = tmp_path / "b.txt"
    for one in (path, other):
        one.write_text(BEFORE)
    edit = {"edits": [{"search": "last", "replace": "model"}]}
    change = reply("Two.", fileChanges=[{"path": name, **edit} for name in ("a.txt", "b.txt")])
    saves: list[threading.Thread] = []

    def save() -> None:
        if not saves:
            saves.append(threading.Thread(target=saved_over, args=(path, text, way, 0.05)))
            saves[0].start()
            deadline = time.monotonic() + 5
            while path.read_text() in (MODEL, BEFORE) and time.monotonic() < deadline:
                pass

    async with open_session(tmp_path, [change]) as session:
        await session.chat.submit("Change both")
        await session.chat.finished()
        place, name = {
            "renamed": (staging, "rename_into_place"),
            "synced": (batch, "several_at_once"),
            "recorded": (session.journal, "record_with"),
        }[moment]
        real = getattr(place, name)

        def then(*given: Any, **named: Any) -> Any:
            done = real(*given, **named)
            if moment == "recorded" or path.read_text() == MODEL:
                save()
            return done

        monkeypatch.setattr(place, name, then)
        if both:
            await session.review.apply()
            assert path.read_text() == text.replace("last", "model")
        else:
            with pytest.raises(EditFailed, match=r"a\.txt: another program saved the same lines"):
                await session.review.apply()
            assert path.read_text() == text
        saves[0].join()
        assert other.read_text() == MODEL
        states = {one.path: one.state for one in session.state.review.changes}
        assert states == {"a.txt": "applied" if both else "conflict", "b.txt": "applied"}
        if both:
            await session.review.undo()
            assert (path.read_text(), other.read_text()) == (text, BEFORE)
        else:
            (view,) = [
                await session.review.conflict(one.id)
                for one in session.state.review.changes
                if one.state == "conflict"
            ]
            assert view.conflicts


@pytest.mark.parametrize("way", ["in place", "renames"])
async def test_a_save_of_the_earlier_text_after_the_apply_makes_the_change_pending_again(
    tmp_path: Path, way: str
) -> None:
    path, text = tmp_path / "a.txt", BEFORE.replace("first", "editor")
    path.write_text(BEFORE)
    async with open_session(tmp_path, [CHANGE]) as session:
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        await session.review.apply()
        assert path.read_text() == MODEL
        saved_over(path, text, way)
        await until(lambda: session.state.review.changes[0].is_open)
        assert path.read_text() == text, "it is offered, and not done"
        await session.review.apply()
        assert path.read_text() == text.replace("last", "model")
        await session.review.undo()
        assert path.read_text() == text


async def test_two_applies_of_a_file_are_pending_again_as_one_change(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(BEFORE)
    second = reply(
        "Two.", fileChanges=[{"path": "a.txt", "edits": [{"search": "first", "replace": "second"}]}]
    )
    text = BEFORE.replace("same\n" * 8, "same\n" * 4 + "editor\n" + "same\n" * 4)
    async with open_session(tmp_path, [CHANGE, second]) as session:
        for words in ("Change a.txt", "Change it again"):
            await session.chat.submit(words)
            await session.chat.finished()
            await session.review.apply()
        for _ in range(2):
            saved_over(path, text, "in place")
            await until(lambda: session.state.review.open)
            await session.review.apply()
            assert path.read_text() == text.replace("last", "model").replace("first", "second")
        await session.review.undo()
        assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        BEFORE,
        MODEL.replace("first", "editor"),
        MODEL.replace("model", "mine"),
        BEFORE.replace("last", "formatted"),
    ],
    ids=["taken back", "edited", "edited there", "the same line"],
)
async def test_an_edit_by_hand_after_the_apply_is_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(BEFORE)
    async with open_session(tmp_path, [CHANGE]) as session:
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        await session.review.apply()
        path.write_text(text)
        await session.review._overwrites.look(["a.txt"])
        assert session.state.review.changes[0].state == "applied"


async def test_a_save_in_our_own_editor_is_an_edit_by_hand(tmp_path: Path) -> None:
    path, text = tmp_path / "a.txt", BEFORE.replace("first", "editor")
    path.write_text(BEFORE)
    async with open_session(tmp_path, [CHANGE]) as session:
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        await session.review.apply()
        await session.files.open("a.txt")
        session.files.edit("a.txt", text, (0, 0), (0, 0))
        await session.files.save("a.txt")
        await session.review._overwrites.look(["a.txt"])
        assert (path.read_text(), session.state.review.changes[0].state) == (text, "applied")
