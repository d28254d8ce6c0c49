"""Hunks of a patch, found by their lines: line numbers and counts in headers are only hints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace as with_

from tui_agent.edits import indent, locate
from tui_agent.edits.locate import Replacement
from tui_agent.edits.source import Edit, Match, SourceText
from tui_agent.errors import EditFailed
from tui_agent.files.numbers import whole_number

_HEADER = re.compile(r"@@+ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@+(?: .*)?$")
_END_OF_FILE = "*** End of File"


class PatchHunk(Struct, frozen=True):
    """One hunk as it was written, as pairs of a mark (space, `-` or `+`) and the text behind it, without endings.

    `line` is where the header says that it begins (from 0), None also where the header cannot be right: its counts
    are not those of the lines, or its two line numbers do not go with the hunks before it. `anchors` are lines that
    stand somewhere before it. `ends_file` says that it reaches the end; `final_newline` what it says of the file's
    last newline.
    """

    marked: tuple[tuple[str, str], ...]
    line: int | None = None
    anchors: tuple[str, ...] = ()
    ends_file: bool = False
    final_newline: bool | None = None

    @property
    def old(self) -> tuple[str, ...]:
        return tuple(text for mark, text in self.marked if mark != "+")

    @property
    def new(self) -> tuple[str, ...]:
        return tuple(text for mark, text in self.marked if mark != "-")

    @property
    def context(self) -> tuple[int, int]:
        """How many lines at the beginning and at the end stay as they are."""
        changed = [number for number, (mark, _) in enumerate(self.marked) if mark != " "]
        return changed[0], len(self.marked) - 1 - changed[-1]


class _Open:
    """A hunk while its lines are read."""

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

    def hunk(self, moved: int) -> PatchHunk:
        """The hunk; the ones before it have made the file so many lines longer."""
        final = None
        if self.without_newline:
            final = "+" not in self.without_newline
        return PatchHunk(tuple(self.marked), self._line(moved), tuple(self.anchors), self.ends_file, final)

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


def parse(body: Sequence[str]) -> list[PatchHunk]:
    """The hunks of one file's section (without file headers); one without `@@` is a single hunk."""
    found: list[_Open] = []
    current = _Open()
    for text in body:
        if text.startswith("@@"):
            header = _HEADER.match(text)
            if current.marked or header:
                found.append(current)
                current = _Open(header)
            if header is None and text[2:].strip(" @"):
                current.anchors.append(text[2:].strip().removesuffix("@@").strip())
        elif text.startswith("\\"):
            current.end_line()
        elif text.strip() == _END_OF_FILE:
            current.ends_file = True
        else:
            current.add(text)
    result: list[PatchHunk] = []
    moved = 0
    for one in [*found, current]:
        if one.marked:
            result.append(one.hunk(moved))
            moved += one.growth
    return result


def place_all(source: SourceText, hunks: Sequence[PatchHunk], threshold: float) -> Iterator[Replacement]:
    """Where each hunk goes, in order. Raises `EditFailed` or `Ambiguous`, naming the hunk."""
    places = [
        _places(source, hunk, f"hunk {number + 1} of the diff", threshold)
        for number, hunk in enumerate(hunks)
        if hunk.old != hunk.new
    ]
    after = 0
    for one in sorted(_chosen(places), key=lambda place: (place.start, place.end)):
        if one.start < after:
            raise EditFailed("two hunks of the diff change the same lines", "send them as one hunk")
        after = one.end
        yield one


class _Places(Struct, frozen=True):
    """Where a hunk fits. `told` is the line (from 0) at which its header says that it begins.

    `lead` and `tail` lines at its two ends are context, which two hunks may share.
    """

    source: SourceText
    found: tuple[Match | Replacement, ...]
    name: str
    told: int | None = None
    lead: int = 0
    tail: int = 0

    def extent(self, place: Match | Replacement) -> tuple[int, int]:
        """The lines (from, to) that the hunk changes there."""
        if isinstance(place, Replacement):
            return place.line, place.line
        start = place.first + self.lead
        return start, max(start, place.end - self.tail)


def _chosen(places: Sequence[_Places]) -> Iterator[Replacement]:
    """One place for each hunk, so that they follow each other as they do in the diff.

    Where that leaves several, the line of the header decides if it is that of one of them.
    """
    if all(len(hunk.found) == 1 for hunk in places):
        yield from (_place(hunk, hunk.found[0]) for hunk in places)
        return
    first, last = _first_ones(places), _last_ones(places)
    least = (-1, 0)
    for number, hunk in enumerate(places):
        low, high = hunk.extent(first[number]), hunk.extent(last[number])
        fitting = [
            one
            for one in hunk.found
            if low <= (here := hunk.extent(one)) <= high and here[0] >= least[1] and here != least
        ]
        told = [one for one in fitting if isinstance(one, Match) and one.first == hunk.told]
        one = told[0] if len(told) == 1 else _only(fitting)
        least = hunk.extent(one)
        yield _place(hunk, one)


def _place(hunk: _Places, one: Match | Replacement) -> Replacement:
    return one if isinstance(one, Replacement) else locate.placed(hunk.source, one)


def _only(fitting: Sequence[Match | Replacement]) -> Match | Replacement:
    matches = [one for one in fitting if isinstance(one, Match)]
    return locate.only(matches[0].edit, matches) if matches else fitting[0]


