"""What moves outside: the index, git's marks, and the hashes that say what the model saw and what is there now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from tui_agent.context.known import Freshness, KnownFile
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import read
from tui_agent.files.text import md5
from tui_agent.session.editing import Editing
from tui_agent.session.journal import Journal
from tui_agent.store import events as e
from tui_agent.turn.reading import MAX_BYTES
from tui_agent.workspace.workspace import Workspace


class Watching:
    """Turns what the workspace reports into events. A batch is a hint to hash, nothing more (K3)."""

    def __init__(self, journal: Journal, workspace: Workspace, editing: Editing) -> None:
        self._journal = journal
        self._workspace = workspace
        self._editing = editing

    async def look_at(self, paths: Iterable[str]) -> None:
        """Some of these paths may have changed: hash those that are known or open."""
        paths = set(paths)
        state = self._journal.store.state
        for path in sorted(paths & state.known.files.keys()):
            await self.check(state.known.files[path])
        for buffer in state.buffers.open:
            if buffer.path in paths:
                await self._editing.look_again(buffer.path)

    async def look_at_everything(self) -> None:
        """After a resume, or when changes may have been missed."""
        state = self._journal.store.state
        await self.look_at([*state.known.files, *(buffer.path for buffer in state.buffers.open)])

    async def check(self, entry: KnownFile) -> None:
        """Say whether a known file is still what the model saw; nothing is said while it stays the same."""
        freshness = await asyncio.to_thread(self._freshness, entry)
        now = self._journal.store.state.known.files.get(entry.path)
        if now is not None and now.md5 == entry.md5 and now.freshness != freshness:
            await self._journal.record(e.FreshnessChanged(entry.path, freshness))

    def _freshness(self, entry: KnownFile) -> Freshness:
        try:
            found = md5(read(self._workspace.gate, entry.path, MAX_BYTES))
        except TuiAgentError:
            return "disk" if (self._workspace.root / entry.path).exists() else "deleted"
        if found == entry.md5:
            return "fresh"
        return "edited" if found == entry.written else "disk"
