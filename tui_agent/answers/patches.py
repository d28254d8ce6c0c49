"""Patches of one or many files, taken apart: unified diffs and the `*** Begin Patch` envelope."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from tui_agent.answers.values import ChangeRequest

BEGIN, END = "*** Begin Patch", "*** End Patch"
#: Only on a line of its own: in the middle of one it is talked about, behind a mark it is content.
BEGIN_LINE = re.compile(r"^\*\*\* Begin Patch[ \t]*$", re.MULTILINE)
END_LINE = re.compile(r"^\*\*\* End Patch[ \t]*$", re.MULTILINE)
_FILE_LINE = re.compile(r"\*\*\* (Add|Update|Delete) File:\s*(.+?)\s*$")
_MOVE_LINE = re.compile(r"\*\*\* Move to:\s*(.+?)\s*$")
_GIT_LINE = re.compile(r'diff --git (?:"?a/)?(.+?)"? "?b/(.+?)"?$')
_NOTHING = "/dev/null"
_OCTAL = re.compile(rb"\\([0-7]{3})")
_NO_NEWLINE = "\\ No newline"

SectionKind = Literal["update", "add", "delete"]


class Section(Struct, frozen=True):
    """One file of a patch: its hunks as lines in `body`, in the form that `edits.patch` reads."""

    path: str
    kind: SectionKind
    body: tuple[str, ...] = ()
    rename_to: str | None = None


def is_envelope(text: str) -> bool:
    return BEGIN_LINE.search(text) is not None or any(
        _FILE_LINE.match(line) for line in text.split("\n", 3)[:3]
    )


def sections(text: str) -> tuple[Section, ...]:
    """Every file of a patch in either form; one without any header has an empty path."""
    lines = text.replace("\r\n", "\n").split("\n")
    return tuple(_envelope(lines) if is_envelope(text) else _unified(lines))


def _envelope(lines: list[str]) -> Iterator[Section]:
    path, kind, move, body = "", "", None, []
    for line in [*lines, END]:
        header = _FILE_LINE.match(line)
        if header or line.strip() == END:
            if kind:
                yield Section(path, _KINDS[kind], tuple(body), move)
            kind, move, body = "", None, []
            if header:
                kind, path = header[1], header[2]
        elif (moved := _MOVE_LINE.match(line)) and not body:
            move = moved[1]
        elif kind:
            body.append(line)


_KINDS: dict[str, SectionKind] = {"Add": "add", "Update": "update", "Delete": "delete"}


class _File:
    """One file of a unified diff while its lines are read."""

    def __init__(self, old: str = "", new: str = "") -> None:
        self.old, self.new = old, new
        self.by_git = bool(old)
        self.rename_to: str | None = None
        self.gone = False
        self.body: list[str] = []
        self.touched = bool(old or new)

    def section(self) -> Section:
        kind: SectionKind = "update"
        if self.gone or self.new == _NOTHING:
            kind = "delete"
        elif self.old == _NOTHING:
            kind = "add"
        # Only git means two names as a rename; elsewhere the first may be a copy that was put aside.
        moved = kind == "update" and self.by_git and bool(self.new) and self.old != self.new
        rename = self.rename_to or (self.new if moved else None)
        path = self.old if kind == "delete" or moved or not self.new else self.new
        return Section(path, kind, tuple(self.body), rename)


def _unified(lines: list[str]) -> Iterator[Section]:
    file = _File()
    for number, line in enumerate(lines):
        header = _GIT_LINE.match(line)
        if header or _is_header(lines, number):
            if file.touched and (file.body or file.gone or file.rename_to) and (header or file.body):
                yield file.section()
                file = _File()
            if header:
                file = _File(_unquoted(header[1]), _unquoted(header[2]))
            else:
                file.old, file.touched = _name(line), True
        elif line.startswith("+++ ") and not file.body and number and lines[number - 1].startswith("--- "):
            file.new = _name(line)
        elif not file.body and line.startswith("rename to "):
            file.rename_to = _unquoted(line[10:].strip())
        elif not file.body and line.startswith("deleted file mode"):
            file.gone = True
        elif file.body or line.startswith("@@") or line[:1] in ("+", "-", " "):
            file.body.append(line)
            file.touched = True
    if file.touched and (file.body or file.gone or file.rename_to):
        yield file.section()


def _is_header(lines: list[str], number: int) -> bool:
    """`--- old` counts as a header only with `+++ new` below it and a hunk, or nothing, below that.

    A removed line `-- x` looks the same; it is not followed by both.
    """
    if not lines[number].startswith("--- ") or number + 1 >= len(lines):
        return False
    below = lines[number + 2] if number + 2 < len(lines) else ""
    return lines[number + 1].startswith("+++ ") and (below.startswith("@@") or number == 0 or not below)


def _name(line: str) -> str:
    name = _unquoted(line[4:].split("\t")[0].strip())
    if name == _NOTHING:
        return name
    return name[2:] if name[:2] in ("a/", "b/") else name


def _unquoted(name: str) -> str:
    """A name as git quotes it, with octal bytes, as itself."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    raw = _OCTAL.sub(lambda m: bytes([int(m[1], 8) & 255]), name[1:-1].encode())
    return raw.decode("utf-8", "replace").replace('\\"', '"').replace("\\\\", "\\")


def requests(text: str, like: ChangeRequest) -> list[ChangeRequest]:
    """A patch as one change a file; `like` gives what they share, and the path where only one file is there."""
    found = sections(text)
    alone = len(found) == 1
    return [_request(section, like, alone) for section in found] or [_with(like, like.path, diff=text)]


def _request(section: Section, like: ChangeRequest, alone: bool) -> ChangeRequest:
    path = like.path if alone and like.path else section.path
    rename = section.rename_to if section.rename_to != path else None
    rename = like.rename_to or rename
    match section.kind:
        case "delete":
            return _with(like, path, delete=True)
        case "add":
            return _with(like, path, content=_added(section.body), rename_to=rename)
        case _:
            body = "\n".join(section.body) if section.body else None
            return _with(like, path, diff=body, rename_to=rename)


def _added(body: tuple[str, ...]) -> str:
    lines = [line[1:] for line in body if line.startswith("+")]
    end = "" if any(line.startswith(_NO_NEWLINE) for line in body) or not lines else "\n"
    return "\n".join(lines) + end


def _with(
    like: ChangeRequest,
    path: str,
    content: str | None = None,
    diff: str | None = None,
    delete: bool = False,
    rename_to: str | None = None,
) -> ChangeRequest:
    return ChangeRequest(
        path=path,
        content=content,
        diff=diff,
        delete=delete,
        rename_to=rename_to,
        todo_index=like.todo_index,
        base_hash=like.base_hash,
    )
