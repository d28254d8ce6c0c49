"""Files of a session: the index and the open files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tui_agent.edits.merge import ConflictView, Side
from tui_agent.log.core import Core, call
from tui_agent.review.open_files import OpenFiles
from tui_agent.session.freshness import FreshnessWatch
from tui_agent.store import events as e
from tui_agent.store.state import State

#: Number of best matches reordered by the picker.
MOST_FITTING = 100


class Files:
    def __init__(self, core: Core, open_files: OpenFiles, freshness: FreshnessWatch) -> None:
        self._journal = core.journal
        self._workspace = core.workspace
        self._open_files = open_files
        self._freshness = freshness

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=False)
    async def ready(self) -> None:
        await self._workspace.ready()

    @call(changes=False)
    def paths(self) -> Sequence[str]:
        """Sorted, with `/` as separator."""
        return self._workspace.index.paths

    @call(changes=False)
    def folder(self, path: str = "") -> tuple[list[str], list[str]]:
        """`""` is the root."""
        return self._workspace.index.folder(path)

    @call(changes=False)
    def find(self, query: str, limit: int = 20) -> list[str]:
        """Best first."""
        return self._workspace.index.fuzzy(query, limit)

    @call(changes=False)
    def suggest(self, query: str, limit: int) -> list[str]:
        """Like `find`, for the `@` picker: open files first, then changed files, then known files."""
        state = self.state
        open_first = [
            buffer.path
            for buffer in sorted(state.buffers.open, key=lambda it: it.path != state.buffers.active)
        ]
        changed = [change.path for change in state.review.open] + list(state.workspace.marks)
        worked_on = list(dict.fromkeys((*open_first, *changed, *state.known.files)))
        place = {path: at for at, path in enumerate(worked_on)}
        if not query.strip():
            found = [
                *(path for path in worked_on if self._workspace.index.contains(path)),
                *self.find("", limit),
            ]
            return list(dict.fromkeys(found))[:limit]
        return sorted(self.find(query, MOST_FITTING), key=lambda path: place.get(path, len(place)))[:limit]

    @call(changes=False)
    async def open(self, path: str, line: int = 0, last_line: int = 0) -> None:
        """`line` counts from 1; 0 keeps the position."""
        await self._open_files.open(path, line, last_line)

    @call(changes=False)
    async def activate(self, path: str) -> None:
        if self.state.buffers.active != path and self.state.buffers.get(path) is not None:
            await self._journal.record(e.BufferActivated(path))

    @call(changes=True)
    def edit(self, path: str, text: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None:
        """Stored within a second. (line, column) count from 0."""
        self._open_files.edit(path, text, cursor, anchor)
        self._freshness.on_text(path)

    @call(changes=False)
    def move_cursor(self, path: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None:
        self._open_files.move_cursor(path, cursor, anchor)

    @call(changes=False)
    def scroll(self, path: str, scroll: tuple[int, int]) -> None:
        self._open_files.scroll(path, scroll)

    @call(changes=True)
    async def save(self, path: str, overwrite: bool = False) -> None:
        """Raises `Outdated` if the disk has changed, unless `overwrite`."""
        await self._open_files.save(path, overwrite)
        await self._freshness.check_paths([path])

    @call(changes=False)
    async def reload(self, path: str) -> None:
        """Discards unsaved edits."""
        await self._open_files.load(path)

    @call(changes=False)
    async def clash(self, path: str) -> ConflictView:
        """See `OpenFiles.clash`."""
        return await self._open_files.clash(path)

    @call(changes=True)
    async def resolve(self, path: str, sides: Sequence[Side], by_hand: Mapping[int, str], seen: str) -> None:
        """See `OpenFiles.resolve`."""
        await self._open_files.resolve(path, sides, by_hand, seen)
        self._freshness.on_text(path)

    @call(changes=False)
    async def close(self, path: str, discard: bool = False) -> None:
        """Fails if it has unsaved text, unless `discard`."""
        await self._open_files.close(path, discard)
