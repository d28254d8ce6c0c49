"""What the model sees by the editor's state alone becomes known: whole, or in part."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from msgspec.structs import replace

from tui_agent.context import editor
from tui_agent.context.known import KnownFile
from tui_agent.errors import TuiAgentError
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.editor_state import open_files
from tui_agent.turn.reading import known_file, load
from tui_agent.turn.secrets import ask


async def see_open_files(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """The open files whose blocks go with the next request, as far as the registry does not have them so."""
    async for event in _look(desk, gathered):
        yield event
    state, files = desk.state(), gathered.opened
    new = editor.new_blocks(editor.blocks(files), state.conversation.blocks)
    taken = {file.path for file in (*gathered.files, *gathered.bundled)}
    for file in editor.attached(files):
        before = state.known.files.get(file.path)
        if f"file:{file.path}" not in new or file.path in taken or not _adds(file, before):
            continue
        try:
            loaded = await load(desk, file.path, "buffer")
        except TuiAgentError:
            continue  # it went from the disk meanwhile; the editor says so
        if loaded.text == file.text:
            entry = known_file(loaded, gathered.turn, before)
            entry = replace(entry, whole=entry.whole and editor.excerpt(file).whole)
            yield e.FileLoaded(entry, at=time.time())


async def _look(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """What the editor shows goes into `gathered.opened`; about secrets in it the person is asked."""
    while True:
        state = desk.state()
        judging = asyncio.to_thread(open_files, desk.workspace.gate, state.buffers, state.secrets)
        gathered.opened, undecided = await judging
        if not undecided:
            return
        if desk.ask is None:
            for error in undecided:
                yield e.NoticeGiven("warning", str(error))
            return
        async for event in ask(desk, gathered, undecided[0]):
            yield event


def _adds(file: editor.OpenFile, before: KnownFile | None) -> bool:
    """An excerpt takes nothing away: what was seen whole stays so, and stale where it is."""
    if before is None:
        return True
    whole = editor.excerpt(file).whole and not file.masked
    return (before.md5 != file.md5 and (whole or not before.whole)) or (whole and not before.whole)
