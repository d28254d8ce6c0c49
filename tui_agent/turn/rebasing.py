"""A proposed change on the file as it is by now: what the model could not know is merged in at once."""

from __future__ import annotations

import asyncio

from tui_agent.edits.change import Change
from tui_agent.edits.rebase import rebased
from tui_agent.errors import EditFailed
from tui_agent.files.text import decode
from tui_agent.turn.desk import Desk
from tui_agent.turn.reading import text_on_disk


async def on_newest(desk: Desk, change: Change) -> Change:
    """The change as it is where the file, or the text of its unsaved buffer, has moved on since it was seen."""
    if not change.is_open:
        return change
    now = await text_on_disk(desk, change.path)
    text, md5 = now or (None, "")
    if md5 == change.base:
        return change
    try:
        return await asyncio.to_thread(_rebased, desk, change, text, md5)
    except EditFailed:
        return change  # what cannot be merged now is looked at again when it is applied


def _rebased(desk: Desk, change: Change, now: str | None, md5: str) -> Change:
    base = decode(desk.blobs.get(change.base)).text if change.base else ""
    new = decode(desk.blobs.get(change.new)).text if change.new else ""
    return rebased(change, base, new, now, md5, desk.blobs.hold_text)
