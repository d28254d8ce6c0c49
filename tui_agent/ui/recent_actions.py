"""Recent palette actions, stored in the user's state folder."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tui_agent.files.private import make_private, replace_private
from tui_agent.ui.actions import ACTIONS

MOST = 5


class RecentActions:
    """Action ids, newest first. Read and write errors are ignored."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._path: Path | None = None

    async def load(self, folder: Path) -> None:
        """Load the stored ids once, after those of this run."""
        if self._path is None:
            self._path = folder / "recent-actions.json"
            kept = await asyncio.to_thread(_read, self._path)
            self.ids = list(dict.fromkeys((*self.ids, *kept)))[:MOST]

    async def add(self, action: str) -> None:
        self.ids = [action, *(other for other in self.ids if other != action)][:MOST]
        if self._path is not None:
            await asyncio.to_thread(_write, self._path, self.ids)


def _read(path: Path) -> list[str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return [name for name in found if name in ACTIONS] if isinstance(found, list) else []


def _write(path: Path, ids: list[str]) -> None:
    try:
        make_private(path.parent)
        replace_private(path, json.dumps(ids).encode(), sync=False)
    except OSError:
        pass  # kept for this run only
