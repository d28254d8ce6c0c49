"""The newest version of a file, on disk or unsaved, and changes rebased onto it."""

from __future__ import annotations

import asyncio

from tui_agent.context.known_files import MAX_BYTES
from tui_agent.edits.change import Change
from tui_agent.edits.rebase import rebased
from tui_agent.errors import EditFailed, FileError, PathRefused, TuiAgentError
from tui_agent.files.gate import SecretFinding, find_secrets_in_file, read_for_person
from tui_agent.files.text import decode, encode
from tui_agent.tools.context import ToolContext


def current_secrets(context: ToolContext, path: str) -> SecretFinding | None:
    """Returns None without text. Blocking."""
    buffer = context.state().buffers.get(path)
    newer = buffer.text if buffer is not None and buffer.unsaved else None
    try:
        return find_secrets_in_file(context.workspace.gate, path, MAX_BYTES, newer)
    except TuiAgentError:
        return None


async def text_on_disk(context: ToolContext, path: str) -> tuple[str, str] | None:
    """Returns None if it does not exist."""
    buffer = context.state().buffers.get(path)
    try:
        data = await asyncio.to_thread(read_for_person, context.workspace.gate, path, MAX_BYTES)
    except PathRefused:
        raise
    except FileError:
        if context.workspace.gate.place(path, "read").exists:
            raise
        return None  # The index is updated later.
    newer = buffer.text if buffer is not None and buffer.unsaved else None
    return await asyncio.to_thread(_store_text, context, data, newer)


def _store_text(context: ToolContext, data: bytes, newer: str | None) -> tuple[str, str]:
    """Blocking."""
    text = decode(data)
    if newer is None:
        return text.text, context.blobs.hold(data)
    return newer, context.blobs.hold(encode(text, newer))


async def rebased_on_current(context: ToolContext, change: Change) -> Change:
    if not change.is_open:
        return change
    now = await text_on_disk(context, change.path)
    text, md5 = now or (None, "")
    if md5 == change.base:
        return change
    try:
        return await asyncio.to_thread(_rebased, context, change, text, md5)
    except EditFailed:
        return change  # Merged again when applied.


def _rebased(context: ToolContext, change: Change, now: str | None, md5: str) -> Change:
    base = decode(context.blobs.get(change.base)).text if change.base else ""
    new = decode(context.blobs.get(change.new)).text if change.new else ""
    return rebased(change, base, new, now, md5, context.blobs.hold_text)
