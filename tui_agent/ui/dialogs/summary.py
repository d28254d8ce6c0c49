"""Reading and editing the summary that stands for older messages in what the model is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.errors import TuiAgentError
from tui_agent.ui.dialogs.text import TextDialog

if TYPE_CHECKING:
    from tui_agent.session.session import Session


async def edit_summary(app: App[object], session: Session) -> None:
    """Show the summary; the person's words take its place where they are kept."""
    summary = ""

    async def get() -> str | None:
        nonlocal summary
        try:
            summary = await session.summary()
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return None
        if not summary:
            await session.notice("No message was summarised yet: all that was said is sent as it was")
        return summary or None

    text = await app.push_screen_wait(TextDialog("Summary of older messages", get(), wrap=True))
    if text is not None and text.strip() and text != summary:
        try:
            await session.edit_summary(text)
        except TuiAgentError as error:
            await session.notice(str(error), "error")
