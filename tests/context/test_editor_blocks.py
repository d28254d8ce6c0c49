"""What the model is told of the editor: the cursor's line, what is selected and what no longer is, what is closed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.sessions import model_of, open_session, reply
from support.trees import make_tree

from tui_agent.session.session import Session


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    lines = "".join(f"line {number}\n" for number in range(1, 9))
    return make_tree(tmp_path / "work", {"a.py": lines, "b.py": "b = 1\n"})


async def told(session: Session) -> str:
    """Do a turn; what the newest message of its request says of the editor."""
    await session.chat.submit("And now?")
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    text = model_of(session).requests[-1].messages[-1]["content"]
    return "".join(re.findall(r"<additional_data>.*</additional_data>", text, re.DOTALL))


#: The cursor and the other end of the selection, the cursor's line, and what is selected where.
SELECTIONS = [
    ((3, 0), (1, 0), 4, "2-3", "line 2\nline 3\n"),
    ((1, 0), (2, 0), 2, "2-2", "line 2\n"),
    ((3, 4), (1, 2), 4, "2-4", "ne 2\nline 3\nline"),
    ((1, 0), (1, 4), 2, "2-2", "line"),
    ((2, 0), (1, 6), 3, "2-2", "\n"),
]


async def test_a_selection_has_its_own_lines_and_the_cursor_its_line(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * len(SELECTIONS)) as session:
        await session.files.open("a.py")
        for cursor, anchor, line, lines, selected in SELECTIONS:
            session.files.move_cursor("a.py", cursor, anchor)
            text = await told(session)
            assert f"Path: a.py\nLine: {line}\nLine content: line {line}\n" in text
            assert f'<manually_added_selection path="a.py" lines="{lines}">\n{selected}\n</' in text


async def test_lines_that_are_opened_are_those_that_are_selected(workspace: Path) -> None:
    async with open_session(workspace, [reply()]) as session:
        await session.files.open("a.py", 2, last_line=4)
        text = await told(session)
        assert 'lines="2-4">\nline 2\nline 3\nline 4\n</' in text and "Line: 4\n" in text


async def test_what_is_no_longer_selected_or_open_is_said_once(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 9) as session:
        await session.files.open("b.py")
        await session.files.open("a.py", 2, last_line=4)
        assert "line 3\nline 4\n</manually_added_selection>" in await told(session)
        session.files.move_cursor("a.py", (3, 0), (3, 0))
        cleared = '<additional_data>\n<manually_added_selection cleared="true"/>\n</additional_data>'
        assert await told(session) == cleared
        assert await told(session) == ""
        await session.files.close("b.py")
        closed = '<attached_files>\n<file_contents path="b.py" closed="true"/>\n</attached_files>'
        assert await told(session) == f"<additional_data>\n{closed}\n</additional_data>"
        await session.files.open("a.py", 2, last_line=4)
        assert "line 3\nline 4\n</manually_added_selection>" in await told(session)
        await session.files.close("a.py")
        text = await told(session)
        assert "<current_file>\nNone\n</current_file>" in text
        assert '<file_contents path="a.py" closed="true"/>' in text and 'cleared="true"' in text
        assert await told(session) == ""
        await session.files.open("a.py")
        assert 'path="a.py" mtime=' in await told(session)
