"""Ignore files where there is no git: `.gitignore` and `.ignore` in every folder, the nearest wins. Child only."""

from __future__ import annotations

import os
from typing import Final

from pathspec import GitIgnoreSpec

from tui_agent.workspace.walk import Ignores

#: In this order: what `.ignore` says comes later and wins.
IGNORE_FILES: Final = (".gitignore", ".ignore")
MAX_BYTES: Final = 1 << 20


class IgnoreFiles:
    """The rules in force in one folder: those of its own ignore files, and of the folders above it.

    `layers` are (length of the folder's path, its rules), the nearest first.
    """

    def __init__(self, root: str, layers: tuple[tuple[int, GitIgnoreSpec], ...] = ()) -> None:
        self._root = root
        self._layers = layers

    def enter(self, folder: str, names: list[str]) -> Ignores:
        lines = [
            line
            for name in IGNORE_FILES
            if name in names
            for line in _lines(os.path.join(self._root, folder, name))
        ]
        if not lines:
            return self
        return IgnoreFiles(self._root, ((len(folder), GitIgnoreSpec.from_lines(lines)), *self._layers))

    def ignores(self, path: str, is_folder: bool) -> bool:
        for length, rules in self._layers:
            verdict = rules.check_file(path[length:] + ("/" if is_folder else "")).include
            if verdict is not None:
                return verdict
        return False


def rules_for(root: str, folder: str) -> Ignores | None:
    """The rules in force above `folder` (ending in `/`), read from disk; None where they leave it out itself."""
    rules: Ignores = IgnoreFiles(root)
    at = ""
    for part in folder.rstrip("/").split("/"):
        rules = rules.enter(at, list(IGNORE_FILES))
        if rules.ignores(at + part, True):
            return None
        at += part + "/"
    return rules


def _lines(path: str) -> list[str]:
    """The lines of an ignore file; none where it cannot be read. A line that is no pattern is left out."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES).decode(errors="surrogateescape")
    except OSError:
        return []
    return [line for line in text.splitlines() if _is_pattern(line)]


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
