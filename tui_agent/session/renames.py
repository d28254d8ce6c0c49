"""Known files that are gone: which of them were renamed, asked of the workspace where that may be news."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence

from tui_agent.context.known import KnownFile, Touch
from tui_agent.errors import ChildFailed
from tui_agent.git.client import Gone
from tui_agent.workspace.workspace import Workspace

#: For so many seconds what is gone may still come back under another name.
LOOKED_FOR = 60.0


class Renames:
    """Remembers when each known file was there last: what lay elsewhere by then is a copy, and no new name of it."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._there_at: dict[str, float] = {}
        #: What was found of a file that is gone ("": nothing), at which revision of the index, and when it was missed.
        self._found: dict[str, tuple[str, int, float]] = {}
        self._one_at_a_time = asyncio.Lock()

    def missing(self, entries: Sequence[KnownFile]) -> list[KnownFile]:
        """Those of the files that are not where they were, nor where they were renamed to. Blocking."""
        self.note(entry.path for entry in entries)
        return [
            entry
            for entry in entries
            if not any(
                path and os.path.lexists(self._workspace.root / path)
                for path in (entry.path, entry.renamed_to)
            )
        ]

    def note(self, paths: Iterable[str]) -> None:
        """Those of the paths that are there are there now. Blocking."""
        now = time.time()
        there = [path for path in paths if os.path.lexists(self._workspace.root / path)]
        self._there_at.update(dict.fromkeys(there, now))
        for path in there:
            self._found.pop(path, None)

    async def find(self, gone: Sequence[KnownFile], touches: Sequence[Touch]) -> dict[str, str]:
        """Where files that are gone are now, by their old paths; those that were deleted are left out.

        For a while a file is looked for again whenever the index has changed: a check-out removes files first.
        """
        async with self._one_at_a_time:
            revision, now = self._workspace.index.revision, time.time()
            wanted = [entry for entry in gone if self._is_due(entry.path, revision, now)]
            if wanted:
                found = await self._ask(wanted, touches)
                for path in (entry.path for entry in wanted):
                    _, _, since = self._found.get(path, ("", 0, now))
                    self._found[path] = found.get(path, ""), revision, since
            answers = {entry.path: self._found.get(entry.path, ("", 0, 0.0))[0] for entry in gone}
        return {path: new for path, new in answers.items() if new}

    def _is_due(self, path: str, revision: int, now: float) -> bool:
        _, asked, since = self._found.get(path, ("", -1, now))
        return asked != revision and now - since < LOOKED_FOR

    async def _ask(self, gone: Sequence[KnownFile], touches: Sequence[Touch]) -> dict[str, str]:
        touched = {touch.path: touch.at for touch in touches if touch.kind in ("read", "edited")}
        files = [self._gone(entry, touched.get(entry.path, 0.0)) for entry in gone]
        try:
            return await self._workspace.repository.renamed(files)
        except ChildFailed:
            return {}  # until the child is there again they count as deleted

    def _gone(self, entry: KnownFile, touched: float) -> Gone:
        hashes = tuple(filter(None, (entry.md5, entry.written)))
        there_at = max(touched, self._there_at.get(entry.path, 0.0))
        return Gone(entry.path, hashes, entry.size, entry.inode, there_at)
