"""File contents in the prompt: `read_files` results and bundled files, with line numbers and hashes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import force_setattr

from tui_agent.answers.plans import Range, in_words
from tui_agent.context.blocks import inert, json_inert, name
from tui_agent.context.known_files import LoadedBy
from tui_agent.context.portions import LONGEST
from tui_agent.files.text import pieces

#: Average bytes per token of source code, and bytes of a line number.
BYTES_A_TOKEN = 4
NUMBER_BYTES = 5
MASKED = (
    "[masked] stands for secrets that are not shown: leave those places as they are, and edit around them"
)
IN_PART = "only these lines are shown, the others are there: ask for them with read_files and `lines`"


class LoadedFile(Struct, frozen=True):
    """A snapshot of a file's text. `unsaved`: the text is from the editor and newer than the disk.

    `action` names the reason for loading. `md5` is the hash of the bytes on disk, or as they would be
    saved.
    """

    path: str
    md5: str
    text: str
    size: int
    loaded_by: LoadedBy
    language: str = ""
    unsaved: bool = False
    action: str = ""
    #: Whether `text` contains masks for secrets; `md5` and `size` refer to the unmasked file.
    masked: bool = False
    #: Identity of the file on disk; 0 if unknown.
    inode: int = 0
    #: The provider's id of the uploaded text, sent instead of it.
    file_id: str = ""
    #: The lines shown, if not all; `text` is complete.
    ranges: tuple[Range, ...] = ()
    #: Outline by line, if only a part is shown.
    outline: tuple[str, ...] = ()
    #: Number of lines; counted if not given.
    lines: int = -1

    def __post_init__(self) -> None:
        if self.lines < 0:
            force_setattr(self, "lines", sum(len(piece.splitlines()) for piece in pieces(self.text)))

    @property
    def view(self) -> str:
        """Identifies the shown content: the hash, with the line ranges if incomplete."""
        return f"{self.md5}#{in_words(self.ranges)}" if self.ranges else self.md5

    @property
    def numbered(self) -> str:
        return numbered(self.text, self.ranges)


def cost(size: int, lines: int) -> int:
    return (size + NUMBER_BYTES * lines) // BYTES_A_TOKEN


def numbered(text: str, ranges: Sequence[Range] = ()) -> str:
    """The text or its `ranges` with line numbers (`1: `) and normalized line breaks."""
    lines = [line for piece in pieces(text) for line in piece.splitlines()]
    if not ranges:
        return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))
    return "\n…\n".join(
        "\n".join(
            f"{number}: {_cut(lines[number - 1])}" for number in range(first, min(last, len(lines)) + 1)
        )
        for first, last in ranges
    )


def _cut(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    return f"{line[:LONGEST]} [… {len(line) - LONGEST:,} characters left out]"


class FilesInPrompt(Struct, frozen=True):
    """Contents already in the prompt, as hashes by path: sent, written by the model (`proposed`), and in a
    later section of the same message (`attached`)."""

    sent: Mapping[str, str] = {}
    proposed: Mapping[str, str] = {}
    attached: Mapping[str, str] = {}

    def reference(self, file: LoadedFile) -> dict[str, object] | None:
        """The reference that replaces the content, or None."""
        if self.sent.get(file.path) in (file.md5, file.view):
            return {"unchanged": True}
        if self.attached.get(file.path) == file.md5:
            return {"attached": True}
        if self.proposed.get(file.path) == file.md5 and file.loaded_by != "request":
            return {"asProposed": True}
        other = (
            next((path for path, md5 in self.sent.items() if md5 == file.md5), None) if file.size else None
        )
        return {"sameAs": other} if other else None


def read_files_result(files: Iterable[LoadedFile], in_view: FilesInPrompt) -> str:
    """The result object as JSON; contents already in view are references."""
    entries = [_entry(file, in_view) for file in files]
    return json_inert(json.dumps({"type": "read_files", "files": entries}, ensure_ascii=False))


def _entry(file: LoadedFile, in_view: FilesInPrompt) -> dict[str, object]:
    entry: dict[str, object] = {"path": file.path, "md5": file.md5, "lines": file.lines}
    if file.ranges:
        entry |= {"shown": in_words(file.ranges), "part": IN_PART}
        if file.outline:
            entry["outline"] = [inert(line) for line in file.outline]
    if file.unsaved:
        entry["unsaved"] = True
    if file.masked:
        entry["masked"] = MASKED
    reference = in_view.reference(file)
    if reference is None:
        reference = {"fileId": file.file_id} if file.file_id else {"content": inert(file.numbered)}
    return entry | reference


def bundle_section(files: Sequence[LoadedFile]) -> str:
    """The `## AUTO-BUNDLED FILES` section, or "". A file's `action` names its origin."""
    if not files:
        return ""
    return "## AUTO-BUNDLED FILES\n" + "\n\n".join(_bundled(file) for file in files)


def _bundled(file: LoadedFile) -> str:
    facts = f"{file.size} bytes, {file.lines} lines, md5 {file.md5}"
    why = f"\n{name(file.action)}" if file.action else ""
    return f"### {name(file.path)} ({facts}){why}\n{inert(file.numbered)}"
