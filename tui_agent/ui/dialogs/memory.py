"""Going on with what was being done, after a look at what the model is reminded of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.context.memory import GO_ON, asks_to_go_on
from tui_agent.errors import TuiAgentError
from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.sink import one_line

if TYPE_CHECKING:
    from tui_agent.session.session import Session


async def go_on(app: App[object], session: Session, text: str) -> bool:
    """Show the memory; what the person makes of it is sent with `text`, or with “continue” where that asks for
    something else. False where nothing was sent."""
    words = text if asks_to_go_on(text, 2) else GO_ON[0]

    async def get() -> str | None:
        try:
            memory = await session.memory()
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return None
        if not memory:
            await session.notice("There is nothing to continue yet")
        return memory or None

    dialog = TextDialog(f"What goes with “{one_line(words)}”", get(), keep="send it", wrap=True)
    edited = await app.push_screen_wait(dialog)
    if edited is None or not edited.strip():
        return False
    try:
        await session.go_on(words, edited)
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return False
    return True
