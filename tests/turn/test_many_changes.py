"""Answers that are far too long, or change far too much: bounded, said, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sessions import open_session, reply

from tui_agent.model.client import Chunk, EndChunk, TextChunk
from tui_agent.session.session import Session
from tui_agent.turn import exchange
from tui_agent.turn import reply as turn_reply

MEGABYTE = 1_000_000


async def turn(session: Session) -> str:
    """Do a turn; what its notices said."""
    await session.chat.submit("Change a.txt")
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return "\n".join(notice.text for notice in session.state.notices.items)


def files(folder: Path) -> list[Path]:
    return list(folder.glob("*.txt"))


async def test_a_diff_of_a_hundred_megabytes_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    sent: list[int] = []

    def diff() -> Iterator[Chunk]:
        yield TextChunk('{"summary": "Much.", "fileChanges": [{"path": "b.txt", "content": "whole"},')
        yield TextChunk('{"path": "a.txt", "diff": "@@ -1 +1 @@\\n-one\\n')
        for number in range(100):
            sent.append(number)
            yield TextChunk("+a line of it\\n" * (MEGABYTE // 15))

    answers: list[Any] = [diff()]
    async with open_session(tmp_path, answers, overrides=("limits.repeat=0",)) as session:
        said = await turn(session)
        assert "more than 4,000,000 letters" in said and "cut off" in said
        assert len(sent) <= exchange.MOST_LETTERS // MEGABYTE + 2
        assert [change.path for change in session.state.review.open] == ["b.txt"]
        assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_ten_thousand_changes_in_one_reply_are_taken_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_reply, "MOST_CHANGES", 10)
    changes = [{"path": f"f{number}.txt", "content": f"{number}\n"} for number in range(10_000)]
    answer = [TextChunk(json.dumps(reply("All.", fileChanges=changes))), EndChunk("stop")]
    other_work = 0

    async def work() -> None:
        nonlocal other_work
        while True:
            await asyncio.sleep(0.001)
            other_work += 1

    async with open_session(tmp_path, [answer]) as session:
        beside = asyncio.create_task(work())
        said = await turn(session)
        beside.cancel()
        assert "10,000 changes: the first 10 were taken" in said
        assert [change.path for change in session.state.review.open] == [f"f{n}.txt" for n in range(10)]
        assert any("10,000 changes" in fact for fact in session.state.conversation.untold)
        assert other_work > 10
        await session.review.apply()
        assert len(files(tmp_path)) == 10
        await session.review.undo()
        assert not files(tmp_path)


async def test_thousands_of_edits_of_one_file_are_one_change(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(2_000)]
    (tmp_path / "a.txt").write_text("".join(lines))
    edits = [{"search": line, "replace": line.upper()} for line in lines]
    one_by_one = [{"path": "a.txt", "edits": [edit]} for edit in edits]
    async with open_session(tmp_path, [reply("All.", fileChanges=one_by_one)]) as session:
        await turn(session)
        assert [(change.added, change.state) for change in session.state.review.changes] == [
            (2_000, "pending")
        ]
        await session.review.apply()
    assert (tmp_path / "a.txt").read_text() == "".join(lines).upper()
