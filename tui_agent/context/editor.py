"""Editor state for the prompt: `<additional_data>` and its blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import md5

from msgspec import Struct

from tui_agent.context.blocks import inert, name, quoted

ATTACHED_FILES = 15
EXCERPT_LINES = 20
#: Characters of a line in an excerpt and of the cursor's line.
LINE_CHARACTERS = 1000
#: Characters of an active file sent whole; of a longer one, the part around the cursor is sent.
WHOLE_CHARACTERS = 400_000


class OpenFile(Struct, frozen=True):
    """`line` is the cursor's, from 1; `selection` spans the lines `first` to `last`. `mtime` is 0 without a
    file. `brief`: the budget allows only an excerpt.
    """

    path: str
    text: str
    md5: str
    line: int = 1
    selection: str = ""
    first: int = 0
    last: int = 0
    unsaved: bool = False
    active: bool = False
    mtime: int = 0
    brief: bool = False
    masked: bool = False


class Excerpt(Struct, frozen=True):
    first: int
    lines: tuple[str, ...]
    total: int
    whole: bool

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def attached(files: Sequence[OpenFile]) -> list[OpenFile]:
    return sorted(files, key=lambda file: (not file.active, -file.mtime, file.path))[:ATTACHED_FILES]


def excerpt(file: OpenFile) -> Excerpt:
    lines = file.text.splitlines()
    if file.active and not file.brief and len(file.text) <= WHOLE_CHARACTERS:
        return Excerpt(1, tuple(lines), len(lines), True)
    first, end = 0, EXCERPT_LINES
    if file.active and not file.brief:
        around = WHOLE_CHARACTERS // LINE_CHARACTERS // 2
        first = max(0, file.line - 1 - around)
        end = first + 2 * around
    shown = lines[first:end]
    whole = len(shown) == len(lines) and all(len(line) <= LINE_CHARACTERS for line in shown)
    return Excerpt(first + 1, tuple(map(_cut, shown)), len(lines), whole)


def blocks(files: Sequence[OpenFile]) -> dict[str, str]:
    active = next((file for file in files if file.active), None)
    found: dict[str, str] = {}
    if active is not None:
        lines = active.text.splitlines()
        words = _cut(lines[active.line - 1]) if 0 < active.line <= len(lines) else ""
        place = f"Path: {name(active.path)}\nLine: {active.line}\nLine content: {inert(words)}"
        found["current_file"] = f"<current_file>\n{place}\n</current_file>"
        if active.selection:
            where = f"path={quoted(active.path)} lines={quoted(f'{active.first}-{active.last}')}"
            found["manually_added_selection"] = (
                f"<manually_added_selection {where}>\n{inert(active.selection)}\n</manually_added_selection>"
            )
    for file in attached(files):
        shown = excerpt(file)
        text = "\n".join(f"{number}: {line}" for number, line in enumerate(shown.lines, shown.first))
        found[f"file:{file.path}"] = f"{_header(file, shown, '>')}\n{inert(text)}\n</file_contents>"
    return found


def references(files: Sequence[OpenFile], in_view: Mapping[str, str]) -> dict[str, str]:
    """Returns blocks for files whose text is in the prompt; `in_view` maps paths to hashes."""
    known = (file for file in attached(files) if in_view.get(file.path) == file.md5)
    return {f"file:{file.path}": _header(file, excerpt(file), ' unchanged="true"/>') for file in known}


def new_blocks(found: Mapping[str, str], sent: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in found.items() if sent.get(name) != digest(text)}


def gone_blocks(found: Mapping[str, str], sent: Mapping[str, str], opened: Collection[str]) -> dict[str, str]:
    gone: dict[str, str] = {}
    for block, mark in sent.items():
        path = block.removeprefix("file:")
        if not mark or block in found:
            continue
        if block == "current_file":
            gone[block] = "<current_file>\nNone\n</current_file>"
        elif block == "manually_added_selection":
            gone[block] = '<manually_added_selection cleared="true"/>'
        elif path not in opened:
            gone[block] = f'<file_contents path={quoted(path)} closed="true"/>'
    return gone


def additional_data(new: Mapping[str, str]) -> str:
    if not new:
        return ""
    parts = [text for name, text in new.items() if name == "current_file"]
    files = [text for name, text in new.items() if name.startswith("file:")]
    if files:
        parts.append("<attached_files>\n" + "\n".join(files) + "\n</attached_files>")
    parts += [text for name, text in new.items() if name == "manually_added_selection"]
    return "<additional_data>\n" + "\n".join(parts) + "\n</additional_data>"


def digest(block: str) -> str:
    return md5(block.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()[:16]


def _header(file: OpenFile, shown: Excerpt, end: str) -> str:
    where = f"path={quoted(file.path)} mtime={quoted(str(file.mtime))}"
    span = f"lines={quoted(f'{shown.first}-{shown.last}')} total_lines={quoted(str(shown.total))}"
    marks = (' unsaved="true"' if file.unsaved else "") + (' masked="true"' if file.masked else "")
    return f"<file_contents {where} {span}{marks}{end}"


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}… ({len(line)} characters)"
