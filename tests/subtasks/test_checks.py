"""Checks of sub-tasks: run in the tree of each; what did not pass is joined with its mark."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.repositories import repository
from support.sessions import reply
from support.subtasks import GoalModel, states, working

from tui_agent.settings.schema import CheckCommand
from tui_agent.store.graph import SubTask
from tui_agent.ui.panes.review_rows import change_rows
from tui_agent.ui.widgets.line_view import Line

TASKS = (SubTask("good", "Make a.py 2", ("a.py",)), SubTask("bad", "Make b.py 3", ("b.py",)))


def made(path: str, value: int) -> dict[str, Any]:
    change = {"path": path, "edits": [{"search": "v = 1", "replace": f"v = {value}"}]}
    return reply(f"{value}.", fileChanges=[change])


@pytest.mark.parametrize("kept", ["settings", "folder"])
async def test_each_runs_them_in_its_own_tree_and_what_did_not_pass_is_marked(
    tmp_path: Path, kept: str
) -> None:
    files = {"a.py": "v = 1\n", "b.py": "v = 1\n", ".gitignore": ".venv\n__pycache__\n"}
    work = repository(tmp_path / "work", files)
    (work / ".venv" / "bin").mkdir(parents=True)
    (work / ".venv" / "pyvenv.cfg").write_text("")
    (work / ".venv" / "bin" / "ours").symlink_to(sys.executable)
    # the program of the folder's own environment, in a tree that has none
    command = "pwd && ours -S -c 'import a, b; assert 3 not in (a.v, b.v)'"
    named = [{"name": "values", "command": command}]
    settings = (
        f"checks.commands={json.dumps(named if kept == 'settings' else [])}",
        "checks.repairs=1",
        "planner_model=none",
    )
    model = GoalModel(
        {
            "Make a.py 2": [made("a.py", 3), made("a.py", 2)],
            "Make b.py 3": [made("b.py", 3), made("b.py", 3)],
        }
    )
    async with working(work, model, TASKS, overrides=settings) as session:
        if kept == "folder":
            await session.checks.accept([CheckCommand("values", command)])
        for task in TASKS:
            await session.subtasks.run(task.id)
            await session.subtasks.settled()
        await session.checks.settled()
        assert states(session) == {"good": "completed", "bad": "completed"}
        marked = {change.path: change.checks for change in session.state.review.open}
        assert marked == {"a.py": (), "b.py": ("values",)}
        lines = [row.line for row in change_rows(session.state.review.open)]
        rows = ["".join(piece.text for piece in line.left) for line in lines if isinstance(line, Line)]
        assert "  failed in its sub-task: values" in rows
        asked = [text for text in map(str, model.requests) if "## CHECK values" in text]
        assert len(asked) == 2
        assert "/worktrees/" in asked[0] and "AssertionError" in asked[0]
        # what they make together is checked as well, in the folder of both
        (mark,) = session.state.check_marks
        assert mark.words == "✗ values"
        assert session.state.commands.results[-1].output.startswith(f"{work}\n")
    assert (work / "a.py").read_text() == "v = 1\n"
