"""Files as the model reads them: a `read_files` result with line numbers and hashes (C3)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from msgspec import Struct

from tui_agent.context.known import LoadedBy


class LoadedFile(Struct, frozen=True):
    """A file's text at one moment. `unsaved` says that it is the editor's text, newer than the disk.

    `action` names what wanted it. `md5` is of the bytes as they are, or would be, on disk.
    """

    path: str
    md5: str
    text: str
    size: int
    loaded_by: LoadedBy
    language: str = ""
    unsaved: bool = False
    action: str = ""

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


def numbered(text: str) -> str:
    """The text with `1: ` and so on before each line, ends of lines made plain."""
    return "\n".join(f"{number}: {line}" for number, line in enumerate(text.splitlines(), 1))


def read_files_result(files: Iterable[LoadedFile], already_sent: dict[str, str]) -> str:
    """The result object as JSON; what `already_sent` holds under the same hash is referred to, not repeated."""
    return json.dumps(
        {"type": "read_files", "files": [_entry(file, already_sent) for file in files]}, ensure_ascii=False
    )


def _entry(file: LoadedFile, already_sent: dict[str, str]) -> dict[str, object]:
    entry: dict[str, object] = {"path": file.path, "md5": file.md5, "lines": file.lines}
    if file.unsaved:
        entry["unsaved"] = True
    if already_sent.get(file.path) == file.md5:
        return entry | {"unchanged": True}
    return entry | {"content": numbered(file.text)}
