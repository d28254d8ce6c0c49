"""Values stored per folder for later sessions, such as the user's answers: one JSON entry per path."""

from __future__ import annotations

import json
from pathlib import Path

from tui_agent.files.operating_system import read_start
from tui_agent.files.private import write_private


class FolderAnswers:
    def __init__(self, store: Path, folder: Path) -> None:
        self._store = store
        self._folder = str(folder)

    def get(self) -> object:
        return self._all().get(self._folder)

    def keep(self, answer: object) -> None:
        """Blocking. Raises `OSError`."""
        write_private(self._store, json.dumps({**self._all(), self._folder: answer}).encode())

    def _all(self) -> dict[str, object]:
        try:
            kept = json.loads(read_start(self._store))
        except (OSError, ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) else {}
