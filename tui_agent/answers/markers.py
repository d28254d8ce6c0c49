"""Markers of edits: search/replace blocks and multi-file patches; and the lines that may hold them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import dropwhile, islice
from typing import overload

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers import file_names, unified
from tui_agent.answers.unified import Closes, Section, SectionKind
from tui_agent.answers.values import ChangeRequest, EditHunk, Refusal
from tui_agent.files.lazy_regex import late

_OPEN = late(r"(<{5,9}|-{5,9}) ?SEARCH>?[ \t]*$")
_CLOSE = late(r"(>{5,9}|\+{5,9}) ?REPLACE[ \t]*$")
_CLOSES = {"<": ">", "-": "+"}
_ANY = late(
    r"[ \t]*(?:[<>]{5,9}[ \t]*[A-Za-z]|[<>|]{7}[ \t]*$|[-=+]{5,9}[ \t]*(?:SEARCH|REPLACE|ORIGINAL|UPDATED)\b)"
)
_OPENS_ANY = late(r"[ \t]*(?:<{5,9}[ \t]*[A-Za-z]|-{5,9}[ \t]*(?:SEARCH|ORIGINAL)\b)")
#: Some tools write it below the opening marker.
_HINT = late(r":(?:start|end)_line:[ \t]*\d+[ \t]*$")
_RULE = "-------"
#: Of a line that tells whether a content is an edit.
_WIDEST = 1000


class Block(Struct, frozen=True):
    """`end` is the line after it. `open`: the closing marker is missing; `end` is then the end of the search."""

    end: int
    edit: EditHunk | None = None
    fault: str = ""
    open: bool = False


def begins_block(line: str) -> bool:
    return _OPEN.match(line) is not None


def resembles_block(line: str) -> bool:
    return _OPENS_ANY.match(line) is not None


def resembles_change(line: str) -> bool:
    return resembles_block(line) or unified.begins_hunk(line) or begins_envelope(line)


def has_marker(line: str) -> bool:
    """Also accepts markers of merge conflicts."""
    return _ANY.match(line) is not None


def read_block(lines: Sequence[str], at: int, marked: Iterable[int]) -> Block:
    """`marked` are sorted numbers of candidate lines. Two dividers, or conflict markers inside, make a block
    ambiguous.
    """
    opening = _OPEN.match(lines[at])
    assert opening is not None
    sign, size = opening[1][0], len(opening[1])
    dividers: list[int] = []
    fault = ""
    last = at
    for number in marked:
        line = lines[number]
        last = number
        if _OPEN.match(line):
            return Block(number, None, "the previous block is incomplete", True)
        closing = _CLOSE.match(line)
        if closing:
            if closing[1][0] != _CLOSES[sign] or len(closing[1]) != size:
                fault = fault or "its last marker does not match its first"
            break
        if line.rstrip() == "=" * size:
            dividers.append(number)
        elif has_marker(line):
            fault = fault or "it contains the markers of a conflict or of another block"
    else:
        return Block(last + 1, None, "a block is incomplete", True)
    if not fault and len(dividers) != 1:
        many = "it contains more than one possible divider"
        fault = many if dividers else "it has no divider"
    if fault:
        return Block(last + 1, None, fault)
    [divider] = dividers
    begin = at + 1
    while begin < divider and _HINT.match(lines[begin]):
        begin += 1
    if begin > at + 1 and begin < divider and lines[begin].rstrip() == _RULE:
        begin += 1
    old, new = _text(lines, begin, divider), _text(lines, divider + 1, last)
    return Block(last + 1, EditHunk(old, new, whole=True))


def _text(lines: Sequence[str], begin: int, end: int) -> str:
    return "".join(lines[number] + "\n" for number in range(begin, end))


_PATCHES = (".patch", ".diff", ".rej", ".mbox", ".eml", ".orig")
#: May begin with a fence or a tag.
_MARKDOWN = (".md", ".markdown", ".mdx", ".rst", ".qmd", ".rmd", ".txt", ".prompt", ".adoc")
_MARKUP = (
    ".html", ".htm", ".xml", ".svg", ".xhtml", ".vue", ".svelte", ".astro", ".jsx", ".tsx", ".xsl", ".php",
)  # fmt: skip

_ENVELOPE = late(r"\*\*\* (?:(?:Begin|End) Patch[ \t]*$|(?:Add|Update|Delete) File:)")
_FENCE = late(r"(?:`{3,}|~{3,})[^`]*$")
_EDIT_TAGS = (
    "write_to_file|replace_in_file|apply_diff|apply_patch|insert_content|search_and_replace|edit_file|create_file"
    "|str_replace|str_replace_editor|str_replace_based_edit_tool|update_file|delete_file|rewrite_file|new_file"
    "|write_file|code_edit|file_edit|file_content|file_change|file_changes|invoke|function_calls|function_call"
    "|tool_call|tool_use|antArtifact|boltArtifact|boltAction|dyad-write|dyad-edit|dyad-rename|dyad-delete"
    "|edits?|search|replace|search_replace|old_str|new_str|diff|patch"
)
#: Some tools' fences; other meanings elsewhere.
_FENCE_TAGS = "source|sourcecode|code|codeblock|pre|file|content|document|artifact|changes?"
TAGS = f"{_EDIT_TAGS}|{_FENCE_TAGS}"
_TAG = late(rf"<(/?)(?:(?P<sure>{_EDIT_TAGS})|(?P<unsure>{_FENCE_TAGS}))(?P<rest>[ \t=>/|][^\n]{{0,400}})?$")
_NAMED = late(
    r"(?:path|file|filename|filepath|file_path|filePath|name|src)[ \t]*=[ \t]*[\"']?([^\"'<>]{1,300})[\"'>]"
)
_NAMED_INSIDE = late(
    r"[ \t]*<(?:path|file_path|filename|file|parameter name=\"(?:path|file_path)\")>([^<>\n]{1,300})</"
)


class Tag:
    """A line that begins with a tag around a change; `sure` if another meaning is unlikely."""

    __slots__ = ("closing", "name", "path", "sure")

    def __init__(self, match: re.Match[str]) -> None:
        self.closing = match[1] == "/"
        self.sure = match["sure"] is not None
        self.name = match["sure"] or match["unsure"]
        named = _NAMED.search(match["rest"] or "")
        self.path = named[1].strip() if named else ""


def tag(line: str) -> Tag | None:
    match = _TAG.match(line.strip()) if len(line) < 1000 else None
    return Tag(match) if match else None


def path_inside(line: str) -> str:
    """Matches `<path>src/a.py</path>`."""
    match = _NAMED_INSIDE.match(line)
    return match[1].strip() if match else ""


def is_markdown(path: str) -> bool:
    return path.lower().endswith(_MARKDOWN)


def may_hold_patches(path: str) -> bool:
    """Whether a patch or documentation may contain edit markers."""
    return path.lower().endswith((*_PATCHES, *_MARKDOWN))


def edit_form(path: str, text: str) -> str:
    """Returns the first line of a content that begins an edit format, or ""."""
    low = path.lower()
    if low.endswith(_PATCHES):
        return ""
    cut = (line[:_WIDEST] for line in StringIO(text))
    lines = [line.rstrip("\n") for line in islice(dropwhile(str.isspace, cut), 3)]
    if not lines:
        return ""
    first = lines[0].strip()
    if (
        resembles_block(first)
        or _ENVELOPE.match(first)
        or unified.begins_hunk(first)
        or unified.begins(lines, 0)
    ):
        return first
    if _FENCE.match(first) and (
        not is_markdown(path) or (low.endswith(".txt") and text.rstrip().endswith(first[:3]))
    ):
        return first
    if not is_markdown(path):
        found = tag(first)
        if found and found.sure and not low.endswith(_MARKUP):
            return first
    return ""


_FENCED = r"[ \t]++(?:`{3}|~{3})"
_HOT = late(
    r"\n(?=[ \t`~<>=@|\d*+d-])(?=[ \t`~<>=@|\d][^\n][^\n]|([-*+])(?:\1|[ \t]++[`~])|diff)"
    r"[ \t]*+(?:>[ \t>]*+)?(?:`{3}|~{3}|[<>]{5}|={5}|\|{7}"
    rf"|-(?:-{{4,8}} ?[A-Z]{{4}}|-- \S|{_FENCED})|\+(?:\+{{4,8}} ?[A-Z]{{4}}|{_FENCED})|\*(?:\*\* ?[A-Za-z]|{_FENCED})"
    rf"|@@|diff --|</?(?:{TAGS})\b|\d{{1,9}}+[.)]{_FENCED})"
)
MOST_HOT = 20_000
MOST_LINES = 300_000
_SLICE = 200_000


class Lines:
    """`hot` holds the numbers of candidate lines. Truncates above the limits."""

    def __init__(self, text: str) -> None:
        self.all: list[str] = []
        self.hot: list[int] = []
        at = 0
        while at < len(text) and not self.excess:
            end = text.find("\n", at + _SLICE)
            end = len(text) if end < 0 else end
            part = "\n" + text[at:end]
            seen, number = 0, len(self.all) - 1
            for match in _HOT.finditer(part):
                number += part.count("\n", seen, match.start() + 1)
                seen = match.start() + 1
                self.hot.append(number)
            if len(self.all) <= MOST_LINES:
                self.all.extend(part[1:].split("\n"))
            at = end + 1

    @property
    def excess(self) -> str:
        if len(self.hot) > MOST_HOT:
            return f"more than {MOST_HOT:,} lines that could belong to a change"
        return f"more than {MOST_LINES:,} lines" if self.hot and len(self.all) > MOST_LINES else ""

    def __len__(self) -> int:
        return len(self.all)

    def next_hot(self, at: int) -> int:
        place = bisect_left(self.hot, at)
        return self.hot[place] if place < len(self.hot) else len(self.all)

    def hot_from(self, at: int) -> Iterator[int]:
        for place in range(bisect_left(self.hot, at), len(self.hot)):
            yield self.hot[place]

    def below(self, at: int) -> int:
        while at < len(self.all) and not self.all[at].strip():
            at += 1
        return at

    def above(self, at: int, floor: int) -> str:
        while at > floor:
            at -= 1
            if self.all[at].strip():
                return self.all[at].strip()
        return ""

    def last(self) -> int:
        end = len(self.all)
        while end and not self.all[end - 1].strip():
            end -= 1
        return end


class DedentedLines(Sequence[str]):
    """Without the fence's indentation. Excludes less indented lines."""

    #: Replaces a less indented line; matches no format.
    LESS = "\0"

    def __init__(self, lines: Sequence[str], prefix: str) -> None:
        self._lines = lines
        self._prefix = prefix

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self._lines)))]
        line = self._lines[at]
        if line.startswith(self._prefix):
            return line[len(self._prefix) :]
        return self.LESS if line.strip() else ""


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
    """An envelope begins on its own line. Within a line it is only mentioned; after a mark it is content."""
    if text.startswith(BEGIN) or f"\n{BEGIN}" in text:
        return any(begins_envelope(line) for line in text.split("\n"))
    return any(_FILE_LINE.match(line) for line in text.split("\n", 3)[:3])


