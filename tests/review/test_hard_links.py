"""A file that has another name: what an apply does to that is said before it is done."""

from __future__ import annotations

import os
from pathlib import Path

from support.sessions import open_session, reply

from tui_agent.edits.change import Pick
from tui_agent.files.operating_system import OTHER_NAMES

CHANGES = [{"path": name, "edits": [{"search": "one", "replace": "two"}]} for name in ("a.txt", "b.txt")]


async def test_a_hard_link_is_left_out_with_a_sentence_and_applied_by_name(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("one\n")
    os.link(tmp_path / "a.txt", tmp_path / "other.txt")
    async with open_session(tmp_path, [reply("Both.", fileChanges=CHANGES)]) as session:
        await session.chat.submit("Change a.txt and b.txt")
        await session.chat.finished()
        shown = {change.path: change.reason for change in session.state.review.open}
        assert shown == {"a.txt": OTHER_NAMES, "b.txt": ""}
        await session.review.apply()
        assert [(tmp_path / name).read_text() for name in ("a.txt", "b.txt")] == ["one\n", "two\n"]
        assert "the other names of the file would keep the old text" in session.state.notices.items[-1].text
        (left,) = session.state.review.open
        await session.review.apply([Pick(left.id)])
        assert [(tmp_path / name).read_text() for name in ("a.txt", "other.txt")] == ["two\n", "one\n"]


async def test_a_save_in_the_editor_says_that_the_other_names_keep_the_old_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    os.link(tmp_path / "a.txt", tmp_path / "other.txt")
    async with open_session(tmp_path) as session:
        await session.files.open("a.txt")
        for text in ("two\n", "three\n"):
            session.files.edit("a.txt", text, (0, 0), (0, 0))
            await session.files.save("a.txt")
        assert [(tmp_path / name).read_text() for name in ("a.txt", "other.txt")] == ["three\n", "one\n"]
        said = [notice.text for notice in session.state.notices.items]
        assert sum("its other names keep the old text" in text for text in said) == 1


async def test_a_hard_link_that_is_made_after_the_proposal_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with open_session(tmp_path, [reply("One.", fileChanges=CHANGES[:1])]) as session:
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        os.link(tmp_path / "a.txt", tmp_path / "other.txt")
        await session.review.apply()
        assert [(tmp_path / name).read_text() for name in ("a.txt", "other.txt")] == ["one\n", "one\n"]
        assert OTHER_NAMES in session.state.notices.items[-1].text