def _first_ones(places: Sequence[_Places]) -> list[Match | Replacement]:
    """The first places at which all hunks can be in their order."""
    chosen: list[Match | Replacement] = []
    before = (-1, 0)
    for hunk in places:
        left = [one for one in hunk.found if (here := hunk.extent(one))[0] >= before[1] and here != before]
        if not left:
            raise _out_of_order(hunk)
        chosen.append(min(left, key=hunk.extent))
        before = hunk.extent(chosen[-1])
    return chosen


def _last_ones(places: Sequence[_Places]) -> list[Match | Replacement]:
    """The last places at which all hunks can be in their order."""
    chosen: list[Match | Replacement] = []
    behind: tuple[int, int] | None = None
    for hunk in reversed(places):
        left = [
            one
            for one in hunk.found
            if behind is None or ((here := hunk.extent(one))[1] <= behind[0] and here != behind)
        ]
        if not left:
            raise _out_of_order(hunk)
        chosen.append(max(left, key=hunk.extent))
        behind = hunk.extent(chosen[-1])
    return chosen[::-1]


def _out_of_order(hunk: _Places) -> EditFailed:
    return EditFailed(
        f"{hunk.name} is elsewhere than the order of the hunks says",
        "send the hunks in the order of the file, with more of the lines around each",
    )


def _places(source: SourceText, hunk: PatchHunk, name: str, threshold: float) -> _Places:
    if not hunk.old:
        return _Places(source, (_insertion(source, hunk, name),), name)
    wanted = Edit(_text(hunk.old), _text(hunk.new), name, threshold, whole=True)
    try:
        matches = locate.found(source, wanted)
    except EditFailed:
        matches = _unmarked(source, hunk, wanted)
        if not matches:
            raise
    else:
        if matches[0].rung not in ("exact", "line-endings"):
            matches = _unmarked(source, hunk, wanted) or matches
    if hunk.ends_file:
        matches = [match for match in matches if match.end == len(source.lines)] or matches
    if hunk.anchors:
        matches = _below_anchors(source, hunk, name, matches)
    lead, tail = hunk.context
    return _Places(source, tuple(matches), name, hunk.line, lead, tail)


def _unmarked(source: SourceText, hunk: PatchHunk, wanted: Edit) -> list[Match]:
    """Where the hunk fits exactly if its context, or some of it, was written without the blank in front."""
    if not any(mark == " " and text[:1] in (" ", "\t") for mark, text in hunk.marked):
        return []
    context = [mark == " " for mark, _ in hunk.marked if mark != "+"]
    found: list[Match] = []
    for match in locate.in_any_indentation(source, wanted):
        lines = source.lines[match.first : match.end]
        pairs = zip(hunk.old, lines, context, strict=True)
        if list(hunk.old) != lines and all(
            text == line or (free and text.strip() and " " + text == line) for text, line, free in pairs
        ):
            kept = iter(lines)
            new = [text if mark == "+" else next(kept) for mark, text in hunk.marked]
            new = [text for text, (mark, _) in zip(new, hunk.marked, strict=True) if mark != "-"]
            edit = with_(wanted, search=_text(lines), replace=_text(new))
            found.append(with_(match, edit=edit))
    return found


def _insertion(source: SourceText, hunk: PatchHunk, name: str) -> Replacement:
    """Lines that are only added need an anchor, the end of the file, or an empty file."""
    text = _text(hunk.new)
    if hunk.ends_file or not source.text:
        return Replacement(len(source.text), len(source.text), len(source.lines), text, "exact")
    scope = _block(source, hunk.anchors) if hunk.anchors else None
    if scope is None or hunk.line is not None:
        raise EditFailed(
            f"{name} only adds lines and does not say where",
            "give it some of the lines around as context",
        )
    start = source.starts[scope[0]]
    return Replacement(start, start, scope[0], text, "exact")


def _below_anchors(source: SourceText, hunk: PatchHunk, name: str, matches: list[Match]) -> list[Match]:
    """The matches below the line that the anchor names: in its block where there is one, else anywhere below."""
    scope = _block(source, hunk.anchors)
    if scope is None:
        first = _first(source, hunk.anchors)
        if first is None:
            raise EditFailed(
                f"{name} is said to be below `{hunk.anchors[-1][:80]}`, which is not in the file",
                "copy the line behind `@@` from the file, or leave it out",
            )
        inside = [match for match in matches if match.end > first]
        return inside or _elsewhere(hunk, name)
    below = [match for match in matches if match.end > scope[0]]
    inside = [match for match in below if match.first < scope[1]]
    return inside or below or _elsewhere(hunk, name)


def _elsewhere(hunk: PatchHunk, name: str) -> list[Match]:
    raise EditFailed(
        f"{name} is not below `{hunk.anchors[-1][:80]}`",
        "copy the line behind `@@` from the file, or leave it out",
    )


def _first(source: SourceText, anchors: Sequence[str]) -> int | None:
    """The line below the first places of the anchors, one below the other; None where one is missing."""
    least = 0
    for anchor in anchors:
        line = next((line for line in source.by_stripped.get(anchor, ()) if line >= least), None)
        if line is None:
            return None
        least = line + 1
    return least


def _block(source: SourceText, anchors: Sequence[str]) -> tuple[int, int] | None:
    """The lines (from, to) below the last anchor that are deeper than it; None where one occurs twice or nowhere."""
    least = 0
    for anchor in anchors:
        lines = [line for line in source.by_stripped.get(anchor, ()) if line >= least]
        if len(lines) != 1:
            return None
        least = lines[0] + 1
    depth = len(indent.of(source.lines[least - 1]))
    end = least
    while end < len(source.lines) and (not source.stripped[end] or len(indent.of(source.lines[end])) > depth):
        end += 1
    return least, end


def _text(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)