def sections(text: str) -> tuple[Section, ...]:
    """A section without a header has an empty path."""
    lines = text.replace("\r\n", "\n").split("\n")
    if is_envelope(text):
        at = next((n for n, line in enumerate(lines) if begins_envelope(line)), -1)
        return tuple(envelope(lines, at + 1, len(lines), ended=at < 0)[0])
    return tuple(unified.read(lines)[0])


def requests(text: str, like: ChangeRequest) -> list[Item]:
    """`like` provides common fields, and the path of a single file."""
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
        path, hunks, executable = section.path, section.hunks, section.executable
        rename = like.rename_to or (section.rename_to if section.rename_to != path else None)
        if section.fault:
            result.append(Refusal(path, section.fault))
        elif section.kind == "delete":
            result.append(replace(like, path=path, diff=hunks, delete=True, rename_to=None))
        elif section.kind == "add":
            made = replace(like, path=path, content=section.content, fresh=True)
            result.append(replace(made, rename_to=rename, executable=executable))
        elif hunks or rename or executable is not None:
            result.append(replace(like, path=path, diff=hunks, rename_to=rename, executable=executable))
        else:
            result.append(Refusal(path, "its diff contains no changes"))
        if section.note:
            result.append(f"{section.path}: {section.note}.")
    return result


