"""A conflict of two sub-tasks given back: one of them does its part again, on top of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.edits.change import Change
from tui_agent.errors import TuiAgentError
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.sink import label

if TYPE_CHECKING:
    from tui_agent.session.session import Session


async def give_back(app: App[object], session: Session, change: Change) -> None:
    """Ask which of the two, the one that came second first; nothing happens where the person leaves it."""
    rival = session.state.review.change(change.rival)
    if change.state != "conflict" or rival is None:
        await session.notice(f"{change.path} is not a conflict of two sub-tasks, so neither can get it back")
        return
    rows = [
        ChooserRow(task, label(f"{task} does its part again, on top of the other"))
        for task in dict.fromkeys((*change.tasks, *rival.tasks))
    ]
    chosen = await app.push_screen_wait(
        Chooser(f"Give the conflict in {change.path} back to", lambda _: rows, "Enter chooses")
    )
    if not chosen:
        return
    try:
        await session.subtasks.redo(change.id, chosen)
    except TuiAgentError as error:
        await session.notice(str(error), "error")
