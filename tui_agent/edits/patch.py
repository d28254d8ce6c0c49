"""Hunks of a patch, found by their lines: line numbers and counts in headers are only hints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from tui_agent.edits.ground import Ground
from tui_agent.edits.locate import Place, Wanted, locate, places
from tui_agent.errors import Ambiguous, EditFailed

_HEADER = re.compile(r"@@+ -(\d{1,9})(?:,\d+)? \+\d{1,9}(?:,\d+)? @@+(?: .*)?$")
_END_OF_FILE = "*** End of File"


class PatchHunk(Struct, frozen=True):
    """One hunk as it was written. `old` and `new` are its lines before and after, without endings.

    `line` is where the header says that it begins (from 0); `anchors` are lines that stand somewhere before
    it. `ends_file` says that it reaches the end; `final_newline` what it says of the file's last newline.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int | None = None
    anchors: tuple[str, ...] = ()
    ends_file: bool = False
    final_newline: bool | None = None


class _Open:
    """A hunk while its lines are read."""

    def __init__(self, line: int | None = None) -> None:
        self.line = line
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

    def hunk(self) -> PatchHunk:
        final = None
        if self.without_newline:
            final = "+" not in self.without_newline
        return PatchHunk(
            old=tuple(text for mark, text in self.marked if mark != "+"),
            new=tuple(text for mark, text in self.marked if mark != "-"),
            line=self.line,
            anchors=tuple(self.anchors),
            ends_file=self.ends_file,
            final_newline=final,
        )


def parse(body: Sequence[str]) -> list[PatchHunk]:
    """The hunks of one file's section (without file headers); one without `@@` is a single hunk."""
    found: list[_Open] = []
    current = _Open()
    for text in body:
        if text.startswith("@@"):
            header = _HEADER.match(text)
            if current.marked or header:
                found.append(current)
                current = _Open(max(0, int(header[1]) - 1) if header else None)
            if header is None and text[2:].strip(" @"):
                current.anchors.append(text[2:].strip().removesuffix("@@").strip())
        elif text.startswith("\\"):
            current.end_line()
        elif text.strip() == _END_OF_FILE:
            current.ends_file = True
        else:
            current.add(text)
    return [hunk.hunk() for hunk in [*found, current] if hunk.marked]


def place_all(ground: Ground, hunks: Sequence[PatchHunk], threshold: float) -> Iterator[Place]:
    """Where each hunk goes, in order. Raises `EditFailed` or `Ambiguous`, naming the hunk."""
    after = 0
    for number, hunk in enumerate(hunks):
        if hunk.old == hunk.new:
            continue
        name = f"hunk {number + 1} of the diff"
        place = _place(ground, hunk, name, threshold, after)
        after = place.end
        yield place


def _place(ground: Ground, hunk: PatchHunk, name: str, threshold: float, after: int) -> Place:
    if not hunk.old:
        return _insertion(ground, hunk, name, after)
    wanted = Wanted(_text(hunk.old), _text(hunk.new), name, threshold, hunk.line, after)
    try:
        return locate(ground, wanted)
    except Ambiguous:
        equal = places(ground, wanted)
        if hunk.ends_file and equal:
            return equal[-1]
        scope = _after_anchors(ground, hunk, after)
        if scope is None:
            raise
        inside = [place for place in equal if place.start >= scope]
        if not inside:
            raise
        return inside[0]


def _insertion(ground: Ground, hunk: PatchHunk, name: str, after: int) -> Place:
    """Lines that are only added need an anchor, the end of the file, or an empty file."""
    text = _text(hunk.new)
    if hunk.ends_file or not ground.text:
        return Place(len(ground.text), len(ground.text), len(ground.lines), text, "exact")
    scope = _after_anchors(ground, hunk, after)
    if scope is None:
        raise EditFailed(
            f"{name} only adds lines and does not say where",
            "give it some of the lines around as context",
        )
    return Place(scope, scope, ground.line_of(scope), text, "exact")


def _after_anchors(ground: Ground, hunk: PatchHunk, after: int) -> int | None:
    """The offset below the last anchor, None where there is none or one stands more than once."""
    scope: int | None = None
    least = ground.line_of(after) if after else 0
    for anchor in hunk.anchors:
        lines = [line for line in ground.by_stripped.get(anchor, ()) if line >= least]
        if len(lines) != 1:
            return None
        least = lines[0] + 1
        scope = ground.starts[least]
    return scope


def _text(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)
