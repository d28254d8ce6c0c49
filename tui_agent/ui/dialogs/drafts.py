"""Session drafts edited by the user: the summary and the memory."""

from __future__ import annotations

from textual.app import App

from tui_agent.context.memory import GO_ON, asks_to_go_on
from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.safe_text import one_line


async def edit_summary(app: App[object], session: Session) -> None:
    """Edit the summary; the saved text replaces it."""
    summary = ""

    async def get() -> str | None:
        nonlocal summary
        try:
            summary = await session.chat.summary()
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return None
        if not summary:
            await session.notice("No message was summarised yet: all messages are sent complete")
        return summary or None

    text = await app.push_screen_wait(
        TextDialog("Summary of older messages", get(), wrap=True, kept=(session, "summary"))
    )
    if text is not None and text.strip() and text != summary:
        try:
            await session.chat.edit_summary(text)
        except TuiAgentError as error:
            await session.notice(str(error), "error")


async def edit_memory(app: App[object], session: Session, text: str) -> bool:
    """Edit the memory and send it with `text`, or with “continue” if `text` asks for something different.
    Returns whether it was sent."""
    words = text if asks_to_go_on(text, 2) else GO_ON[0]

    async def get() -> str | None:
        try:
            memory = await session.chat.memory()
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return None
        if not memory:
            await session.notice("There is nothing to continue yet")
        return memory or None

    dialog = TextDialog(
        f"Request for “{one_line(words)}”", get(), keep="send it", wrap=True, kept=(session, "memory")
    )
    edited = await app.push_screen_wait(dialog)
    if edited is None or not edited.strip():
        return False
    try:
        await session.chat.go_on(words, edited)
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return False
    return True
