"""What moves outside: the index, git's marks, and the hashes that say what the model saw and what is there now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Literal

from tui_agent.context.known import Freshness, KnownFile
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import read
from tui_agent.files.text import md5
from tui_agent.session.editing import Editing
from tui_agent.session.journal import Journal
from tui_agent.store import events as e
from tui_agent.turn.reading import MAX_BYTES
from tui_agent.workspace.workspace import FileChange, GitStatus, Workspace
from tui_agent.workspace.workspace import Watching as WatchState


class Watching:
    """Turns what the workspace reports into events. A batch is a hint to hash, nothing more (K3)."""

    def __init__(self, journal: Journal, workspace: Workspace, editing: Editing) -> None:
        self._journal = journal
        self._workspace = workspace
        self._editing = editing
        self._waiting: set[str] = set()
        self._looking: asyncio.Task[None] | None = None
        self._notices: set[asyncio.Task[None]] = set()

    def on_index(self, files: int, complete: bool) -> None:
        self._journal.tell(e.IndexChanged(files, complete))

    def on_watch(self, state: WatchState, why: str) -> None:
        self._journal.tell(e.WatchChanged(state))
        if state in ("polling", "failed") and why:
            self.on_notice("warning", why)

    def on_status(self, status: GitStatus) -> None:
        self._journal.tell(
            e.GitStatusRead(status.is_repository, status.branch, status.ahead, status.behind, status.marks)
        )

    def on_notice(self, level: Literal["info", "warning", "error"], text: str) -> None:
        task = asyncio.get_running_loop().create_task(self._journal.record(e.NoticeGiven(level, text)))
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    def on_batch(self, changes: Sequence[FileChange]) -> None:
        """Paths that changed wait in one set, so that a burst is looked at once."""
        self._waiting.update(change.path for change in changes)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Nothing is looked at any more."""
        for task in (self._looking, *self._notices):
            if task is not None:
                task.cancel()

    async def _look(self) -> None:
        while self._waiting:
            paths, self._waiting = self._waiting, set()
            await self.look_at(paths)

    async def look_at(self, paths: Iterable[str]) -> None:
        """Some of these paths may have changed: hash those that are known or open."""
        paths = set(paths)
        state = self._journal.store.state
        for path, entry in state.known.files.items():
            if path in paths or _lies_in(path, paths):
                await self.check(entry)
        for buffer in state.buffers.open:
            if buffer.path in paths:
                await self._editing.look_again(buffer.path)

    async def look_at_everything(self) -> None:
        """After a resume, or when changes may have been missed."""
        state = self._journal.store.state
        await self.look_at([*state.known.files, *(buffer.path for buffer in state.buffers.open)])

    async def check(self, entry: KnownFile) -> None:
        """Say whether a known file is still what the model saw; nothing is said while it stays the same."""
        buffer = self._journal.store.state.buffers.get(entry.path)
        if buffer is not None and buffer.unsaved:
            freshness: Freshness = "buffer"
        else:
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


def _lies_in(path: str, folders: set[str]) -> bool:
    """Whether a folder above `path` is among what changed: a folder that is deleted takes its files along."""
    folder = path.rpartition("/")[0]
    while folder:
        if folder in folders:
            return True
        folder = folder.rpartition("/")[0]
    return False
