"""The question whether a workspace is trusted: what it brings, shown before it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.errors import TuiAgentError
from tui_agent.settings import trust
from tui_agent.ui.session_picker import Choice
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.chooser import Chooser, Row

if TYPE_CHECKING:
    from tui_agent.ui.app import WorkspaceApp


async def ask_for_trust(app: WorkspaceApp) -> None:
    """Show the workspace's own settings and filters. With the person's trust the session opens again and uses them."""
    session = app.session
    if session is None:
        return
    root, folders = session.workspace.root, session.folders
    found: list[Row] = []

    async def get() -> None:
        found[:] = await asyncio.to_thread(lambda: rows(trust.standing(root, folders), brought(root)))

    choice = await app.push_screen_wait(
        Chooser("Trust this workspace with what it brings?", lambda _: found, "Enter chooses", get())
    )
    if not choice:
        return
    if choice.startswith(_FILE):
        await session.open_file(choice.removeprefix(_FILE))
        return
    try:
        change = trust.trust if choice == "trust" else trust.revoke
        await asyncio.to_thread(change, root, folders)
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return
    if app.reopen is None or session.state.session.read_only or session.state.session.not_kept:
        await session.notice("In force from the next start on.", "info")
    else:
        await app.switch(Choice(session.state.session.id))


def brought(root: Path) -> list[tuple[str, str]]:
    """What the workspace brings: its files as ("", path), and the filters of its repository as (setting, value)."""
    return [*(("", name) for name in trust.files_of(root)), *trust.filters_of(root)]


def rows(standing: trust.Standing, what: Sequence[tuple[str, str]]) -> list[Row]:
    """Leaving it as it is comes first; a file can be looked at."""
    match standing:
        case "nothing to trust":
            return [Row("", label("It brings no settings and no filters of its own"))]
        case "trusted":
            answers = [Row("", label("Leave it trusted")), Row("revoke", label("Take the trust back"))]
        case _:
            answers = [Row("", label("Leave it untrusted")), Row("trust", label("Trust exactly this"))]
    shown = [
        Row("", label(f"  filter  {setting} = {value}"))
        if setting
        else Row(_FILE + value, label(f"  look at {value}"))
        for setting, value in what
    ]
    return [*answers, *shown]


_FILE = "file:"
