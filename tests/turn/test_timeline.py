"""The timeline of a file: who did what to it, and the program's own writes are never somebody else's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.sessions import model_of, open_session, reply
from support.trees import make_tree

from tui_agent.edits.change import Pick
from tui_agent.headless.event_lines import lines
from tui_agent.session.session import Session

TEXT = "def fetch(url):\n    return get(url)\n\n\ndef push(url):\n    return post(url)\n"
EDIT = {"path": "api.py", "edits": [{"search": "get(url)", "replace": "get(url, 5)"}]}
MINE = TEXT.replace("post(url)", "post(url, mine)")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "work", {"api.py": TEXT, "b.py": "b = 1\n"})


async def turn(session: Session, request: str = "Look at api.py") -> str:
    """Do a turn; the newest message of its last request."""
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return model_of(session).requests[-1].messages[-1]["content"]


def kinds(session: Session, path: str = "api.py") -> list[str]:
    return [touch.kind for touch in session.state.known.touches if touch.path == path]


@pytest.mark.parametrize(
    ("change", "path", "told"),
    [
        (EDIT, "api.py", ["read", "edited", "undone", "edited", "undone"]),
        ({**EDIT, "renameTo": "c.py"}, "api.py", ["read", "edited", "undone", "edited", "undone"]),
        ({**EDIT, "renameTo": "c.py"}, "c.py", ["edited", "undone", "edited", "undone"]),
        ({"path": "new.py", "content": "n = 1\n"}, "new.py", ["edited", "undone", "edited", "undone"]),
        ({"path": "api.py", "delete": True}, "api.py", ["read", "edited", "undone", "edited", "undone"]),
    ],
    ids=["edit", "rename, the old name", "rename, the new name", "create", "delete"],
)
async def test_what_is_applied_undone_and_done_again_is_nobody_elses(
    workspace: Path, change: dict[str, object], path: str, told: list[str]
) -> None:
    async with open_session(workspace, [reply(fileChanges=[change])]) as session:
        await turn(session)
        told_json: list[dict[str, Any]] = []
        session.subscribe(lambda event, state: told_json.extend(lines(event, state)))
        for act in (
            session.review.apply,
            session.review.undo,
            session.review.redo,
            lambda: session.review.revert([Pick("c1.1")]),
        ):
            looks = asyncio.gather(*(session._freshness.check_known_files() for _ in range(20)))
            await act()
            await looks
            await session._freshness.check_known_files()
        assert kinds(session, path) == told
        stale = {line["cause"] for line in told_json if line["type"] == "stale"}
        assert stale == {"undo"}, "nobody else's"


async def test_a_batch_that_is_being_written_is_not_half_seen(workspace: Path) -> None:
    make_tree(workspace, {f"many/f{number}.py": f"n = {number}\n" for number in range(30)})
    edits = [
        {"path": f"many/f{n}.py", "edits": [{"search": f"n = {n}", "replace": f"n = {n}{n}"}]}
        for n in range(30)
    ]
    async with open_session(workspace, [reply(fileChanges=edits)]) as session:
        await turn(session, "Look at all files in many/")
        applied = asyncio.create_task(session.review.apply())
        while not applied.done():
            await session._freshness.check_known_files()
        await applied
        assert {touch.kind for touch in session.state.known.touches} == {"read", "edited"}


@pytest.mark.parametrize("seen", [True, False], ids=["known", "edited unseen"])
async def test_what_was_merged_at_apply_has_its_entry(workspace: Path, seen: bool) -> None:
    async with open_session(workspace, [reply(fileChanges=[EDIT]), reply()], services=False) as session:
        session.workspace.start()
        await turn(session, "Look at api.py" if seen else "Add a timeout")
        (workspace / "api.py").write_text(MINE)
        await session.review.apply()
        assert "5" in (workspace / "api.py").read_text() and "mine" in (workspace / "api.py").read_text()
        assert kinds(session) == [*(["read"] if seen else []), "changed outside", "edited"]
        last = session.state.known.touches[-1]
        assert 0 < last.outside_at <= last.edited_at
        (workspace / "api.py").write_text("# again\n" + (workspace / "api.py").read_text())
        await session.review.undo()
        assert kinds(session)[-2:] == ["changed outside", "undone"]


async def test_what_the_agent_edits_it_has_read(workspace: Path) -> None:
    async with open_session(workspace, [reply(fileChanges=[EDIT])]) as session:
        await turn(session)
        await session.review.apply()
        read, edited = session.state.known.touches
        assert edited.read_at == edited.edited_at == edited.at > read.read_at
        await session.review.undo()
        undone = session.state.known.touches[-1]
        assert (undone.read_at, undone.edited_at, undone.outside_at) == (edited.at, edited.at, 0.0)


async def test_what_was_edited_unseen_is_not_listed_as_seen(workspace: Path) -> None:
    async with open_session(workspace, [reply(fileChanges=[EDIT]), reply(), reply()]) as session:
        await turn(session, "Add a timeout")
        await session.review.apply()
        text = await turn(session, "And now?")
        assert "| api.py | never | ⚠️ Yes (turn 1) |" in text
        text = await turn(session, "Look at api.py")
        assert "2:     return get(url, 5)" in text and "asProposed" not in text
