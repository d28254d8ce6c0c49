"""A disk that is full or may not be written, met by an apply and an undo: all or nothing, said, and tried again."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from support.faults import before_each_call, failing_at, tree
from support.sessions import open_session, reply

from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session

NAMES = ("a.txt", "b.txt")
CHANGES = [
    *({"path": name, "edits": [{"search": "one", "replace": "two"}]} for name in NAMES),
    {"path": "new/c.txt", "content": "new\n"},
    {"path": "gone.txt", "delete": True},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in (*NAMES, "gone.txt"):
        (folder / name).write_text("one\n")
    return folder


async def proposed(session: Session) -> None:
    await session.chat.submit("Change a.txt, b.txt and gone.txt")
    await session.chat.finished()
    assert len(session.state.review.open) == len(CHANGES)


#: What needs room; taking something away does not.
NEEDS_ROOM = ("open", "write", "fsync", "mkdir", "link", "rename", "replace")


class FullOnce:
    """The disk is full for one call; the loop's own thread writes to pipes only, which are left alone."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.made = 0

    def __call__(self, _: int, name: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.made += 1
            failing_at(self.number, errno.ENOSPC)(self.made, name)


async def test_a_disk_that_fails_at_any_step_of_an_apply_leaves_the_old_files_or_the_new(root: Path) -> None:
    new = {"a.txt": b"two\n", "b.txt": b"two\n", "new": None, "new/c.txt": b"new\n"}
    async with open_session(root, [reply("Edits.", fileChanges=CHANGES)]) as session:
        await proposed(session)
        old = tree(root)
        write, failed = session.review.apply, 0
        for number in range(1, 300):
            full = FullOnce(number)
            try:
                with before_each_call(full, NEEDS_ROOM):
                    await write()
            except TuiAgentError as error:
                assert "disk is full" in str(error), error
                assert tree(root) == old, number
                failed += 1
                continue
            assert tree(root) == new, number
            if full.made < number:
                break
            await session.review.undo()  # that call was one which may fail
            assert tree(root) == old, number
            write = session.review.redo
        assert failed > 20


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission"),
        (errno.EDQUOT, "quota"),
    ],
)
async def test_a_folder_that_takes_no_file_is_said_and_the_changes_wait(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    real = os.open

    def refusing(path: str, flags: int, *more: int, **named: int) -> int:
        if flags & os.O_CREAT and str(path).startswith(".tui-agent-"):
            raise OSError(code, os.strerror(code))
        return real(path, flags, *more, **named)

    async with open_session(root, [reply("Edits.", fileChanges=CHANGES)]) as session:
        await proposed(session)
        old = tree(root)
        with monkeypatch.context() as broken:
            broken.setattr(os, "open", refusing)
            with pytest.raises(TuiAgentError, match=words) as caught:
                await session.review.apply()
            assert ": " in str(caught.value)
            assert tree(root) == old
        assert len(session.state.review.open) == len(CHANGES)
        assert session.state.review.checkpoints == ()
        await session.review.apply()
        assert tree(root)["a.txt"] == b"two\n"


async def test_a_file_that_is_protected_from_writing_stops_the_whole_batch(root: Path) -> None:
    (root / "b.txt").chmod(0o444)
    async with open_session(root, [reply("Edits.", fileChanges=CHANGES)]) as session:
        await proposed(session)
        old = tree(root)
        with pytest.raises(TuiAgentError, match=r"b\.txt is write-protected.*chmod u\+w b\.txt"):
            await session.review.apply()
        assert tree(root) == old
        why = "b.txt is write-protected: allow it with `chmod u+w b.txt`"
        assert {(one.state, one.reason) for one in session.state.review.open} == {("pending", why)}
        (root / "b.txt").chmod(0o644)
        await session.review.apply()
        assert tree(root)["b.txt"] == b"two\n"
        assert {(one.state, one.reason) for one in session.state.review.changes} == {("applied", "")}


async def test_a_batch_that_was_left_unfinished_is_settled_by_the_next(root: Path) -> None:
    stuck = ("write", "fsync", "rename", "link", "unlink")

    def broken(_: int, name: str) -> None:
        """From the second file on nothing goes any more, not even the way back."""
        nonlocal moved
        if threading.current_thread() is not threading.main_thread() and name in stuck:
            moved += name == "rename"
            if moved > 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    moved = 0
    async with open_session(root, [reply("Edits.", fileChanges=CHANGES)]) as session:
        await proposed(session)
        with before_each_call(broken, stuck), pytest.raises(TuiAgentError, match="could not be undone"):
            await session.review.apply()
        await session.review.apply()
        assert any("a.txt was restored" in one.text for one in session.state.notices.items)
        assert set(tree(root)) == {
            "a.txt",
            "b.txt",
            "new",
            "new/c.txt",
        }
        await session.review.undo()
        assert tree(root)["b.txt"] == b"one\n"
