"""Undo of a file that was made: its folders go with it, it comes back with redo, and it can be proposed again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.faults import tree
from support.sessions import open_session, reply

from tui_agent.edits.change import Pick
from tui_agent.errors import EditFailed

MADE = reply(
    "Makes two files.",
    fileChanges=[
        {"path": "src/new/a.py", "content": "a = 1\n"},
        {"path": "src/new/deep/er/b.py", "content": "b = 1\n"},
    ],
)
AFTER = {
    "src": None,
    "src/here.py": b"x = 1\n",
    "src/new": None,
    "src/new/a.py": b"a = 1\n",
    "src/new/deep": None,
    "src/new/deep/er": None,
    "src/new/deep/er/b.py": b"b = 1\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "here.py").write_text("x = 1\n")
    return folder


async def test_folders_go_and_come_with_their_files_in_a_later_session_too(root: Path) -> None:
    before = tree(root)
    async with open_session(root, [MADE]) as session:
        await session.chat.submit("make them")
        await session.chat.finished()
        await session.review.apply()
        assert tree(root) == AFTER
        await session.review.undo()
        assert tree(root) == before
        await session.review.redo()
        assert tree(root) == AFTER
    async with open_session(root, session="last", services=False) as session:
        await session.review.undo()
        assert tree(root) == before
    async with open_session(root, session="last", services=False) as session:
        await session.review.redo()
        assert tree(root) == AFTER
        (one, two) = session.state.review.changes
        await session.review.revert([Pick(two.id)])
        assert tree(root) == {path: data for path, data in AFTER.items() if "deep" not in path}
        await session.review.redo()  # of what was taken back
        assert tree(root) == AFTER
        await session.review.revert([Pick(one.id), Pick(two.id)])
        assert tree(root) == before


async def test_a_folder_that_somebody_uses_or_made_stays(root: Path) -> None:
    async with open_session(root, [MADE]) as session:
        await session.chat.submit("make them")
        await session.chat.finished()
        await session.review.apply()
        (root / "src/new/mine.txt").write_text("mine")
        await session.review.undo()
        assert tree(root) == {
            "src": None,
            "src/here.py": b"x = 1\n",
            "src/new": None,
            "src/new/mine.txt": b"mine",
        }
        (root / "src/new/mine.txt").unlink()
        (root / "src/new/deep").mkdir()
        await session.review.redo()
        await session.review.undo()
        assert "src/new/deep" in tree(root) or "src/new" not in tree(root)


@pytest.mark.parametrize("content", ["a = 1\n", "a = 2\n"], ids=["the same", "another"])
@pytest.mark.parametrize("way", ["undo", "take back"])
async def test_a_file_that_was_undone_can_be_proposed_again(root: Path, content: str, way: str) -> None:
    first = reply("Makes it.", fileChanges=[{"path": "made/a.py", "content": "a = 1\n"}])
    again = reply("Again.", fileChanges=[{"path": "made/a.py", "content": content}])
    async with open_session(root, [first, again]) as session:
        await session.chat.submit("make made/a.py")
        await session.chat.finished()
        await session.review.apply()
        if way == "undo":
            await session.review.undo()
        else:
            await session.review.revert([Pick(session.state.review.changes[0].id)])
        await session.chat.submit("make it again")
        await session.chat.finished()
        change = session.state.review.changes[-1]
        assert (change.kind, change.state) == ("create", "pending"), change.reason
        await session.review.apply()
        assert tree(root)["made/a.py"] == content.encode()


@pytest.mark.parametrize("kind", ["edit", "delete", "rename"])
async def test_what_was_undone_of_a_file_that_was_there_can_be_proposed_again(root: Path, kind: str) -> None:
    change = {
        "edit": {"path": "src/here.py", "edits": [{"search": "x = 1", "replace": "x = 2"}]},
        "delete": {"path": "src/here.py", "delete": True},
        "rename": {"path": "src/here.py", "renameTo": "src/there.py"},
    }[kind]
    one = reply("Changes it.", fileChanges=[change])
    async with open_session(root, [one, one]) as session:
        await session.chat.submit("change src/here.py")
        await session.chat.finished()
        await session.review.apply()
        done = tree(root)
        await session.review.undo()
        assert tree(root) != done
        await session.chat.submit("once more")
        await session.chat.finished()
        assert session.state.review.changes[-1].state == "pending", session.state.review.changes[-1]
        await session.review.apply()
        assert tree(root) == done


async def test_the_change_that_blocks_a_batch_is_named_with_its_reason(root: Path) -> None:
    changes = [
        {"path": "src/here.py", "edits": [{"search": "nowhere to be found", "replace": "y"}]},
        {"path": "new.py", "content": "new\n"},
    ]
    async with open_session(
        root, [reply("Two.", fileChanges=changes)] * 3, overrides=("max_steps=1",)
    ) as session:
        await session.chat.submit("change src/here.py")
        await session.chat.finished()
        with pytest.raises(EditFailed) as caught:
            await session.review.apply()
        assert "src/here.py (failed: " in caught.value.what
        assert not (root / "new.py").exists()


async def test_more_files_are_not_more_waits_for_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, waits = asyncio.to_thread, 0

    async def counted(work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        nonlocal waits
        waits += 1
        return await real(work, *given, **named)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    taken = []
    for files in (2, 40):
        root = tmp_path / f"{files}"
        root.mkdir()
        made = reply("All.", fileChanges=[{"path": f"{n}.txt", "content": f"{n}\n"} for n in range(files)])
        unwatched = lambda session: setattr(session.workspace, "_watched", False)  # noqa: E731 its news come at any time
        async with open_session(root, [made], prepare=unwatched) as session:
            await session.chat.submit("Make all")
            await session.chat.finished()
            waits = 0
            await session.review.apply()
            await session.review.undo()
            await session.review.redo()
            taken.append(waits)
            assert len(list(root.glob("*.txt"))) == files
    assert taken[1] == taken[0]
