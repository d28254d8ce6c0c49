"""A batch is one action without a planner, one todo, one set of changes that one key applies and takes back."""

from __future__ import annotations

from pathlib import Path

from support.sessions import model_of, open_session, reply

from tui_agent.answers.plans import DirectoryAction
from tui_agent.files.gate import Gate
from tui_agent.tools.list_directory import _list
from tui_agent.workspace.index import Index

NAMES = tuple(f"docs/x/step{number}.sh" for number in range(4))


async def test_all_scripts_in_a_folder_are_one_action_one_todo_and_one_apply(tmp_path: Path) -> None:
    (tmp_path / "docs/x").mkdir(parents=True)
    for name in NAMES:
        (tmp_path / name).write_text("set -e\n")
    changes = [{"path": name, "todoIndex": 0, "content": "set -eu\n"} for name in NAMES]
    answer = reply("Stricter.", todos=[{"text": "Make all scripts strict"}], fileChanges=changes)
    async with open_session(tmp_path, [answer], plans=["never asked for"]) as session:
        await session.chat.submit("Update all scripts in docs/x to use set -eu")
        await session.chat.finished()
        state = session.state
        assert state.turn.ok, state.turn.error
        assert [request.purpose for request in model_of(session).requests] == ["main"]
        (action,) = state.plan.actions
        assert (action.action.all, action.loaded) == (True, NAMES)
        assert len(state.todos) == 1 and len(state.review.open) == len(NAMES)
        await session.review.apply()
        assert session.state.todos[0].done and len(session.state.review.checkpoints) == 1
        assert {(tmp_path / name).read_text() for name in NAMES} == {"set -eu\n"}
        await session.review.undo()
        assert {(tmp_path / name).read_text() for name in NAMES} == {"set -e\n"}


def test_a_folder_of_a_hundred_thousand_files_is_listed_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    index = Index(f"big/{number:06}.txt" for number in range(100_000))
    found = _list(Gate(tmp_path), index, DirectoryAction("big"))
    assert (len(found.entries), found.total, found.error) == (100, 100_000, "")
    assert _list(Gate(tmp_path), index, DirectoryAction("big", filter="*99.txt")).total == 1000
