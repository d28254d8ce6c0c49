"""Files of tests that look secret, which the person shows to commands in one folder."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tui_agent.files.late_expressions import late
from tui_agent.session.answers import FolderAnswers

STORE: Final = "revealed.json"
#: Paths as tests have them.
OF_TESTS = late(
    r"(?:^|/)(?:tests?|specs?|testdata|testing|fixtures?|__tests__|e2e|spec)/|(?:^|/)\.env\.(?:test|testing|ci)\b"
)


class _Kept(msgspec.Struct, frozen=True):
    offered: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    declined: bool = False


class Revealed:
    """What was offered in a folder, which is done once, and what of it the person shows."""

    def __init__(self, data: Path, root: str) -> None:
        """`data` is the folder of sessions."""
        self._answers = FolderAnswers(data / STORE, Path(root))
        self._found: _Kept | None = None

    @property
    def globs(self) -> tuple[str, ...]:
        """Patterns of the files that are shown. Blocking, once."""
        return tuple(map(glob.escape, self._kept.shown))

    @property
    def waiting(self) -> tuple[str, ...]:
        """What was offered and is not shown."""
        return tuple(path for path in self._kept.offered if path not in self._kept.shown)

    def unoffered(self, emptied: Sequence[str]) -> list[str]:
        """Those of the files that belong to tests and were not offered before; none after a no. Blocking, once."""
        return (
            []
            if self._kept.declined
            else [path for path in emptied if OF_TESTS.search(path) and path not in self._kept.offered]
        )

    def offer(self, paths: Sequence[str]) -> None:
        """Remember that these were offered. Blocking."""
        self._keep(_Kept((*self._kept.offered, *paths), self._kept.shown))

    def show(self) -> tuple[str, ...]:
        """Show from now on what was offered: the files. Blocking. Raises OSError."""
        waiting = self.waiting
        self._found = _Kept(self._kept.offered, (*self._kept.shown, *waiting))
        self._answers.keep(msgspec.to_builtins(self._found))
        return waiting

    def hide(self) -> tuple[str, ...]:
        """Show none from now on, and offer none: the files that are hidden again. Blocking. Raises OSError."""
        shown = self._kept.shown
        self._found = _Kept((*self._kept.offered,), (), declined=True)
        self._answers.keep(msgspec.to_builtins(self._found))
        return shown

    def _keep(self, kept: _Kept) -> None:
        self._found = kept
        try:
            self._answers.keep(msgspec.to_builtins(kept))
        except OSError:
            return  # it is offered again in the next session

    @property
    def _kept(self) -> _Kept:
        if self._found is None:
            try:
                self._found = msgspec.convert(self._answers.get() or {}, _Kept)
            except msgspec.ValidationError:
                self._found = _Kept()
        return self._found
