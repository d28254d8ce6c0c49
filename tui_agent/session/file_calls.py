"""What a front end can ask of a session about files: the index, and what is open in the editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.store import events as e
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.log.journal import Journal
    from tui_agent.review.open_files import OpenFiles
    from tui_agent.session.watching import Watching
    from tui_agent.workspace.workspace import Workspace


class FileCalls:
    """The part of a session that is about files; each call is carried out by `OpenFiles` or the index."""

    workspace: Workspace
    journal: Journal
    _open_files: OpenFiles
    _watching: Watching

    @property
    def state(self) -> State:
        raise NotImplementedError

    def paths(self) -> Sequence[str]:
        """Every path of the index, sorted, with `/` between folders."""
        return self.workspace.index.paths

    def folder(self, path: str = "") -> tuple[list[str], list[str]]:
        """The names of the folders and of the files directly in a folder; `""` is the root."""
        return self.workspace.index.folder(path)

    def find(self, query: str, limit: int = 20) -> list[str]:
        """The paths most like `query`, best first: the `@` picker."""
        return self.workspace.index.fuzzy(query, limit)

    async def open_file(self, path: str, line: int = 0, last_line: int = 0) -> None:
        """Open a file in the editor and bring it to the front; `line` counts from 1, 0 is where it was.

        With a `last_line` the lines from one to the other are selected.
        """
        await self._open_files.open(path, line, last_line)

    async def activate_buffer(self, path: str) -> None:
        if self.state.buffers.active != path and self.state.buffers.get(path) is not None:
            await self.journal.record(e.BufferActivated(path))

    def edit_buffer(self, path: str, text: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None:
        """The editor's text is now this; kept within a second. (line, column) count from 0."""
        self._open_files.edit(path, text, cursor, anchor)
        self._watching.on_text(path)

    def move_cursor(self, path: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None:
        self._open_files.move_cursor(path, cursor, anchor)

    def scroll_buffer(self, path: str, scroll: tuple[int, int]) -> None:
        """The editor shows the file from this line and column on."""
        self._open_files.scroll(path, scroll)

    async def save_buffer(self, path: str, overwrite: bool = False) -> None:
        """Write an open file; refused with `Outdated` where the disk has moved on, unless `overwrite`."""
        await self._open_files.save(path, overwrite)
        await self._watching.look_at([path])

    async def reload_buffer(self, path: str) -> None:
        """Take the text from disk; unsaved edits are given up."""
        await self._open_files.load(path)

    async def close_buffer(self, path: str, discard: bool = False) -> None:
        """Close an open file; refused while it has unsaved text, unless `discard`."""
        await self._open_files.close(path, discard)
