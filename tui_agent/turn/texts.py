"""Small text files that are looked at before every request, read anew only where they may have changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import FileError, TooLarge, TuiAgentError
from tui_agent.files.gate import Gate, read
from tui_agent.files.stamps import Stamp, is_settled, stamp_of
from tui_agent.files.text import decode, md5


class Text(Struct, frozen=True):
    """A file's text and the hash of its bytes; `fault` is the sentence why there is none."""

    text: str = ""
    md5: str = ""
    fault: str = ""


class Texts:
    """Remembers texts by path with the stamp they had. One thread at a time uses it."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Path, int], tuple[Stamp, Text]] = {}
        self._present: dict[tuple[str, tuple[str, ...]], tuple[Stamp, list[str]]] = {}

    def present(self, folder: str, names: tuple[str, ...]) -> list[str]:
        """Those of `names` that a folder (an absolute path) holds: looked for again where its entries changed."""
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

    def get(self, gate: Gate, path: str, limit: int) -> Text:
        """The text of a file in the workspace of at most `limit` bytes; the fault says why there is none."""
        return self._remembered(gate.root / path, limit, lambda: read(gate, path, limit), path)

    def get_own(self, path: Path, limit: int) -> Text:
        """The text of a file in a folder of the person's own."""
        return self._remembered(path, limit, lambda: _read_own(path, limit), str(path))

    def _remembered(self, place: Path, limit: int, reader: Callable[[], bytes], name: str) -> Text:
        stamp = stamp_of(place)
        seen = self._seen.get((place, limit))
        if seen is not None and seen[0] == stamp:
            return seen[1]
        try:
            data = reader()
            found = Text(decode(data, name).text, md5(data))
        except TuiAgentError as error:
            found = Text(fault=str(error))
        if stamp is not None and is_settled(stamp) and stamp == stamp_of(place):
            self._seen[place, limit] = stamp, found
        return found


def _read_own(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror})", "look at its permissions") from error
    if len(data) > limit:
        raise TooLarge(f"{path} has more than {limit:,} bytes", "make it shorter")
    return data
