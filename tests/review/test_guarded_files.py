"""Applying everything leaves files that need a decision of their own, each with its reason."""

from __future__ import annotations

import os
from pathlib import Path

from support.repositories import repository
from support.sessions import open_session, reply

from tui_agent.edits.change import Pick

NEW = {
    ".env": "it looks like a secret",
    ".github/workflows/ci.yml": "it governs what programs do",
    "ignored.txt": "it is ignored by git",
    "twin.txt": "whole content over a file",
}


async def test_guarded_files_are_applied_only_by_name(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {".gitignore": "ignored.txt\n", "a.txt": "a\n"})
    (root / "twin.txt").write_text("one\n")
    os.link(root / "twin.txt", tmp_path / "other")
    changes = [{"path": path, "content": "new\n"} for path in (*NEW, "plain.txt")]
    async with open_session(root, [reply("Five files.", fileChanges=changes)]) as session:
        await session.chat.submit("write them")
        await session.chat.finished()
        await session.review.apply()
        assert (root / "plain.txt").read_text() == "new\n"
        assert [change.path for change in session.state.review.open] == list(NEW)
        told = [notice.text for notice in session.state.notices.items]
        for path, why in NEW.items():
            (sentence,) = [text for text in told if text.startswith(f"{path} was not applied with the rest")]
            assert why in sentence
        await session.review.apply([Pick(one.id, None, one.version) for one in session.state.review.open])
        for path in NEW:
            assert (root / path).read_text() == "new\n", path
    assert (tmp_path / "other").read_text() == "one\n" or (root / "twin.txt").samefile(tmp_path / "other")
