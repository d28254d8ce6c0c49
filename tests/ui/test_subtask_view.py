from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.panes import HOSTILE
from support.repositories import repository
from support.screens import Driven, on_screen
from support.sessions import reply
from support.subtasks import GoalModel

from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask
from tui_agent.ui.dialogs.subtasks import SubTaskView

API = "Give the client timeouts"
EDIT = {"path": "api.py", "edits": [{"search": "a = 1", "replace": "a = 2"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return repository(tmp_path / "work", {"api.py": "a = 1\n"})


@asynccontextmanager
async def at_work(folder: Path, model: GoalModel, *tasks: SubTask) -> AsyncGenerator[Driven]:
    """The screen with the focus on these sub-tasks."""

    def prepare(session: Session) -> None:
        session.models.model = model

    async with on_screen(folder, prepare=prepare) as driven:
        await driven.session.journal.record(e.SubTasksProposed(tasks))
        driven.screen.focus_pane("subtasks")
        await driven.shows(f"Sub-tasks 0/{len(tasks)}")
        yield driven


async def test_its_chat_is_seen_while_it_runs_and_afterwards_and_one_key_stops_it_from_there(folder: Path):
    model = GoalModel(
        {API: [reply("Gives them.", message=f"Now it waits five seconds. {HOSTILE}", fileChanges=[EDIT])]}
    )
    model.held[API] = asyncio.Event()
    async with at_work(folder, model, SubTask("api", API, ("api.py",))) as driven:
        await driven.shows("1 sub-task waits for you")
        await driven.press("enter")
        await driven.shows("has not run yet")
        await driven.press("r")
        await driven.until(lambda: model.open, "the model asked")
        await driven.press("enter")
        await driven.shows(f"▎ {API}")
        assert "● api  running · " in driven.text
        model.held[API].set()
        await driven.shows("✓ api  completed")
        await driven.shows("Now it waits five seconds.")
        assert "[red]x" in driven.text and "\x1b" not in driven.text
        await driven.press("escape")
        await driven.until(lambda: not isinstance(driven.app.screen, SubTaskView), "its chat closed")
        await driven.press("enter")
        await driven.shows("Gives them.")
        await driven.press("escape", "v")
        await driven.until(lambda: driven.session.state.layout.focus == "review", "the review in front")
        assert "a = 2" in driven.text
        driven.screen.focus_pane("subtasks")
        model.held[API] = asyncio.Event()
        await driven.press("t")
        await driven.until(lambda: model.open, "the model asked again")
        await driven.press("enter")
        await driven.shows("● api  running")
        await driven.press("f10")
        await driven.shows("× api  cancelled")
