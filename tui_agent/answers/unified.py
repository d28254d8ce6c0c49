"""Unified diffs by git and models. Hunk counts or the fence determine the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from tui_agent.answers import file_names
from tui_agent.answers.values import EditHunk
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number

HEADER = late(r"@@+ ?-(\d{1,9})(?:,(\d{1,9}))? +\+(\d{1,9})(?:,(\d{1,9}))? *(?:@@|\s|$)")
END_OF_FILE = "*** End of File"
#: Text after `@@` other than a line of the file: `...`, or unreadable numbers such as `-XX,7 +XX,8`.
_NO_ANCHOR = re.compile(
    r"[\s.…]*(?:@@|$)|(?:\.{3}|…).*(?:\.{3}|…)|-[\w?.,]*[ \t]+\+[\w?.,]*(?:\s|$)"
    r"|\(?(?i:lines?[ \t]*)?[-+]?\d[\d,+ -]*\)?(?:@@|$)"
)
_NO_NEWLINE = "\\ No newline"


class _Open:
    def __init__(self, header: re.Match[str] | None = None) -> None:
        self.header = header
        self.anchors: list[str] = []
        self.old: list[str] = []
        self.new: list[str] = []
        self.marks: list[str] = []
        self.blank = 0
        self.ends_file = False
        self.without_newline: set[str] = set()

    def add(self, line: str) -> None:
        if not line:
            self.blank += 1
            return
        for _ in range(self.blank):
            self._take(" ", "")
        self.blank = 0
        mark = line[0]
        if mark in "+- ":
            self._take(mark, line[1:])
        else:
            self._take(" ", line)

    def _take(self, mark: str, text: str) -> None:
        self.marks.append(mark)
        if mark != "+":
            self.old.append(text)
        if mark != "-":
            self.new.append(text)

    def end_line(self) -> None:
        mark = self.marks[-1] if self.marks else " "
        self.without_newline.update("-+" if mark == " " else mark)

    def hunk(self, moved: int) -> EditHunk:
        return EditHunk(
            "\n".join([*self.old, ""]),
            "\n".join([*self.new, ""]),
            whole=True,
            line=self._line(moved),
            anchors=tuple(self.anchors),
            ends_file=self.ends_file,
            final_newline="+" not in self.without_newline if self.without_newline else None,
            marks="".join(self.marks),
        )

    def _line(self, moved: int) -> int | None:
        if self.header is None:
            return None
        starts = []
        for start, count, lines in ((1, 2, len(self.old)), (3, 4, len(self.new))):
            said = whole_number(self.header[count], 1)
            if not lines <= said <= lines + self.blank:
                return None
            starts.append(whole_number(self.header[start]) - (said > 0))
        return starts[0] if starts[1] - starts[0] == moved else None


def hunks_of(body: Sequence[str]) -> tuple[EditHunk, ...]:
    """Lines without `@@` form one hunk."""
    found: list[_Open] = []
    current = _Open()
    begun = False
    for line in body:
        if line.startswith("@@"):
            begun = True
            header = HEADER.match(line)
            if current.marks or header:
                found.append(current)
                current = _Open(header)
            current.blank = 0
            anchor = line.strip("@ \t")
            if header is None and not _NO_ANCHOR.match(anchor):
                current.anchors.append(anchor)
        elif line.startswith("\\ "):
            current.end_line()
        elif line.strip() == END_OF_FILE:
            current.ends_file = True
        elif line or begun or current.marks:
            current.add(line)
    result: list[EditHunk] = []
    moved = 0
    for one in [*found, current]:
        if one.marks:
            result.append(one.hunk(moved))
            moved += len(one.new) - len(one.old)
    return tuple(result)


def added_text(body: Sequence[str]) -> str | None:
    """Returns None if a line is neither added nor empty. An empty line between added lines lost its mark; at
    the end it is not part of the file.
    """
    lines: list[str] = []
    empty = written = 0
    promised = -1
    end = "\n"
    for line in body:
        if line.startswith("+"):
            lines.extend([""] * empty)
            empty, written = 0, written + 1
            lines.append(line[1:])
        elif not line.strip():
            empty += bool(lines)
        elif line.startswith(_NO_NEWLINE):
            end = ""
        elif line.startswith("@@") and promised < 0 and not lines:
            header = HEADER.match(line)
            promised = whole_number(header[4], 1) if header else 0
        elif line.strip() != END_OF_FILE:
            return None
    if written == promised and written < len(lines):
        return None
    return "\n".join(lines) + end if lines else ""


SectionKind = Literal["update", "add", "delete"]
#: Whether a line closes the fence around a patch.
Closes = Callable[[int], bool]

_COMBINED = late(r"diff --(?:cc|combined) (.+)|@@@+ -\d")
_EMPTY = "e69de29"
_MAIL = late(r"From [0-9a-f]{40} |Index: |Only in ")
_BULLET = late(r"[-+] {1,3}[\w`*\"'“(\[]")
_NEAR_BELOW = 100
_VERSION = late(r"\d+\.\d[\w.() -]{0,40}$")


_MODES = {"100755": True, "100644": False}


class Section(Struct, frozen=True):
    """One file of a patch: hunks, or the added text in `content`. `fault` is the reason for a refusal,
    `note` describes an omitted part. `short`: the last hunk has fewer lines than its header states.
    `executable` is None if unchanged.
    """

    path: str
    kind: SectionKind
    hunks: tuple[EditHunk, ...] = ()
    content: str | None = None
    rename_to: str | None = None
    fault: str = ""
    note: str = ""
    short: bool = False
    executable: bool | None = None


def section(
    path: str, kind: SectionKind, body: Sequence[str], move: str | None, fault: str, **more: Any
) -> Section:
    found = hunks_of(body) if kind != "add" and not fault else ()
    content = added_text(body) if kind == "add" and not fault else None
    if kind == "add" and content is None:
        fault = fault or "the file that its patch adds has lines without a `+` in front"
    return Section(
        file_names.plain(path), kind, found, content, move and file_names.plain(move), fault, **more
    )


class _File:
    def __init__(self, git: tuple[str, str] | None = None) -> None:
        self.git = git
        self.old = self.new = ""
        self.copied_to = ""
        self.moved: list[str] = ["", ""]
        self.gone = self.made = False
        #: Git's headers require missing hunks.
        self.lacks = False
        self.mode = ""
        self.body: list[str] = []
        self.fault = ""
        self.short = False

    @property
    def empty(self) -> bool:
        return not (self.git or self.old or self.new or self.body or self.fault)

    def section(self) -> Section:
        bare = bool(self.git and self.git[0] and self.git[0] == self.git[1])
        both = (self.old, self.new or self.old) if self.old or self.new else self.git or ("", "")
        old, new = file_names.without_git_prefixes(*both, bare)
        path, move = new if old == file_names.NOTHING else old, None
        kind: SectionKind = "update"
        fault, note = self.fault, ""
        if self.gone or new == file_names.NOTHING:
            kind = "delete"
        elif self.made or old == file_names.NOTHING:
            kind = "add"
        elif self.moved[0]:
            path, move = self.moved[0], self.moved[1] or None
        elif self.git and new and old != new and self.old and self.body:
            move = new
        elif new:
            path = new
            if old and old != new and not file_names.is_put_aside(old, new):
                fault = fault or f"its diff names two files, {old} and {new}"
        if self.copied_to:
            path, fault = self.copied_to, f"a diff cannot copy {old} to it here; send its whole content"
        elif self.mode[:3] in ("120", "160"):
            fault = f"it would become a {'link' if self.mode[:3] == '120' else 'submodule'}, which no change can make"
        elif self.lacks and not self.body and kind != "delete":
            fault = fault or "its diff shows no changed lines"
        elif kind == "update" and not self.body and not move:
            fault = fault or ("" if self.mode in _MODES else "its diff contains no changes")
        executable = _MODES.get(self.mode) if kind != "delete" else None
        if self.mode and kind != "delete" and self.mode not in _MODES:
            note = f"the mode {self.mode} that its diff asks for is left out"
        if kind == "add" and not executable:
            executable = None
        more = {"note": note, "short": self.short, "executable": executable}
        return section(path, kind, self.body, move, fault, **more)


class _Reader:
    def __init__(self, lines: Sequence[str], at: int, bare: bool, closes: Closes | None) -> None:
        self.lines, self.at, self.end = lines, at, len(lines)
        self.bare, self.closes = bare, closes
        self.file = _File()
        self.found: list[Section] = []
        #: The file is complete: only another header continues the diff.
        self.outside = False
        #: Earlier lines that could close the fence belong to the hunk.
        self.inside = 0

    def read(self) -> tuple[list[Section], int]:
        if not self.bare:
            at = self.at
            while (
                at < self.end
                and not self.lines[at].startswith(("@@", "diff --git "))
                and not self._is_header(at)
            ):
                at += 1
            if at < self.end and not self.lines[at].startswith("@@"):
                self.at = at
        while self.at < self.end and self._line(self.lines[self.at]):
            pass
        last = self.lines[self.end - 1] if self.bare and self.at >= self.end else ""
        if last and not last.startswith((" ", "-", "\\")):
            self.file.fault = (
                self.file.fault or "its diff ends in the middle of the answer's last line, or may do so"
            )
        self._close()
        return self.found, self.at

    def _close(self) -> None:
        if not self.file.empty:
            self.found.append(self.file.section())
        self.file = _File()
        self.outside = False

    def _line(self, line: str) -> bool:
        file = self.file
        if line.startswith("diff --git "):
            self._close()
            self.file = _File(file_names.of_git_line(line[11:].rstrip()))
        elif combined := _COMBINED.match(line):
            if combined[1]:
                self._close()
                self.file.new = combined[1].strip()
            self.file.fault = self.file.fault or "combined diffs of merges are not supported"
            self.outside = True
        elif self._is_header():
            if file.body or file.old or self.outside:
                self._close()
            self.file.old = file_names.in_header(line[4:])
            self.file.new = file_names.in_header(self.lines[self.at + 1][4:])
            self.at += 1
        elif self.closes is not None and self.closes(self.at):
            return False
        elif self.outside:
            if self.bare:
                return False
        elif line.startswith("@@"):
            return self._hunk()
        elif file.git and not file.body and self._extended(line):
            pass
        elif self.bare:
            return not line.strip() and self._goes_on()
        elif line[:1] in ("+", "-", " ") and line.strip() and (not file.git or file.body):
            return self._uncounted(self.at)
        self.at += 1
        return True

    def _is_header(self, at: int = -1) -> bool:
        """`--- old` is a header only if `+++ new` follows, and then a hunk or nothing."""
        at = self.at if at < 0 else at
        if at + 1 >= self.end or not self.lines[at].startswith("--- "):
            return False
        if not self.lines[at + 1].startswith("+++ "):
            return False
        below = self.lines[at + 2] if at + 2 < self.end else ""
        first = self.file.empty or (self.file.git is not None and not self.file.body)
        return below.startswith("@@") or first or not below

    def _extended(self, line: str) -> bool:
        file, words = self.file, line.rstrip()
        match words.split(" ")[:3]:
            case ["new", "file", "mode"]:
                file.made = file.lacks = True
                file.mode = words[14:].strip()
            case ["deleted", "file", "mode"]:
                file.gone = True
            case ["new", "mode", mode]:
                file.mode = mode
            case ["rename", "from" | "to" as side, _]:
                file.moved[side == "to"] = file_names.unquoted(words.split(" ", 2)[2])
            case ["copy", "to", *_]:
                file.copied_to = file_names.unquoted(words[8:])
            case ["GIT", "binary", *_] | ["Binary", "files", *_]:
                file.fault = "binary diffs are not supported"
                self.outside = True
            case ["index", hashes, *_]:
                file.lacks = not hashes.partition("..")[2].startswith(_EMPTY)
            case ["similarity" | "dissimilarity", "index", share]:
                file.lacks = share != "100%"
            case ["old" | "copy", *_]:
                pass
            case _:
                return False
        return True

    def _goes_on(self) -> bool:
        at = self._below(self.at)
        below = self.lines[at] if at < self.end else ""
        if not below.startswith(("@@", "diff --git ")) and not self._is_header(at):
            return False
        self.at = at
        return True

    def _below(self, at: int) -> int:
        while at < self.end and not self.lines[at].strip():
            at += 1
        return at

    def _hunk(self) -> bool:
        counts = HEADER.match(self.lines[self.at])
        if counts is None:
            self.file.body.append(self.lines[self.at])
            return self._uncounted(self.at + 1)
        old, new = whole_number(counts[2], 1), whole_number(counts[4], 1)
        lines, body, at = self.lines, self.file.body, self.at + 1
        body.append(lines[self.at])
        while at < self.end and (old > 0 or new > 0):
            line = lines[at]
            mark = line[:1]
            if mark == "+":
                new -= 1
            elif mark == "-":
                if line.startswith("--- ") and self._is_header(at) and lines[at + 2 : at + 3] != [""]:
                    break
                old -= 1
            elif mark in (" ", ""):
                old, new = old - 1, new - 1
            elif mark != "\\":
                if line.startswith(("@@", "diff --git ")) or self.bare:
                    break
                if self.closes is not None and at >= self.inside and self.closes(at):
                    self.inside = self._end_inside(at, old, new)
                    if at >= self.inside:
                        break
                old, new = old - 1, new - 1
            body.append(line)
            at += 1
        self.at = at
        self.file.short = old > 0 or new > 0
        if old == 0 and new == 0:
            return self._after_hunk()
        while body and not body[-1]:
            body.pop()
        if self.bare:
            goes_on = at < self.end and (lines[at].startswith(("@@", "diff --git ")) or self._is_header())
            if not goes_on:
                missing, near = lines[at : at + old + new + 1], lines[at : at + _NEAR_BELOW]
                marked = any(line[:1] in ("+", "-") and not _BULLET.match(line) for line in missing)
                if at >= self.end or lines[at - 1].strip() or marked or any(map(begins_hunk, near)):
                    short = "its diff has fewer lines than its `@@` line says, so its end is uncertain"
                    self.file.fault = short
            return goes_on
        return at < self.end

    def _end_inside(self, at: int, old: int, new: int) -> int:
        """Returns the hunk's end if the line that could close the fence belongs to it, otherwise 0. There
        the counts match, and the fence closes or the diff continues.
        """
        while at < self.end and (old > 0 or new > 0):
            mark = self.lines[at][:1]
            if mark not in ("+", "-", " ", "", "`", "~"):
                return 0
            old, new = old - (mark != "+"), new - (mark != "-")
            at += 1
        below = self._below(at)
        if old or new or self.closes is None or below >= self.end:
            return 0
        goes_on = self.closes(below) or self.lines[below].startswith(("@@", "diff --git ", "--- "))
        return at if goes_on else 0

    def _after_hunk(self) -> bool:
        lines, at = self.lines, self.at
        if at < self.end and lines[at].startswith("\\"):
            self.file.body.append(lines[at])
            at = self.at = at + 1
        if at >= self.end:
            return False
        if lines[at].rstrip() == "--" and (at + 1 >= self.end or _VERSION.match(lines[at + 1])):
            self.outside, self.at = True, min(at + 2, self.end)
            return True
        if not self.bare:
            # In a fence or field, surplus lines belong to the hunk: counts are often wrong.
            if _MAIL.match(self.lines[at]):
                self.outside = True
                return True
            line = self.lines[at]
            if (
                line.startswith(("@@", "diff --git "))
                or self._is_header()
                or (self.closes and self.closes(at))
            ):
                return True
            return self._uncounted(at)
        if self._goes_on():
            return True
        if lines[at][:1] in ("+", "-", " ") and self._marked_run(at, adjacent=True):
            return self._uncounted(at)
        if self._marked_run(self._below(at), adjacent=bool(lines[at].strip())):
            self.file.fault = "its diff has more lines than its `@@` line says, so its end is uncertain"
        return False

    def _marked_run(self, at: int, adjacent: bool) -> bool:
        while at < self.end and self.lines[at][:1] in ("+", "-", " "):
            line = self.lines[at]
            if line[0] != " " and (adjacent or not _BULLET.match(line)):
                return True
            at += 1
        return False

    def _uncounted(self, at: int) -> bool:
        lines, body = self.lines, self.file.body
        while at < self.end:
            line = lines[at]
            mark = line[:1]
            if mark == "-" and self._is_header(at) and lines[at + 2 : at + 3] != [""]:
                break
            if mark not in ("+", "-", " ", "\\"):
                if line.startswith(("@@", "diff --git ")) or _MAIL.match(line):
                    break
                if self.closes is not None and self.closes(at):
                    break
                if self.bare:
                    below = self._below(at)
                    over = line.strip() or below >= self.end or lines[below][:1] not in ("+", "-", " ")
                    if over or _BULLET.match(lines[below]):
                        break
                    body.extend(lines[at:below])
                    at = below
                    continue
            if line.rstrip() == "--" and at + 1 < self.end and _VERSION.match(lines[at + 1]):
                self.outside = True
                at += 2
                break
            body.append(line)
            at += 1
        while body and not body[-1]:
            body.pop()
        self.at = at
        if self.bare and self._below(at) >= self.end:
            self.file.fault = "its diff has no line counts, so its end is uncertain; put it into a fence"
        return at < self.end


def read(
    lines: Sequence[str], at: int = 0, *, bare: bool = False, closes: Closes | None = None
) -> tuple[list[Section], int]:
    """Returns the files of a diff from line `at`, and the line after it. `closes` identifies the line that
    closes the surrounding fence. Without it and with `bare`, only hunk counts determine the end, and
    ambiguity is a fault.
    """
    return _Reader(lines, at, bare, closes).read()


def begins(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if line.startswith("diff --git ") or _COMBINED.match(line):
        return True
    below = lines[at + 1 : at + 3]
    return (
        line.startswith("--- ")
        and len(below) == 2
        and below[0].startswith("+++ ")
        and below[1].startswith("@@")
    )


def begins_hunk(line: str) -> bool:
    return HEADER.match(line) is not None