def envelope(
    lines: Sequence[str], at: int, end: int, *, ended: bool = False, closes: Closes | None = None
) -> tuple[list[Section], int, bool]:
    """Returns the files below `*** Begin Patch`, the line after them, and whether it was closed. `ended`: no
    end marker is required.
    """
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
    """`cut`: the answer is truncated, so incomplete items are reported instead of refused."""

    def __init__(self, cut: bool) -> None:
        self.cut = cut
        self.items: list[Item] = []
        self.dropped: set[str] = set()

    def refuse(self, path: str, why: str) -> None:
        self.items.append(Refusal(path, why))

    def unfinished(self, path: str, what: str) -> None:
        if self.cut:
            whose = f" for {path}" if path else ""
            self.dropped.add(path)
            self.items.append(f"{what[:1].upper()}{what[1:]}{whose} is incomplete and was discarded.")
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
        found, end, ended = envelope(lines, at + 1, len(lines), closes=closes)
        if not ended:
            self.items.append(f"A patch in the answer does not end with {END}; its last file is discarded.")
            last, found = found[-1:], found[:-1]
            self.dropped.update(one.path for one in last)
            if not self.cut:
                self.items.extend(Refusal(one.path, f"its patch does not end with {END}") for one in last)
        if ended and not found:
            self.refuse("", "the answer shows a patch without a file name; nothing to apply")
        self.sections(found)
        return max(end, at + 1)

    def blocks(self, path: str, found: Sequence[Block]) -> None:
        fault = next((block.fault for block in found if block.fault), "")
        if not path:
            self.refuse("", "the answer shows a SEARCH block without a file name; nothing to apply")
        elif found[-1].open:
            self.unfinished(path, "the SEARCH block")
        elif fault:
            self.refuse(path, f"a SEARCH block is invalid: {fault}")
        else:
            edits = tuple(block.edit for block in found if block.edit)
            self.items.append(ChangeRequest(path, edits=edits, fenced=True))
