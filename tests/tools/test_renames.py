"""A file that was renamed is found under its old name: when it is asked for, when it is edited, when it is applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.sessions import model_of, open_session, reply
from support.trees import make_repository, make_tree

from tui_agent.errors import EditFailed
from tui_agent.session.session import Session

LINES = "".join(f"value_{number} = {number}\n" for number in range(30))
EDIT = {"path": "src/util.py", "edits": [{"search": "value_7 = 7", "replace": "value_7 = 77"}]}
NEW = "lib/deep/tools.py"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "work", {"src/util.py": LINES, "src/api.py": "x = 1\n"})


def move(root: Path, old: str = "src/util.py", new: str = NEW, text: str = "") -> None:
    (root / new).parent.mkdir(parents=True, exist_ok=True)
    (root / old).rename(root / new)
    if text:
        (root / new).write_text(text)


async def turn(session: Session, request: str) -> str:
    """Do a turn; the newest message of its last request."""
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return model_of(session).requests[-1].messages[-1]["content"]


def attempts(session: Session) -> list[tuple[str, str]]:
    """Who tried what, up to what was found."""
    slots = session.state.plan.actions
    assert slots[-1].attempts[-1].outcome == "hit"
    return [(attempt.by, attempt.pattern) for slot in slots for attempt in slot.attempts]


@pytest.mark.parametrize("edited", [False, True], ids=["moved", "moved and edited in a repository"])
async def test_between_two_runs_by_the_person_and_by_the_model(tmp_path: Path, edited: bool) -> None:
    make = make_repository if edited else make_tree
    root = make(tmp_path / "work", {"src/util.py": LINES, "old/util.py": LINES, "src/api.py": "x = 1\n"})
    async with open_session(root, [reply()]) as session:
        await turn(session, "Look at src/util.py")
        name = session.state.session.id
    move(root, text=LINES + "more = 1\n" if edited else "")
    asks = reply("Needs it.", fileRequests=[{"name": "Util", "patterns": ["src/util.py", "src/utils/*"]}])
    async with open_session(root, [asks, reply(), reply()], session=name) as session:
        text = await turn(session, "Which values are there?")
        assert f"renamed to {NEW}" in str(model_of(session).requests[0].messages[-1]["content"])
        assert attempts(session)[-3:] == [
            ("model", "src/util.py"),
            ("model", "src/utils/*"),
            ("program", NEW),
        ]
        assert f'"path": "{NEW}"' in text
        await turn(session, "Look at src/util.py once more")
        assert attempts(session) == [("program", NEW)]


WHOLE = {"path": "src/util.py", "content": LINES.replace("value_7 = 7", "value_7 = 77")}


@pytest.mark.parametrize(
    ("change", "told", "path"),
    [(EDIT, False, NEW), (WHOLE, False, NEW), (EDIT, True, NEW), (WHOLE, True, "src/util.py")],
    ids=["edits", "content", "edits when told", "a new file there when told"],
)
async def test_what_is_edited_under_the_old_name(
    workspace: Path, change: dict[str, object], told: bool, path: str
) -> None:
    replies = [reply(), *([reply()] if told else []), reply("Edits.", fileChanges=[change])]
    async with open_session(workspace, replies) as session:
        await turn(session, "Look at src/util.py")
        if told:
            move(workspace)
            await turn(session, "And now?")
        else:
            on_request(session, lambda: move(workspace))
        await turn(session, "Change it")
        (proposed,) = session.state.review.changes
        assert (proposed.path, proposed.state) == (path, "pending")
        assert (proposed.kind, proposed.added) == (("create", 30) if path != NEW else ("edit", 1))
        said = [notice.text for notice in session.state.notices.items if "was renamed to" in notice.text]
        assert len(said) == (path == NEW)
        await session.review.apply()
        assert "value_7 = 77" in (workspace / path).read_text()
        assert (workspace / "src/util.py").exists() == (path != NEW)


@pytest.mark.parametrize("conflicts", [False, True])
async def test_a_change_that_waits_and_one_that_was_applied_follow_the_file(
    workspace: Path, conflicts: bool
) -> None:
    async with open_session(workspace, [reply("Edits.", fileChanges=[EDIT]), reply()]) as session:
        await turn(session, "Change src/util.py")
        move(workspace)
        if conflicts:
            await turn(session, "And now?")  # it was found under its new name
            (workspace / NEW).write_text(LINES.replace("value_7 = 7", "mine = 1"))
        if conflicts:
            with pytest.raises(EditFailed, match=NEW):
                await session.review.apply()
            assert [change.path for change in session.state.review.changes] == [NEW]
            return
        await session.review.apply()
        assert "value_7 = 77" in (workspace / NEW).read_text() and not (workspace / "src/util.py").exists()
        assert [(c.path, c.state) for c in session.state.review.changes] == [(NEW, "applied")]
        move(workspace, NEW, "third.py")
        await session.review.undo()
        assert (workspace / "third.py").read_text() == LINES
        await session.review.redo()
        assert "value_7 = 77" in (workspace / "third.py").read_text()


async def test_what_has_an_older_copy_is_deleted(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "work", {"src/util.py": LINES, "old/util.py": LINES})
    async with open_session(root, [reply(), reply()]) as session:
        await turn(session, "Look at src/util.py")
        (root / "src/util.py").unlink()
        assert "| src/util.py | turn 1 | deleted |" in await turn(session, "And now?")


def on_request(session: Session, act: Callable[[], object]) -> None:
    """Do something when the model has been asked and has not answered yet."""
    model, real = model_of(session), model_of(session).stream

    async def stream(request):
        act()
        async for chunk in real(request):
            yield chunk

    model.stream = stream
