"""A diff as lines: context around each hunk, long unchanged parts folded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from rich.cells import split_graphemes

from tui_agent.edits.change import Diff
from tui_agent.ui.safe_text import one_line

CONTEXT = 3
TAB = 4
#: Characters up to which words of lines are compared.
LONGEST_COMPARED = 400
#: Characters after which lines (such as minified code) are cut.
LONGEST_SHOWN = 10_000
#: Minimum similarity of a line's two versions.
LIKE = 0.4
_WORDS = re.compile(r"\w+|\s+|.")

Span = tuple[int, int]


class DiffLine(NamedTuple):
    """`hunk` is -1 between hunks. `at` counts from 0 in the base, or in the hunk's `removed` or `added`;
    `number` counts from 1 on its side. A `fold` hides `number` lines from base line `at`.
    """

    kind: Literal["same", "removed", "added", "fold"]
    hunk: int
    at: int
    number: int


class DiffLines:
    """`firsts` and `lasts` are each hunk's first and last line."""

    def __init__(self, diff: Diff, unfolded: Collection[int] = ()) -> None:
        self.diff = diff
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.lines: list[DiffLine] = []
        self._unfolded = unfolded
        #: Whether line endings are mixed, by hunk.
        self._mixed: dict[int, bool] = {}
        at, shift, last = 0, 0, len(self.diff.hunks) - 1
        for index, hunk in enumerate(self.diff.hunks):
            self._same(at, hunk.start, shift, before=index > 0, after=True)
            self.firsts.append(len(self.lines))
            start = hunk.start + 1
            self.lines += [DiffLine("removed", index, n, start + n) for n in range(len(hunk.removed))]
            self.lines += [DiffLine("added", index, n, start + shift + n) for n in range(len(hunk.added))]
            self.lasts.append(len(self.lines) - 1)
            at = hunk.start + len(hunk.removed)
            shift += len(hunk.added) - len(hunk.removed)
        self._same(at, len(self.diff.base), shift, before=last >= 0, after=False)
        self.digits = len(str(max((line.number for line in self.lines if line.kind != "fold"), default=1)))

    def tops(self, room: int) -> list[int]:
        """Each line's first row at `room` cells a row, and the number of rows."""
        tops = [0]
        for line in self.lines:
            raw, height = self._raw(line), 1
            # shorter text fits even with a label, without measuring
            fits = len(raw) + _ENDING_ROOM <= max(room, 1) and raw.isascii() and "\t" not in raw
            if line.kind != "fold" and not fits:
                height = len(self.breaks(line, max(room, 1))) - 1
            tops.append(tops[-1] + height)
        return tops

    def breaks(self, line: DiffLine, room: int) -> list[int]:
        """Cells at which rows begin, and the end of the last; no character is divided."""
        ending = self.ending(line)
        text = f"{self.text(line)}  {ending}" if ending else self.text(line)
        if text.isascii():
            return [*range(0, max(len(text), 1), room), len(text)]
        breaks, at = [0], 0
        for _, _, size in split_graphemes(text)[0]:
            if at + size > breaks[-1] + room and at > breaks[-1]:
                breaks.append(at)
            at += size
        return [*breaks, at]

    def text(self, line: DiffLine) -> str:
        """Removes the line ending and expands tabs."""
        return one_line(_bare(self._raw(line)))

    def column(self, line: DiffLine, character: int) -> int:
        raw = self._raw(line)
        return len(raw[:character].expandtabs(TAB)) if "\t" in raw else character

    def ending(self, line: DiffLine) -> str:
        """Returns "" unless the hunk has mixed endings."""
        if line.kind not in ("removed", "added"):
            return ""
        if line.hunk not in self._mixed:
            hunk = self.diff.hunks[line.hunk]
            self._mixed[line.hunk] = len({_ending(text) for text in (*hunk.removed, *hunk.added)}) > 1
        return _ENDINGS[_ending(self._raw(line))] if self._mixed[line.hunk] else ""

    def words(self, line: DiffLine) -> list[Span]:
        hunk = self.diff.hunks[line.hunk]
        if line.kind not in ("removed", "added") or line.at >= min(len(hunk.removed), len(hunk.added)):
            return []
        before, after = _bare(hunk.removed[line.at]), _bare(hunk.added[line.at])
        spans = changed_words(before, after)
        return spans[0] if line.kind == "removed" else spans[1]

    def _raw(self, line: DiffLine) -> str:
        match line.kind:
            case "removed":
                return self.diff.hunks[line.hunk].removed[line.at]
            case "added":
                return self.diff.hunks[line.hunk].added[line.at]
            case _:
                return self.diff.base[line.at]

    def _same(self, start: int, end: int, shift: int, *, before: bool, after: bool) -> None:
        hide_from = start + (CONTEXT if before else 0)
        hide_to = end - (CONTEXT if after else 0)
        if hide_to - hide_from <= 1 or hide_from in self._unfolded:
            hide_from = hide_to = end
        self.lines += [DiffLine("same", -1, n, n + shift + 1) for n in range(start, hide_from)]
        if hide_to > hide_from:
            self.lines.append(DiffLine("fold", -1, hide_from, hide_to - hide_from))
            self.lines += [DiffLine("same", -1, n, n + shift + 1) for n in range(hide_to, end)]


def new_lines(diff: Diff) -> list[str]:
    lines: list[str] = []
    at = 0
    for hunk in diff.hunks:
        lines += [*diff.base[at : hunk.start], *hunk.added]
        at = hunk.start + len(hunk.removed)
    return [*lines, *diff.base[at:]]


def changed_words(before: str, after: str) -> tuple[list[Span], list[Span]]:
    """Spans of each line missing in the other; none for lines too long or too different."""
    if before == after or max(len(before), len(after)) > LONGEST_COMPARED:
        return [], []
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    blocks = matcher.get_matching_blocks()
    alike = sum(len(word) for block in blocks for word in old[block.a : block.a + block.size] if word.strip())
    if alike < LIKE * max(len(before.strip()), len(after.strip())) / 2:
        return [], []
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        list(_spans(old, ((a, b) for _, a, b, _, _ in changes))),
        list(_spans(new, ((a, b) for _, _, _, a, b in changes))),
    )


def _spans(words: list[str], ranges: Iterable[Span]) -> Iterator[Span]:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    for first, end in ranges:
        if end > first:
            yield starts[first], starts[end]


_ENDINGS = {"\n": "LF", "\r\n": "CR LF", "\r": "CR", "": "no newline at the end"}
_ENDING_ROOM = 2 + max(map(len, _ENDINGS.values()))


def _ending(text: str) -> str:
    return text[len(text.rstrip("\r\n")) :] if text.endswith(("\n", "\r")) else ""


def _bare(text: str) -> str:
    text = text.rstrip("\r\n")
    if len(text) > LONGEST_SHOWN:
        text = f"{text[:LONGEST_SHOWN]}… {len(text) - LONGEST_SHOWN} more characters"
    return text.expandtabs(TAB) if "\t" in text else text
