"""How much is kept for undo and resume, and less of it after a question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.log.cleanup import Cleaned, clean, readable, used
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.sink import label

if TYPE_CHECKING:
    from tui_agent.session.session import Session


async def clean_up(app: App[object], session: Session) -> None:
    """Show what the store of earlier texts holds; remove from it what the person chooses, or nothing."""
    data, limit = session.folders.data, session.loaded.settings.undo.max_bytes
    size = 0

    async def get() -> None:
        nonlocal size
        size = await asyncio.to_thread(used, data)
        chooser.retitle(f"{readable(size)} of {readable(limit)} kept for undo and resume")

    chooser = Chooser("Kept for undo and resume", lambda _: rows(size, limit), "Enter chooses", get())
    choice = await app.push_screen_wait(chooser)
    if not choice:
        return
    target = limit if size > limit else 0
    done = await asyncio.to_thread(clean, data, target, young=choice == "young")
    await session.notice(in_words(done, limit), "warning" if done.why_not else "info")


def rows(size: int, limit: int) -> Sequence[ChooserRow]:
    """Leaving it comes first; over the limit only what is too much goes."""
    down = f", oldest first, down to {readable(limit)}" if size > limit else ""
    return [
        ChooserRow("", label("Leave it")),
        ChooserRow("old", label(f"Remove what is older than 30 days{down}")),
        ChooserRow("young", label(f"Remove younger texts too{down}: what they undo cannot be undone")),
    ]


def in_words(done: Cleaned, limit: int) -> str:
    """What went, what is left, and why not more."""
    freed = f"{done.removed} texts removed ({readable(done.before - done.after)})"
    said = [freed if done.removed else "Nothing was removed"]
    if done.why_not:
        said.append(done.why_not)
    said.append(f"{readable(done.after)} of {readable(limit)} kept for undo and resume")
    return "; ".join(said)
