"""What a reply does to one file, in one form whatever the model wrote: hunks, or a whole text, a removal, a move."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from tui_agent.answers import patches, unified
from tui_agent.answers.values import ChangeRequest, SearchReplace
from tui_agent.files.numbers import whole_number

_END_OF_FILE = "*** End of File"
#: Behind `@@`: no line of the file, but `...`, or numbers that cannot be read, such as `-XX,7 +XX,8`.
_NO_ANCHOR = re.compile(r"[\s.…]*(?:@@|$)|-[\w?.,]*[ \t]+\+[\w?.,]*(?:\s|$)")


class EditHunk(Struct, frozen=True, gc=False):
    """Text to find, and what replaces it; `name` says in errors what it is.

    With `whole` it consists of whole lines. The rest comes from a diff. `line` is where the header says that it begins
    (from 0), None also where the header cannot be right: its counts are not those of the lines, or its two line
    numbers do not go with the hunks before it. `anchors` are lines that stand somewhere before it. `ends_file` says
    that it reaches the end, `final_newline` what it says of the file's last newline; `marks` has the mark of each of
    its lines.
    """

    old: str
    new: str
    name: str = "the search text"
    whole: bool = False
    line: int | None = None
    anchors: tuple[str, ...] = ()
    ends_file: bool = False
    final_newline: bool | None = None
    marks: str = ""

    @property
    def context(self) -> tuple[int, int]:
        """How many lines of a diff's hunk stay as they are at its beginning and at its end."""
        marks = self.marks
        return len(marks) - len(marks.lstrip(" ")), len(marks) - len(marks.rstrip(" "))


class FileEdit(Struct, frozen=True):
    """One file's change; of `whole`, `hunks` and `delete` at most one is set.

    The hunks of a diff are `in_order` of the file. `then` holds what else the same reply does to the file.
    """

    path: str
    whole: str | None = None
    hunks: tuple[EditHunk, ...] = ()
    delete: bool = False
    move: str = ""
    in_order: bool = False
    then: tuple[FileEdit, ...] = ()


def of_request(request: ChangeRequest) -> FileEdit:
    """The one value for all forms."""
    in_order = request.diff is not None
    hunks = _in_diff(request.diff or "") if in_order else _searched(request.edits, request.fenced)
    return FileEdit(
        request.path,
        request.content,
        tuple(hunks),
        request.delete,
        request.rename_to or "",
        in_order,
        tuple(of_request(step) for step in request.then),
    )


def _searched(edits: Iterable[SearchReplace], whole: bool) -> Iterator[EditHunk]:
    for number, edit in enumerate(edits, 1):
        name = f"the search text of edit {number}"
        yield EditHunk(edit.search, edit.replace, name, whole)


def _in_diff(diff: str) -> list[EditHunk]:
    """The hunks of a diff of one file, in any form."""
    return [hunk for section in patches.sections(diff) for hunk in parse(section.body)]


class _Open:
    """A hunk of a diff while its lines are read."""

    def __init__(self, header: re.Match[str] | None = None) -> None:
        self.header = header
        self.anchors: list[str] = []
        self.marked: list[tuple[str, str]] = []
        self.blank = 0
        self.ends_file = False
        self.without_newline: set[str] = set()

    def add(self, text: str) -> None:
        if not text:
            self.blank += 1  # a blank line without its mark; at the end of a hunk it is none
            return
        self.marked.extend([(" ", "")] * self.blank)
        self.blank = 0
        mark = text[0] if text[0] in "+- " else ""
        self.marked.append((mark or " ", text[1:] if mark else text))

    def end_line(self) -> None:
        mark = self.marked[-1][0] if self.marked else " "
        self.without_newline.update("-+" if mark == " " else mark)

    def hunk(self, number: int, moved: int) -> EditHunk:
        """The hunk; the ones before it have made the file so many lines longer."""
        return EditHunk(
            "".join(text + "\n" for mark, text in self.marked if mark != "+"),
            "".join(text + "\n" for mark, text in self.marked if mark != "-"),
            f"hunk {number} of the diff",
            whole=True,
            line=self._line(moved),
            anchors=tuple(self.anchors),
            ends_file=self.ends_file,
            final_newline="+" not in self.without_newline if self.without_newline else None,
            marks="".join(mark for mark, _ in self.marked),
        )

    @property
    def growth(self) -> int:
        return sum((mark == "+") - (mark == "-") for mark, _ in self.marked)

    def _line(self, moved: int) -> int | None:
        """Where a header that was not counted wrong, and thus guessed, says that the hunk begins."""
        if self.header is None:
            return None
        starts = []
        for start, count, mark in ((1, 2, "+"), (3, 4, "-")):
            lines = sum(one != mark for one, _ in self.marked)
            said = whole_number(self.header[count], 1)
            if not lines <= said <= lines + self.blank:
                return None
            starts.append(whole_number(self.header[start]) - (said > 0))
        return starts[0] if starts[1] - starts[0] == moved else None


def parse(body: Sequence[str]) -> list[EditHunk]:
    """The hunks of one file's section (without file headers); one without `@@` is a single hunk."""
    found: list[_Open] = []
    current = _Open()
    for text in body:
        if text.startswith("@@"):
            header = unified.HUNK.match(text)
            if current.marked or header:
                found.append(current)
                current = _Open(header)
            anchor = text.strip("@ \t")
            if header is None and not _NO_ANCHOR.match(anchor):
                current.anchors.append(anchor)
        elif text.startswith("\\"):
            current.end_line()
        elif text.strip() == _END_OF_FILE:
            current.ends_file = True
        else:
            current.add(text)
    result: list[EditHunk] = []
    moved = 0
    for one in [*found, current]:
        if one.marked:
            result.append(one.hunk(len(result) + 1, moved))
            moved += one.growth
    return result
