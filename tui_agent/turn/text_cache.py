"""Cache of small text files that are checked before every request and read again only if changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import FileError, LooksSecret, TooLarge, TuiAgentError
from tui_agent.files.gate import (
    Decisions,
    Gate,
    SecretFinding,
    UndecidedSecret,
    find_secrets,
    find_secrets_in_file,
    is_secret,
)
from tui_agent.files.git_folder import read_start
from tui_agent.files.operating_system import Stamp, is_settled, stamp_of
from tui_agent.files.text import decode, md5


class Text(Struct, frozen=True):
    """A file's sendable text and the hash of its bytes; `fault` is the reason if there is no text.

    `undecided` is set if the user can allow it.
    """

    text: str = ""
    md5: str = ""
    fault: str = ""
    undecided: UndecidedSecret | None = None


class Texts:
    """Cached texts by path and file stamp. Concurrent requests for one file read it twice."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Path, int], tuple[Stamp, SecretFinding | str]] = {}
        self._present: dict[tuple[str, tuple[str, ...]], tuple[Stamp, list[str]]] = {}

    def present(self, folder: str, names: tuple[str, ...]) -> list[str]:
        """The existing `names` in a folder (an absolute path), cached until the folder's entries change."""
        stamp = stamp_of(folder)
        if stamp is None:
            return []
        seen = self._present.get((folder, names))
        if seen is not None and seen[0] == stamp:
            return seen[1]
        found = [name for name in names if os.path.lexists(f"{folder}/{name}")]
        if is_settled(stamp):
            self._present[folder, names] = stamp, found
        return found

    def get(self, gate: Gate, path: str, limit: int, decisions: Decisions) -> Text:
        """The text of a workspace file of at most `limit` bytes, or a fault."""

        def read() -> SecretFinding:
            return find_secrets_in_file(gate, path, limit)

        return self._text(gate.root / path, limit, read, decisions)

    def get_own(self, path: Path, limit: int, decisions: Decisions) -> Text:
        """`get` for a file in the user's own folder."""

        def read() -> SecretFinding:
            data = _read_own(path, limit)
            named = is_secret(path.name) or is_secret(os.path.realpath(path))
            return find_secrets(str(path), data, decode(data, str(path)), named)

        return self._text(path, limit, read, decisions)

    def _text(
        self, place: Path, limit: int, reader: Callable[[], SecretFinding], decisions: Decisions
    ) -> Text:
        judged = self._remembered(place, limit, reader)
        if isinstance(judged, str):
            return Text(fault=judged)
        try:
            return Text(judged.shown(decisions)[0], md5(judged.data))
        except UndecidedSecret as error:
            return Text(fault=str(error), undecided=error)
        except LooksSecret as error:
            return Text(fault=str(error))

    def _remembered(
        self, place: Path, limit: int, reader: Callable[[], SecretFinding]
    ) -> SecretFinding | str:
        stamp = stamp_of(place)
        seen = self._seen.get((place, limit))
        if seen is not None and seen[0] == stamp:
            return seen[1]
        try:
            found = reader()
        except TuiAgentError as error:
            found = str(error)
        if stamp is not None and is_settled(stamp) and stamp == stamp_of(place):
            self._seen[place, limit] = stamp, found
        return found


def _read_own(path: Path, limit: int) -> bytes:
    try:
        data = read_start(path, limit + 1)
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror})", "look at its permissions") from error
    if len(data) > limit:
        raise TooLarge(f"{path} has more than {limit:,} bytes", "make it shorter")
    return data
