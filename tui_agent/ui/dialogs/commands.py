"""List of running and finished commands, with their output."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from textual.app import App

from tui_agent.errors import TuiAgentError
from tui_agent.store.commands import CommandsSlice
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.safe_text import clean, parts
from tui_agent.ui.widgets.command_output import outcome

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host


async def show_commands(app: App[object], session: Session) -> None:
    """Show the commands, newest first; selecting one shows its output."""
    if not session.state.commands.running and not session.state.commands.results:
        await session.notice("No command has run yet: type one in the chat, such as !pytest", "info")
        return
    choose = cast("Host", app).keys.shown("chooser.choose")
    while chosen := await app.push_screen_wait(
        Chooser(
            f"Commands: {choose} shows the output",
            lambda words: command_rows(session.state.commands, words),
            following=session.subscribe,
        )
    ):
        await app.push_screen_wait(TextDialog("Output", _output(session, chosen), keep="back"))


async def _output(session: Session, command: str) -> str | None:
    try:
        return clean(await asyncio.to_thread(session.commands.whole_output, command))
    except TuiAgentError as error:
        await session.notice(str(error), "warning")
        return None


def command_rows(commands: CommandsSlice, words: str) -> list[ChooserRow]:
    """A row per matching command; running ones cannot be opened."""
    rows = [
        ChooserRow("", parts(("● ", "$running"), f"{one.command}  ", (one.line, "$muted")))
        for one in reversed(commands.running)
        if words.lower() in one.command.lower()
    ]
    for one in reversed(commands.results):
        if words.lower() in one.command.lower():
            mark = ("✓ ", "$success") if one.ok else ("✗ ", "$error")
            rows.append(
                ChooserRow(one.id, parts(mark, f"{one.command}  ", (" · ".join(outcome(one)), "$muted")))
            )
    return rows
