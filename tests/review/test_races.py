"""An apply against a program that saves the same file again and again: merged and tried again, nothing of it lost."""

# ruff: noqa: ASYNC240 small files of a test are read at once
from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.sessions import open_session, reply
from support.trees import until

from tui_agent.errors import EditFailed, Outdated
from tui_agent.files import batch
from tui_agent.review.writer import Events, WriteOutcome

LINES = 60
EDIT = reply(
    "Adds a line.", fileChanges=[{"path": "a.txt", "edits": [{"search": "line 50", "replace": "ours 50"}]}]
)


class Editor(threading.Thread):
    """Reads the file, raises the number on its first line and saves it, every `period` seconds, as editors do."""

    def __init__(self, path: Path, period: float) -> None:
        super().__init__(daemon=True)
        self.path, self.period = path, period
        self.count = 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(self.period):
            self.save()

    def save(self) -> None:
        """It looks before it saves, too: what we wrote since it read is not its to overwrite."""
        aside = self.path.with_name("editor.tmp")
        while True:
            seen = self.path.stat().st_ino
            text = self.path.read_text()
            aside.write_text(f"save {self.count + 1}\n" + text.split("\n", 1)[1])
            if self.path.stat().st_ino == seen:
                os.replace(aside, self.path)
                self.count += 1
                return


@contextmanager
def editor(path: Path, period: float) -> Generator[Editor]:
    saving = Editor(path, period)
    saving.start()
    try:
        yield saving
    finally:
        saving.ended.set()
        saving.join()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()
    path.write_text("save 0\n" + "".join(f"line {number}\n" for number in range(1, LINES)))
    return path


async def in_the_end(decide: Callable[[], Awaitable[object]]) -> None:
    """Again if a busy machine was slower than the editor at each of four tries."""
    while True:
        try:
            await decide()
            return
        except Outdated:
            continue


async def test_an_editor_that_saves_steadily_loses_nothing_and_does_not_keep_the_apply_away(
    path: Path,
) -> None:
    async with open_session(path.parent, [EDIT]) as session:
        await session.chat.submit("change a.txt")
        await session.chat.finished()
        with editor(path, 0.02) as saving:
            await until(lambda: saving.count > 2)
            for _ in range(5):
                await in_the_end(session.review.apply if session.state.review.open else session.review.redo)
                assert "ours 50\n" in path.read_text()
                await in_the_end(session.review.undo)
                assert "line 50\n" in path.read_text()
        assert path.read_text().startswith(f"save {saving.count}\n")


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
async def test_a_lost_race_is_merged_and_tried_again_three_times_and_then_the_person_is_asked(
    path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    monkeypatch.setattr(batch, "NEXT_SAVE", 0.001)
    async with open_session(path.parent, [EDIT]) as session:
        await session.chat.submit("change a.txt")
        await session.chat.finished()
        saving, real = Editor(path, 0), batch._Batch._land_once

        def raced(self: object, at: int) -> None:
            if saving.count < lost:
                saving.save()
            real(self, at)  # ty: ignore[invalid-argument-type]

        monkeypatch.setattr(batch._Batch, "_land_once", raced)
        if lost == 4:
            with pytest.raises(Outdated, match="at each of 4 tries"):
                await session.review.apply()
            assert saving.count == 4, "no more than three times again"
            assert path.read_text().startswith("save 4\n") and "line 50\n" in path.read_text()
            assert session.state.review.changes[0].is_open
        await session.review.apply()
        assert path.read_text().startswith(f"save {saving.count}\n") and "ours 50\n" in path.read_text()
        (change,) = session.state.review.changes
        assert change.state == "applied"
        await session.review.undo()
        assert path.read_text().startswith(f"save {saving.count}\n") and "line 50\n" in path.read_text()


async def test_a_race_with_a_save_of_the_same_lines_is_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_session(path.parent, [EDIT]) as session:
        await session.chat.submit("change a.txt")
        await session.chat.finished()
        real = batch._Batch._land_once

        def raced(self: object, at: int) -> None:
            path.write_text(path.read_text().replace("line 50", "theirs 50"))
            real(self, at)  # ty: ignore[invalid-argument-type]

        monkeypatch.setattr(batch._Batch, "_land_once", raced)
        with pytest.raises(EditFailed, match="conflicts"):
            await session.review.apply()
        assert session.state.review.changes[0].state == "conflict"
        assert "theirs 50\n" in path.read_text()


async def test_what_is_typed_while_it_is_applied_to_a_buffer_is_merged_in(path: Path) -> None:
    async with open_session(path.parent, [EDIT]) as session:
        await session.chat.submit("change a.txt")
        await session.chat.finished()
        await session.files.open("a.txt")
        text = session.state.buffers.open[0].text
        session.files.edit("a.txt", text.replace("line 1\n", "typed 1\n"), (0, 0), (0, 0))
        real = session.review._writer._record

        async def typed_first(done: WriteOutcome, events: Events) -> None:
            session.review._writer._record = real
            now = session.state.buffers.open[0].text
            session.files.edit("a.txt", now.replace("line 3\n", "typed 3\n"), (0, 0), (0, 0))
            await real(done, events)

        setattr(session.review._writer, "_record", typed_first)  # noqa: B010
        await session.review.apply()
        (buffer,) = session.state.buffers.open
        assert buffer.unsaved and not buffer.clash
        for words in ("typed 1\n", "typed 3\n", "ours 50\n"):
            assert words in buffer.text
