"""Choosing a session: at the start, when one is open elsewhere, or in the middle of another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.errors import OpenElsewhere, TuiAgentError
from tui_agent.log.fork import fork
from tui_agent.ui.dialogs.session_fork import fork_at_a_turn
from tui_agent.ui.dialogs.sessions import Choice, SessionPicker, elsewhere, naming

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.app import WorkspaceApp

Reopen = Callable[[Choice], Awaitable["Session"]]


async def pick(app: WorkspaceApp, data: Path, workspace: Path, current: str = "") -> Choice | None:
    """Let the person pick one."""
    return await app.push_screen_wait(SessionPicker(data, workspace, current))


async def open_otherwise(app: WorkspaceApp, reopen: Reopen, error: OpenElsewhere) -> Session | None:
    """Ask what to do with a session that is open elsewhere, and do it. None where the person lets it be."""
    match await app.push_screen_wait(elsewhere(error.session, error.what)):
        case "fork":
            return await reopen(Choice(await _forked(error.session)))
        case "read":
            return await reopen(Choice(error.session, read_only=True))
    return None


async def choose_another(app: WorkspaceApp) -> None:
    """Close the session that is open, and go on with another."""
    session = app.session
    if session is None or app.reopen is None:
        app.notify("Only `tui-agent` itself can open another session here.", severity="warning")
        return
    current = session.state.session.id
    choice = await pick(app, session.folders.data, session.workspace.root, current)
    if choice is not None and choice.session != current:
        await app.switch(choice)


async def fork_this(app: WorkspaceApp) -> None:
    """Go on with a copy of the session that is open, as it stood after a turn."""
    session = app.session
    if session is None or app.reopen is None:
        return
    try:
        forked = await fork_at_a_turn(
            app, session.folders.data, session.state.session.id, session.state.turn.number
        )
        if forked:
            await app.switch(Choice(forked))
    except TuiAgentError as error:
        await session.notice(str(error), "error")


async def rename_this(app: WorkspaceApp) -> None:
    """Ask for a name for the session that is open."""
    session = app.session
    if session is not None:
        name = await app.push_screen_wait(naming(session.state.session.name))
        if name:
            await session.rename(name)


async def show_sent(app: WorkspaceApp) -> None:
    """Show what the model was sent."""
    from tui_agent.ui.dialogs.sent import SentView

    if app.session is not None:
        await app.push_screen_wait(SentView(app.session.sent))


async def _forked(session: str) -> str:
    from tui_agent.settings.folders import user_folders

    return (await asyncio.to_thread(fork, user_folders().data, session)).id
