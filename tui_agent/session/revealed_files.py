"""Secret-like test files that the user makes visible to commands in one folder."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tui_agent.files.lazy_regex import late
from tui_agent.session.stored_answers import FolderAnswers

STORE: Final = "revealed.json"
#: Typical paths of tests.
OF_TESTS = late(
    r"(?:^|/)(?:tests?|specs?|testdata|testing|fixtures?|__tests__|e2e|spec)/|(?:^|/)\.env\.(?:test|testing|ci)\b"
)


class _StoredReveal(msgspec.Struct, frozen=True):
    offered: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    declined: bool = False


class RevealedFiles:
    """Each file is offered once per folder."""

    def __init__(self, data: Path, root: str) -> None:
        self._answers = FolderAnswers(data / STORE, Path(root))
        self._found: _StoredReveal | None = None

    @property
    def globs(self) -> tuple[str, ...]:
        """Blocking on first use."""
        return tuple(map(glob.escape, self._stored_answer.shown))

    @property
    def waiting(self) -> tuple[str, ...]:
        return tuple(path for path in self._stored_answer.offered if path not in self._stored_answer.shown)

    def unoffered(self, emptied: Sequence[str]) -> list[str]:
        """Blocking on first use."""
        return (
            []
            if self._stored_answer.declined
            else [
                path for path in emptied if OF_TESTS.search(path) and path not in self._stored_answer.offered
            ]
        )

    def offer(self, paths: Sequence[str]) -> None:
        """Blocking."""
        kept = _StoredReveal((*self._stored_answer.offered, *paths), self._stored_answer.shown)
        self._found = kept
        try:
            self._answers.keep(msgspec.to_builtins(kept))
        except OSError:
            return  # The next session repeats the offer.

    def show(self) -> tuple[str, ...]:
        """Blocking. Raises `OSError`."""
        waiting = self.waiting
        self._found = _StoredReveal(self._stored_answer.offered, (*self._stored_answer.shown, *waiting))
        self._answers.keep(msgspec.to_builtins(self._found))
        return waiting

    def hide(self) -> tuple[str, ...]:
        """Blocking. Raises `OSError`."""
        shown = self._stored_answer.shown
        self._found = _StoredReveal((*self._stored_answer.offered,), (), declined=True)
        self._answers.keep(msgspec.to_builtins(self._found))
        return shown

    @property
    def _stored_answer(self) -> _StoredReveal:
        if self._found is None:
            try:
                self._found = msgspec.convert(self._answers.get() or {}, _StoredReveal)
            except msgspec.ValidationError:
                self._found = _StoredReveal()
        return self._found
