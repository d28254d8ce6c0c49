"""Files of tests that look secret, which the person shows to commands in one folder."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tui_agent.files.late_expressions import late
from tui_agent.git.repository import git
from tui_agent.session.answers import FolderAnswers

STORE: Final = "revealed.json"
#: Paths as tests have them.
OF_TESTS = late(
    r"(?:^|/)(?:tests?|specs?|testdata|testing|fixtures?|__tests__|e2e|spec)/|(?:^|/)\.env\.(?:test|testing|ci)\b"
)


class _Kept(msgspec.Struct, frozen=True):
    offered: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


class Revealed:
    """What was offered in a folder, which is done once, and what of it the person shows."""

    def __init__(self, data: Path, root: str) -> None:
        """`data` is the folder of sessions."""
        self._answers = FolderAnswers(data / STORE, Path(root))
        self._root = root
        self._found: _Kept | None = None

    @property
    def globs(self) -> tuple[str, ...]:
        """Patterns of the files that are shown. Blocking, once."""
        return tuple(map(glob.escape, self._kept.shown))

    @property
    def waiting(self) -> tuple[str, ...]:
        """What was offered and is not shown."""
        return tuple(path for path in self._kept.offered if path not in self._kept.shown)

    def offer(self, emptied: Sequence[str]) -> list[str]:
        """Those of the files that belong to tests, are tracked by git and were not offered before. Blocking."""
        known = self._kept.offered
        new = [path for path in emptied if OF_TESTS.search(path) and path not in known]
        new = _tracked(self._root, new) if new else []
        if new:
            self._keep(_Kept((*known, *new), self._kept.shown))
        return new

    def show(self) -> tuple[str, ...]:
        """Show from now on what was offered: the files. Blocking. Raises OSError."""
        waiting = self.waiting
        self._found = _Kept(self._kept.offered, (*self._kept.shown, *waiting))
        self._answers.keep(msgspec.to_builtins(self._found))
        return waiting

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


def _tracked(root: str, paths: Sequence[str]) -> list[str]:
    """Those of the paths that git keeps; none without a repository."""
    told = git(root, "--literal-pathspecs", "ls-files", "-z", "--", *paths)
    found = {os.fsdecode(name) for name in told.out.split(b"\0")} if told.status == 0 else set()
    return [path for path in paths if path in found]
