"""The question whether a workspace is trusted: what it brings, shown before it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.errors import TuiAgentError
from tui_agent.files.git_folder import Entries
from tui_agent.settings import trust
from tui_agent.ui.dialogs.chooser import MOST, Chooser, ChooserRow
from tui_agent.ui.dialogs.sessions import Choice
from tui_agent.ui.sink import label

if TYPE_CHECKING:
    from tui_agent.ui.app import WorkspaceApp


async def ask_for_trust(app: WorkspaceApp) -> None:
    """Show the workspace's own settings and filters. With the person's trust the session opens again and uses them."""
    session = app.session
    if session is None:
        return
    root, folders = session.workspace.root, session.folders
    found: list[ChooserRow] = []
    seen: list[trust.TrustedWorkspace] = []

    async def get() -> None:
        standing = await asyncio.to_thread(trust.standing, root, folders)
        entry, filters = await asyncio.to_thread(trust.brought, root)
        if standing == "trusted" and entry.filters != await asyncio.to_thread(
            trust.trusted_filters, root, folders
        ):
            standing = "changed"
        seen[:], found[:] = [entry], rows(standing, filters, list(entry.files))

    choice = await app.push_screen_wait(
        Chooser("Trust this workspace with what it brings?", lambda _: found, "Enter chooses", get())
    )
    if not choice:
        return
    if choice.startswith(_FILE):
        await session.open_file(choice.removeprefix(_FILE))
        return
    try:
        if choice == "trust":
            await asyncio.to_thread(trust.trust, root, folders, seen[0])
        else:
            await asyncio.to_thread(trust.revoke, root, folders)
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return
    if app.reopen is None or session.state.session.read_only or session.state.session.not_kept:
        await session.notice("In force from the next start on.", "info")
    else:
        await app.switch(Choice(session.state.session.id))


def rows(standing: trust.Standing, filters: Entries, files: Sequence[str]) -> list[ChooserRow]:
    """Leaving it as it is comes first, then what would run, in full; a file can be looked at."""
    match standing:
        case "nothing to trust":
            return [ChooserRow("", label("It brings no settings and no filters of its own"))]
        case "trusted":
            answers = [
                ChooserRow("", label("Leave it trusted")),
                ChooserRow("revoke", label("Take the trust back")),
            ]
        case _:
            answers = [
                ChooserRow("", label("Leave it untrusted")),
                ChooserRow("trust", label("Trust exactly this")),
            ]
    commands = [ChooserRow("", label(f"  filter  {setting} = {value}")) for setting, value in filters]
    room = MOST - len(answers) - len(commands) - 1
    if room < 0:
        return [
            answers[0],
            ChooserRow("", label(f"It brings {len(filters):,} settings of filters: too many to be shown")),
        ]
    shown = [ChooserRow(_FILE + name, label(f"  look at {name}")) for name in files[:room]]
    more = [ChooserRow("", label(f"  and {len(files) - room:,} more files"))] if len(files) > room else []
    return [*answers, *commands, *shown, *more]


_FILE = "file:"
