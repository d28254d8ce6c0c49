"""Parses the lines of one file in a diff or an envelope into hunks, or into added text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui_agent.answers.values import EditHunk
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number

#: The header of a hunk; the second `@@` is optional at the end of the line.
HEADER = late(r"@@+ ?-(\d{1,9})(?:,(\d{1,9}))? +\+(\d{1,9})(?:,(\d{1,9}))? *(?:@@|\s|$)")
END_OF_FILE = "*** End of File"
#: Text after `@@` that is not a line of the file: `...`, or unreadable numbers such as `-XX,7 +XX,8`.
_NO_ANCHOR = re.compile(
    r"[\s.…]*(?:@@|$)|(?:\.{3}|…).*(?:\.{3}|…)|-[\w?.,]*[ \t]+\+[\w?.,]*(?:\s|$)"
    r"|\(?(?i:lines?[ \t]*)?[-+]?\d[\d,+ -]*\)?(?:@@|$)"
)
_NO_NEWLINE = "\\ No newline"


class _Open:
    """A hunk during parsing."""

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
            self.blank += 1  # A blank line without its mark, ignored at the end of a hunk.
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
        """The hunk; earlier hunks lengthened the file by `moved` lines."""
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
        """The start line in the header, unless the header is miscounted and thus guessed."""
        if self.header is None:
            return None
        starts = []
        for start, count, lines in ((1, 2, len(self.old)), (3, 4, len(self.new))):
            said = whole_number(self.header[count], 1)
            if not lines <= said <= lines + self.blank:
                return None
            starts.append(whole_number(self.header[start]) - (said > 0))
        return starts[0] if starts[1] - starts[0] == moved else None


def parse(body: Sequence[str]) -> tuple[EditHunk, ...]:
    """The hunks of one file's lines, without file headers. Lines without `@@` form a single hunk."""
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


def added(body: Sequence[str]) -> str | None:
    """The text of an added file; None if a line is neither added nor empty.

    An empty line between added lines lost its mark; at the end it is not part of the file.
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
        return None  # According to the header, the empty lines are not part of the file.
    return "\n".join(lines) + end if lines else ""
