"""Open files: loaded, edited, saved over nothing newer, merged with the disk, and restored."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import open_session
from support.trees import make_tree

from tui_agent.errors import Outdated, SessionError
from tui_agent.review import open_files
from tui_agent.session.session import Session
from tui_agent.store.files import Buffer

START = (0, 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {"a.txt": "one\ntwo\nthree\n", "b.txt": "\ufeffb\n"}
    return make_tree(tmp_path / "work", files)


def buffer(session: Session, path: str = "a.txt") -> Buffer:
    found = session.state.buffers.get(path)
    assert found is not None
    return found


def typed(session: Session, text: str, path: str = "a.txt") -> None:
    session.files.edit(path, text, START, START)


async def test_a_file_opens_at_its_lines_and_is_active(root: Path) -> None:
    async with open_session(root, []) as session:
        await session.files.open("a.txt")
        assert (buffer(session).text, buffer(session).unsaved) == ("one\ntwo\nthree\n", False)
        await session.files.open("b.txt", 1)
        assert session.state.buffers.active == "b.txt" and buffer(session, "b.txt").cursor == (0, 0)
        await session.files.open("./a.txt", 2, 3)
        assert session.state.buffers.active == "a.txt"
        assert (buffer(session).anchor, buffer(session).cursor) == ((1, 0), (2, 5))
        await session.files.open("a.txt", 3, 2)
        assert (buffer(session).anchor, buffer(session).cursor) == ((2, 0), (2, 0))
        await session.files.open("a.txt", 1, 99)
        assert buffer(session).cursor == (2, 5)
        assert len(session.state.buffers.open) == 2


async def test_a_file_that_is_no_text_or_too_large_has_a_note(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "picture").write_bytes(b"\x00\xff\xfe")
    (root / "large").write_text("x" * 100)
    monkeypatch.setattr(open_files, "MAX_BYTES", 99)
    async with open_session(root, []) as session:
        for path, words in (("picture", "not UTF-8"), ("large", "larger than"), ("missing", "missing")):
            await session.files.open(path)
            assert words in buffer(session, path).note and buffer(session, path).text == ""
            with pytest.raises(SessionError, match="not open as text"):
                await session.files.save(path)


async def test_text_is_saved_in_its_encoding_and_only_over_what_it_began_with(root: Path) -> None:
    async with open_session(root, []) as session:
        await session.files.open("b.txt")
        typed(session, "c\nd\n", "b.txt")
        assert buffer(session, "b.txt").unsaved
        await session.files.save("b.txt")
        assert (root / "b.txt").read_bytes() == b"\xef\xbb\xbfc\nd\n" and not buffer(session, "b.txt").unsaved
        typed(session, "e\n", "b.txt")
        typed(session, "c\nd\n", "b.txt")
        assert not buffer(session, "b.txt").unsaved, "it is the text on disk again"
        (root / "b.txt").write_text("newer\n")
        typed(session, "mine\n", "b.txt")
        with pytest.raises(Outdated, match="save over it"):
            await session.files.save("b.txt")
        assert buffer(session, "b.txt").clash and (root / "b.txt").read_text() == "newer\n"
        await session.files.save("b.txt", overwrite=True)
        assert (root / "b.txt").read_bytes() == b"\xef\xbb\xbfmine\n" and not buffer(session, "b.txt").clash


async def test_unsaved_text_is_given_up_only_on_request(root: Path) -> None:
    async with open_session(root, []) as session:
        await session.files.open("a.txt")
        typed(session, "mine\n")
        with pytest.raises(SessionError, match="has unsaved text"):
            await session.files.close("a.txt")
        await session.files.reload("a.txt")
        assert buffer(session).text == "one\ntwo\nthree\n"
        typed(session, "mine\n")
        await session.files.close("a.txt", discard=True)
        assert session.state.buffers.open == ()
        for call in (session.files.close, session.files.save):
            with pytest.raises(SessionError, match="is not open"):
                await call("a.txt")


async def test_a_clash_is_merged_place_by_place_and_undone_with_its_file(root: Path) -> None:
    async with open_session(root, []) as session:
        await session.files.open("a.txt")
        mine, theirs = "ONE\ntwo\nthree\n", "uno\ntwo\nTHREE\n"
        typed(session, mine)
        (root / "a.txt").write_text(theirs)
        await session._freshness.check_everything()
        assert buffer(session).clash
        assert buffer(session).text == mine
        view = await session.files.clash("a.txt")
        assert len(view.conflicts) == 1
        with pytest.raises(SessionError, match="changed meanwhile"):
            await session.files.resolve("a.txt", ["yours"], {}, "other")
        await session.files.resolve("a.txt", ["yours"], {}, view.now)
        merged = "ONE\ntwo\nTHREE\n"
        assert (buffer(session).text, buffer(session).clash) == (merged, False) and buffer(session).unsaved
        typed(session, mine)
        assert buffer(session).clash, "the text before the merge is older than the disk"
        typed(session, merged)
        assert not buffer(session).clash
        await session.files.save("a.txt")
        assert (root / "a.txt").read_text() == merged


async def test_a_change_on_disk_is_loaded_unless_something_is_unsaved(root: Path) -> None:
    async with open_session(root, []) as session:
        await session.files.open("a.txt")
        (root / "a.txt").write_text("newer\n")
        await session._freshness.check_everything()
        assert buffer(session).text == "newer\n"
        assert not buffer(session).clash
        (root / "a.txt").unlink()
        await session._freshness.check_everything()
        assert buffer(session).clash
        assert buffer(session).text == "newer\n"
        (root / "a.txt").write_text("newer\n")
        await session._freshness.check_everything()
        assert not buffer(session).clash
        typed(session, "mine\n")
        (root / "a.txt").unlink()
        with pytest.raises(SessionError, match="no longer on disk"):
            await session.files.clash("a.txt")


async def test_a_resume_restores_text_place_and_clash(root: Path) -> None:
    async with open_session(root, []) as session:
        await session.files.open("a.txt")
        await session.files.open("b.txt")
        session.files.edit("a.txt", "mine\n", (0, 2), (0, 1))
        session.files.edit("b.txt", "mine\n", START, START)
        session.files.move_cursor("b.txt", (0, 3), (0, 3))
        await session.files.open("a.txt")
        name = session.state.session.id
    (root / "b.txt").unlink()
    async with open_session(root, [], session=name) as session:
        assert session.state.buffers.active == "a.txt"
        assert (buffer(session).text, buffer(session).cursor, buffer(session).anchor) == (
            "mine\n",
            (0, 2),
            (0, 1),
        )
        assert buffer(session).unsaved and not buffer(session).clash
        assert buffer(session, "b.txt").clash and buffer(session, "b.txt").cursor == (0, 3)
        await session.files.save("b.txt", overwrite=True)
        assert (root / "b.txt").exists()
