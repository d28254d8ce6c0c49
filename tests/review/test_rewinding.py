"""Files and conversation taken back to before a message, all or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import open_session, reply

from tui_agent.errors import EditFailed, SessionError
from tui_agent.session.session import Session


def change(before: str, after: str, path: str = "a.txt") -> dict[str, object]:
    return reply(f"{after}.", fileChanges=[{"path": path, "edits": [{"search": before, "replace": after}]}])


#: Each turn changes a file; the third changes another one too.
TURNS = [change("one", "two"), change("two", "three"), change("three", "four")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n\n\n\nend\n")
    return root


async def work(session: Session, count: int) -> None:
    for turn in range(1, count + 1):
        await session.chat.submit(f"Turn {turn}")
        await session.chat.finished()
        await session.review.apply()


@pytest.mark.parametrize(("turn", "text"), [(3, "three"), (2, "two"), (1, "one")])
async def test_both_are_as_they_were_before_the_message(root: Path, turn: int, text: str) -> None:
    async with open_session(root, TURNS) as session:
        await work(session, 3)
        (root / "a.txt").write_text((root / "a.txt").read_text().replace("end", "end, by hand"))
        copy = await session.rewind(turn)
        assert (root / "a.txt").read_text() == f"{text}\n\n\n\nend, by hand\n"
    async with open_session(root, session=copy) as session:
        sent = [message.text for message in session.state.chat.messages if message.kind == "person"]
        assert sent == [f"Turn {number}" for number in range(1, turn)]
        assert len([point for point in session.state.review.checkpoints if not point.undone]) == turn - 1
        assert (root / "a.txt").read_text().startswith(text)


async def test_an_apply_that_was_undone_meanwhile_is_done_again(root: Path) -> None:
    async with open_session(root, [*TURNS[:1], reply("Nothing.")]) as session:
        await work(session, 1)
        await session.chat.submit("Turn 2")
        await session.chat.finished()
        await session.review.undo()
        assert (root / "a.txt").read_text().startswith("one")
        await session.rewind(2)
        assert (root / "a.txt").read_text().startswith("two")


async def test_a_conflict_leaves_all_files_as_they_are(root: Path) -> None:
    (root / "b.txt").write_text("one\n")
    async with open_session(root, [TURNS[0], change("one", "two", "b.txt")]) as session:
        await work(session, 2)
        (root / "a.txt").write_text("by hand\n\n\n\nend\n")
        with pytest.raises(EditFailed):
            await session.rewind(1)
        assert (root / "a.txt").read_text() == "by hand\n\n\n\nend\n"
        assert (root / "b.txt").read_text() == "two\n"


async def test_a_running_turn_is_not_taken_back(root: Path) -> None:
    async with open_session(root, [reply("Hello.")]) as session:
        await session.chat.submit("Turn 1")
        with pytest.raises(SessionError, match="A turn is running"):
            await session.rewind(1)
        await session.chat.finished()
