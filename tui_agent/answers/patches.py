"""Findings of an answer (changes, refusals by file, sentences), and multi-file patches."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from tui_agent.answers import file_names, unified
from tui_agent.answers.markers import MOST_LINES, Block
from tui_agent.answers.unified import Closes, Section, SectionKind
from tui_agent.answers.values import ChangeRequest, Refusal

BEGIN, END = "*** Begin Patch", "*** End Patch"
#: Changes, refused files, and sentences about no specific file.
Item = ChangeRequest | Refusal | str

_BEGINS = re.compile(r"(?i)\*\*\*[ \t]{0,4}begin[ \t]{1,4}patch[ \t]*(?:\*\*\*)?[ \t]*$")
_ENDS = re.compile(r"(?i)\*\*\*[ \t]{0,4}end[ \t]{1,4}patch[ \t]*(?:\*\*\*)?[ \t]*$")
_FILE_LINE = re.compile(
    r"(?i)\*\*\*[ \t]{0,4}(Add|Create|New|Update|Modify|Edit|Change|Delete|Remove)[ \t]+File[ \t]*:[ \t]*(\S.*)"
)
_OTHER_LINE = re.compile(r"(?i)\*\*\*[ \t]*[a-z]{2,12}(?P<file>[ \t]+file)?[ \t]*:[ \t]*(?P<path>\S.*)")
_MOVE_LINE = re.compile(r"\*\*\* Move to:[ \t]*(\S.*)")
_KINDS: dict[str, SectionKind] = {
    "add": "add", "create": "add", "new": "add", "update": "update", "modify": "update", "edit": "update",
    "change": "update", "delete": "delete", "remove": "delete",
}  # fmt: skip


def begins_envelope(line: str) -> bool:
    return line.startswith("***") and _BEGINS.match(line) is not None


def is_envelope(text: str) -> bool:
    """An envelope begins on its own line; within a line it is only mentioned, and after a mark it is content."""
    if text.startswith(BEGIN) or f"\n{BEGIN}" in text:
        return any(begins_envelope(line) for line in text.split("\n"))
    return any(_FILE_LINE.match(line) for line in text.split("\n", 3)[:3])


def sections(text: str) -> tuple[Section, ...]:
    """Returns every file of a patch that is all of `text`; a section without a header has an empty path."""
    lines = text.replace("\r\n", "\n").split("\n")
    if is_envelope(text):
        at = next((n for n, line in enumerate(lines) if begins_envelope(line)), -1)
        return tuple(envelope(lines, at + 1, len(lines), ended=at < 0)[0])
    return tuple(unified.read(lines)[0])


def requests(text: str, like: ChangeRequest) -> list[Item]:
    """`like` provides common fields, and the path of an only file."""
    if text.count("\n") > MOST_LINES:
        return [Refusal(like.path, f"its patch has more than {MOST_LINES:,} lines")]
    found = sections(text)
    if len(found) == 1 and like.path:
        [only] = found
        if only.path and only.kind != "update" and not file_names.same_file(only.path, like.path):
            return [Refusal(like.path, f"its patch is about another file, {only.path}")]
        return items([replace(only, path=like.path)], like)
    return items(found, like) or [Refusal(like.path, "its diff contains no changes")]


def items(found: Sequence[Section], like: ChangeRequest) -> list[Item]:
    result: list[Item] = []
    for section in found:
        result.append(_item(section, like))
        if section.note:
            result.append(f"{section.path}: {section.note}.")
    return result


def _item(section: Section, like: ChangeRequest) -> Item:
    path = section.path
    rename = like.rename_to or (section.rename_to if section.rename_to != path else None)
    if section.fault:
        return Refusal(path, section.fault)
    match section.kind:
        case "delete":
            return replace(like, path=path, diff=section.hunks, delete=True, rename_to=None)
        case "add":
            content, executable = section.content, section.executable
            return replace(
                like, path=path, content=content, fresh=True, rename_to=rename, executable=executable
            )
        case _:
            if not (section.hunks or rename) and section.executable is None:
                return Refusal(path, "its diff contains no changes")
            found, executable = section.hunks, section.executable
            return replace(like, path=path, diff=found, rename_to=rename, executable=executable)


# ── the envelope ─────────────────────────────────────────────────────────────────────────────────────────


def envelope(
    lines: Sequence[str], at: int, end: int, *, ended: bool = False, closes: Closes | None = None
) -> tuple[list[Section], int, bool]:
    """Returns the files of an envelope whose first line below `*** Begin Patch` is `at`, the line after it,
    and whether it was closed; `ended`: no end marker is required."""
    found: list[Section] = []
    path, kind, move, body, fault = "", "", None, [], ""

    def section() -> None:
        nonlocal kind, move, body, fault
        if kind:
            empty = kind == "update" and not body and not move
            why = fault or ("its patch changes nothing" if empty else "")
            found.append(unified.section(path, kind, body, move, why))
        kind, move, body, fault = "", None, [], ""

    while at < end:
        line = lines[at]
        if not line.startswith("***"):
            if closes is not None and line[:1] not in ("+", "-", " ", "") and closes(at):
                break
            if kind == "delete" and line.strip() and not line.startswith(("-", "@@")):
                fault = fault or "its patch removes the file and changes lines of it"
            elif kind:
                body.append(line)
        elif (header := _FILE_LINE.match(line)) or _ENDS.match(line):
            section()
            if not header:
                return found, at + 1, True
            kind, path = (
                _KINDS[header[1].lower()],
                file_names.plain(file_names.unquoted(header[2].rstrip().strip("`"))),
            )
        elif (moved := _MOVE_LINE.match(line)) and not body:
            move = file_names.plain(file_names.unquoted(moved[1].rstrip().strip("`")))
        elif begins_envelope(line):
            break
        elif line.strip() == unified.END_OF_FILE and kind:
            body.append(line)
        else:
            unknown = f"its patch holds an unknown line, `{line.strip()[:60]}`"
            if (other := _OTHER_LINE.match(line)) and (not kind or other["file"]):
                section()
                kind, path = (
                    "update",
                    file_names.plain(file_names.unquoted(other["path"].rstrip().strip("`"))),
                )
            kind, fault = kind or "update", fault or unknown
        at += 1
    section()
    return found, at, ended


class Findings:
    """`cut`: the answer is truncated; incomplete items are then reported, not refused."""

    def __init__(self, cut: bool) -> None:
        self.cut = cut
        self.items: list[Item] = []
        #: Incomplete in a truncated answer.
        self.dropped: set[str] = set()

    def say(self, sentence: str) -> None:
        self.items.append(sentence)

    def refuse(self, path: str, why: str) -> None:
        """Adds a refusal, by file if it is known."""
        self.items.append(Refusal(path, why))

    def unfinished(self, path: str, what: str) -> None:
        """Reports an incomplete item, such as "the fenced block"."""
        if self.cut:
            whose = f" for {path}" if path else ""
            self.dropped.add(path)
            self.say(f"{what[:1].upper()}{what[1:]}{whose} is incomplete and was discarded.")
        else:
            self.refuse(path, f"{what} was not finished")

    def sections(self, found: Sequence[Section], path: str = "") -> None:
        for section in found:
            if section.path or section.fault:
                self.items.extend(items([section], ChangeRequest("")))
            elif path:
                self.items.extend(items([replace(section, path=path)], ChangeRequest("")))
            else:
                self.refuse("", "the answer shows a diff without a file name; nothing to apply")

    def envelope(self, lines: Sequence[str], at: int, closes: Closes | None) -> int:
        """Adds the files of the envelope opened at line `at`; returns the line after it."""
        found, end, ended = envelope(lines, at + 1, len(lines), closes=closes)
        if not ended:
            self.say(f"A patch in the answer does not end with {END}; its last file is discarded.")
            last, found = found[-1:], found[:-1]
            self.dropped.update(one.path for one in last)
            if not self.cut:
                self.items.extend(Refusal(one.path, f"its patch does not end with {END}") for one in last)
        if ended and not found:
            self.refuse("", "the answer shows a patch without a file name; nothing to apply")
        self.sections(found)
        return max(end, at + 1)

    def blocks(self, path: str, found: Sequence[Block]) -> None:
        """One file's blocks as one change, or the reason for their refusal."""
        fault = next((block.fault for block in found if block.fault), "")
        if not path:
            self.refuse("", "the answer shows a SEARCH block without a file name; nothing to apply")
        elif found[-1].open:
            self.unfinished(path, "the SEARCH block")
        elif fault:
            self.refuse(path, f"a SEARCH block is not certain: {fault}")
        else:
            edits = tuple(block.edit for block in found if block.edit)
            self.items.append(ChangeRequest(path, edits=edits, fenced=True))
