"""A diff, and a merge conflict with base, yours and theirs, drawn line by line."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import ClassVar, Literal, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui_agent.edits.change import Diff, HunkState
from tui_agent.edits.merge import ConflictView
from tui_agent.ui.diff.diff_lines import CONTEXT, DiffLine, DiffLines
from tui_agent.ui.keys.keymap import view_bindings
from tui_agent.ui.safe_text import counted, one_line
from tui_agent.ui.widgets.line_view import BAR, LineView, wrap
from tui_agent.ui.widgets.syntax import (
    DiffColours,
    StyleSpan,
    code_styles,
    layered,
)

_STATES: dict[HunkState, str] = {"pending": " ", "applied": "✓", "skipped": "–"}
_SIGNS = {"same": " ", "removed": "-", "added": "+"}
#: Minimum cells for two columns of numbers.
TWO_NUMBERS_FROM = 50
_KEPT = 512


class DiffView(LineView):
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"ground--{name}" for name in ("added", "removed", "added-word", "removed-word", "fold")
    }
    DEFAULT_CSS = """
    DiffView > .ground--added { background: $added-surface; }
    DiffView > .ground--removed { background: $removed-surface; }
    DiffView > .ground--added-word { background: $added-word; text-style: bold; }
    DiffView > .ground--removed-word { background: $removed-word; text-style: bold; }
    DiffView > .ground--fold { background: $surface-raised; }
    """
    BINDINGS = view_bindings("block")

    class HunkClicked(Message):
        def __init__(self, hunk: int) -> None:
            super().__init__()
            self.hunk = hunk

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown: DiffLines | None = None
        self._words = ""
        self._states: tuple[HunkState, ...] = ()
        self._current = -1
        self._unfolded: set[int] = set()
        self._drawn: LRUCache[int, Strip] = LRUCache(_KEPT)
        self._colours: DiffColours | None = None
        self._awaited: Diff | None = None
        #: Each place's first row, and the place of each line.
        self._tops: list[int] = [0]
        self._places: Mapping[int, int] | range = range(0)
        self._room = 0
        self._laid_out: DiffLines | None = None
        #: The prepared layout: lines, width, and each line's first row.
        self._ready: tuple[DiffLines, int, list[int]] | None = None

    async def get_ready(self, diff: Diff) -> None:
        """Lays out the diff in a thread, since a long one would block input."""
        lines = await asyncio.to_thread(DiffLines, diff)
        room = self._room_of(lines) if self.across else 0
        self._ready = lines, room, await asyncio.to_thread(lines.tops, room) if room else []

    def show_diff(self, diff: Diff, states: Sequence[HunkState] = (), current: int = -1) -> None:
        fresh = self.shown is None or self.shown.diff is not diff
        if fresh:
            self._unfolded = set()
            ready = self._ready[0] if self._ready else None
            self.shown = ready if ready is not None and ready.diff is diff else DiffLines(diff)
            self._words = ""
            self._colours = self._awaited = None
            self.scroll_to(0, 0)
        moved = fresh or current != self._current
        self._states, self._current = tuple(states), current
        self._changed()
        if moved:
            self.keep_in_view()

    def show_undecided(self, diff: Diff, current: int = -1) -> None:
        if diff.hunks:
            self.show_diff(diff, (), current)
        else:
            self.show_words("There are no differences.")

    def show_words(self, text: str) -> None:
        if self.shown is None and self._words == text:
            return
        self.shown, self._words, self._current = None, text, -1
        self.scroll_to(0, 0)
        self._changed()

    def state_of(self, hunk: int) -> HunkState:
        return self._states[hunk] if 0 <= hunk < len(self._states) else "pending"

    def action_press(self) -> None:
        if self.shown is None:
            return
        folds = {line.at for line in self.shown.lines if line.kind == "fold"}
        self._unfold(self._unfolded | folds if folds else set())

    def forget_drawn(self) -> None:
        self._drawn.clear()
        self._colours = self._awaited = None

    def render_line(self, y: int) -> Strip:
        width = self.across
        if self.shown is None:
            lines = wrap(self._words, max(width - 3, 8))
            text = f" {lines[y]}" if y < len(lines) else ""
            return Strip([Segment(text, self.ink("muted"))]).crop_extend(0, width, self.ink(""))
        place = self._at(y + self.scroll_offset.y)
        return Strip.blank(width, self.ink("")) if place is None else self._strip(self.shown, *place, width)

    def _strip(self, shown: DiffLines, index: int, part: int, width: int) -> Strip:
        line = shown.lines[index]
        if line.kind == "fold":
            across = 2 * shown.digits + 1 if self.two_numbers else shown.digits
            text = f"   {'⋯':>{across}}   {line.number} unchanged lines"
            style = self.ink("muted") + self.ground("fold")
            return Strip([Segment(text, style)]).crop_extend(0, width, style)
        body = self._body(line, index)
        if self._tops[index + 1] - self._tops[index] > 1:
            body = body.crop(*shown.breaks(line, self._room)[part : part + 2])
        body = body.crop_extend(0, self._room, self._ground(line))
        return Strip.join([self._gutter(line, index, part), body])

    def on_click(self, event: events.Click) -> None:
        index = self._line_at(event.y + self.scroll_offset.y)
        if self.shown is None or index is None:
            return
        line = self.shown.lines[index]
        if line.kind == "fold":
            self._unfold(self._unfolded | {line.at})
        elif line.hunk >= 0:
            self.post_message(self.HunkClicked(line.hunk))

    def point(self, x: int, y: int) -> None:
        index = self._line_at(y + self.scroll_offset.y)
        if self.shown is not None and index is not None and (hunk := self.shown.lines[index].hunk) >= 0:
            self.post_message(self.HunkClicked(hunk))

    def on_resize(self) -> None:
        self._changed()

    def _at(self, y: int) -> tuple[int, int] | None:
        """`None` below the last line."""
        if y >= self._tops[-1]:
            return None
        index = bisect_right(self._tops, y) - 1
        return index, y - self._tops[index]

    def _line_at(self, y: int) -> int | None:
        place = self._at(y)
        return None if place is None else place[0]

    def _lay_out(self) -> bool:
        """Returns whether anything changed."""
        room = self._room_of(self.shown) if self.shown else 0
        if self.shown is self._laid_out and room == self._room:
            return False
        self._laid_out, self._room = self.shown, room
        if self._ready and self._ready[0] is self.shown and self._ready[1] == room:
            self._tops = self._ready[2]
        else:
            self._tops = self.shown.tops(room) if self.shown else [0]
        self._places = range(len(self._tops) - 1)
        self._ready = None
        return True

    @property
    def two_numbers(self) -> bool:
        return self.across >= TWO_NUMBERS_FROM

    def _room_of(self, lines: DiffLines) -> int:
        numbers = 2 * lines.digits + 1 if self.two_numbers else lines.digits
        return max(self.across - numbers - 6, 1)

    def _gutter(self, line: DiffLine, index: int, part: int, *, before: bool = False) -> Strip:
        """Continuation rows show only the bar. `before`: the single number is from before the change."""
        assert self.shown is not None
        current = line.hunk >= 0 and line.hunk == self._current
        state = self.state_of(line.hunk)
        first = line.hunk >= 0 and part == 0 and self.shown.firsts[line.hunk] == index
        mark = _STATES[state] if first else " "
        ground = self._ground(line)
        sign = _SIGNS[line.kind] if part == 0 else " "
        digits = self.shown.digits
        old = (
            ""
            if line.kind == "added" or part
            else str(line.number if line.kind == "removed" else line.at + 1)
        )
        new = "" if line.kind == "removed" or part else str(line.number)
        number = (
            f"{old:>{digits}} {new:>{digits}}"
            if self.two_numbers
            else f"{(old if before or line.kind == 'removed' else new):>{digits}}"
        )
        return Strip(
            [
                Segment(BAR if current else " ", self.ink("accent")),
                Segment(f"{mark} ", self.ink("done" if state == "applied" else "muted")),
                Segment(f"{number} ", self.ink("muted") + ground),
                Segment(
                    f"{sign} ",
                    self.ink(line.kind if state != "skipped" and sign != " " else "muted") + ground,
                ),
            ]
        )

    def _body(self, line: DiffLine, index: int) -> Strip:
        strip, shown = self._drawn.get(index), self.shown
        if strip is not None:
            return strip
        assert shown is not None
        due, ground = self._is_due(line), self._ground(line)
        if due and self._colours is None and self._awaited is not shown.diff:
            self._awaited = shown.diff
            self.run_worker(self._colour(shown.diff))
        layers: list[StyleSpan] = []
        if due and line.hunk >= 0:
            # underlined if the terminal has few background colours
            mark = self.ground(f"{line.kind}-word") + Style(underline=True if self.is_flat else None)
            layers = [StyleSpan(start, end, mark) for start, end in shown.words(line)]
        elif due and self._colours:
            layers = [
                StyleSpan(shown.column(line, start), shown.column(line, end), style)
                for start, end, style in self._colours.of(line)
            ]
        coloured = self.is_flat if due else self.state_of(line.hunk) == "applied"
        ink = self.ink(line.kind if line.hunk >= 0 and coloured else "" if due else "muted")
        segments = layered(shown.text(line), ink + ground, layers)
        if ending := shown.ending(line):
            segments.append(Segment(f"  {ending}", self.ink("muted") + ground))
        strip = self._drawn[index] = Strip(segments)
        return strip

    async def _colour(self, diff: Diff) -> None:
        colours = await asyncio.to_thread(DiffColours, diff, code_styles(self.app))
        if self._awaited is diff:
            self._awaited, self._colours = None, colours
            if colours.any:
                self._drawn.clear()
                self.refresh()

    def _is_due(self, line: DiffLine) -> bool:
        return line.hunk < 0 or self.state_of(line.hunk) == "pending"

    def _ground(self, line: DiffLine) -> Style:
        if line.hunk < 0 or not self._is_due(line):
            return Style.null()
        return self.ground(line.kind)

    def _unfold(self, unfolded: set[int]) -> None:
        assert self.shown is not None
        self._unfolded = unfolded
        self.shown = DiffLines(self.shown.diff, unfolded)
        self._changed()

    def _changed(self) -> None:
        self._drawn.clear()
        if self._lay_out():
            self.virtual_size = Size(0, self._tops[-1])
        self.refresh()

    def _reveal(self) -> None:
        if self.shown is None or not 0 <= self._current < len(self.shown.firsts):
            return
        lines = range(self.shown.firsts[self._current], self.shown.lasts[self._current] + 1)
        first = self._tops[self._places[lines[0]]]
        last = self._tops[max(self._places[line] for line in lines) + 1] - 1
        top, height = self.scroll_offset.y, self.down
        if top + 1 <= first and last < top + height - 1:
            return
        self.scroll_to(y=max(first - min(3, height // 4), 0))


#: Indices of the left and right line; `None` for an empty side.
Pair = tuple[int | None, int | None]


def pairs(shown: DiffLines) -> Iterator[Pair]:
    at = 0
    while at < len(shown.lines):
        hunk = shown.lines[at].hunk
        if hunk < 0:
            yield at, at
            at += 1
            continue
        end = shown.lasts[hunk] + 1
        numbers = range(at, end)
        removed = [number for number in numbers if shown.lines[number].kind == "removed"]
        added = [number for number in numbers if shown.lines[number].kind == "added"]
        yield from zip_longest(removed, added)
        at = end


class DiffSides(DiffView):
    @property
    def two_numbers(self) -> bool:
        return False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pairs: list[Pair] = []

    def _strip(self, shown: DiffLines, index: int, part: int, width: int) -> Strip:
        left, right = self._pairs[index]
        if left is not None and shown.lines[left].kind == "fold":
            return super()._strip(shown, left, part, width)
        middle = Strip([Segment("│", self.ink("faint"))])
        return Strip.join([self._half(left, part, before=True), middle, self._half(right, part)]).crop_extend(
            0, width, self.ink("")
        )

    def _half(self, index: int | None, part: int, *, before: bool = False) -> Strip:
        assert self.shown is not None
        size = self._room + self.shown.digits + 5
        if index is None:
            return Strip([Segment(" " * size, self.ink(""))])
        line = self.shown.lines[index]
        breaks = self.shown.breaks(line, self._room)
        if part >= len(breaks) - 1:
            return Strip([Segment(" " * size, self._ground(line))])
        body = self._body(line, index).crop(*breaks[part : part + 2])
        return Strip.join(
            [
                self._gutter(line, index, part, before=before),
                body.crop_extend(0, self._room, self._ground(line)),
            ]
        )

    def _line_at(self, y: int) -> int | None:
        place = self._at(y)
        return None if place is None else next(n for n in self._pairs[place[0]] if n is not None)

    def _room_of(self, lines: DiffLines) -> int:
        return max((self.across - 1) // 2 - lines.digits - 6, 1)

    def _lay_out(self) -> bool:
        if not super()._lay_out():
            return False
        tops, self._tops = self._tops, [0]
        self._pairs = list(pairs(self.shown)) if self.shown else []
        self._places = {
            number: at for at, pair in enumerate(self._pairs) for number in pair if number is not None
        }
        for pair in self._pairs:
            self._tops.append(self._tops[-1] + max(tops[n + 1] - tops[n] for n in pair if n is not None))
        return True


Part = Literal["same", "fold", "head", "base", "yours", "theirs"]
_NAMES: dict[Part, str] = {
    "base": "base: the version that the model saw",
    "yours": "yours: the current file",
    "theirs": "theirs: the proposed change",
}
_PARTS: tuple[Part, ...] = ("base", "yours", "theirs")


class ConflictLine(NamedTuple):
    """`place` is the conflicting region's number, or -1; headings have a `side`."""

    part: Part
    text: str
    place: int = -1
    side: str = ""


def conflict_lines(view: ConflictView, chosen: Mapping[int, str]) -> list[ConflictLine]:
    """`chosen` maps regions to decisions, including `by hand`."""
    names = _NAMES
    if view.yours_name != "yours":
        names = {
            "base": "base: the common version",
            "yours": f"yours: the version of {view.yours_name}",
            "theirs": f"theirs: the version of {view.theirs_name}",
        }
    gone = {"yours": view.yours_gone, "theirs": view.theirs_gone}
    lines: list[ConflictLine] = []
    place, last = -1, len(view.regions) - 1
    for number, region in enumerate(view.regions):
        if not region.conflict:
            agreed = [ConflictLine("same", text) for text in region.agreed]
            head, tail = CONTEXT if number else 0, CONTEXT if number < last else 0
            hidden = len(agreed) - head - tail
            if hidden > 1:
                fold = ConflictLine("fold", f"{counted(hidden, 'line')} without conflict")
                agreed[head : head + hidden] = [fold]
            lines += agreed
            continue
        place += 1
        decision = chosen.get(place, "")
        for part in _PARTS:
            missing = " (no such file)" if gone.get(part) else ""
            mark = "✓ " if decision in (part, "both") and part != "base" else ""
            hand = "  ✓ by hand" if decision == "by hand" and part == "theirs" else ""
            lines.append(ConflictLine("head", f"{mark}{names[part]}{missing}{hand}", place, part))
            lines += [ConflictLine(part, text, place) for text in getattr(region, part)]
    return lines


class ConflictLines(LineView):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"ground--theirs", "ground--yours", "ground--fold"}
    DEFAULT_CSS = """
    ConflictLines > .ground--theirs { background: $added-surface; }
    ConflictLines > .ground--yours { background: $accent-surface; }
    ConflictLines > .ground--fold { background: $surface-raised; }
    """

    class SidePressed(Message):
        """`side` is `yours` or `theirs` for a heading, which chooses it; otherwise empty."""

        def __init__(self, place: int, side: str) -> None:
            super().__init__()
            self.place = place
            self.side = side

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[ConflictLine] = []
        self._current = 0

    def show_conflict(self, view: ConflictView, chosen: Mapping[int, str], current: int) -> None:
        self._lines = conflict_lines(view, chosen)
        moved, self._current = current != self._current, current
        self.virtual_size = Size(0, len(self._lines))
        self.refresh()
        if moved or self.scroll_offset.y >= len(self._lines):
            tops = (at for at, line in enumerate(self._lines) if line.place == current)
            self.call_after_refresh(self.scroll_to, y=max(next(tops, 0) - 2, 0))

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        width = self.across
        if y >= len(self._lines):
            return Strip.blank(width, self.ink(""))
        line = self._lines[y]
        current = line.place >= 0 and line.place == self._current
        ink, ground = self.ink(""), Style.null()
        match line.part:
            case "head":
                ink = self.ink("strong")
            case "base":
                ink = self.ink("muted")
            case "fold":
                ink, ground = self.ink("muted"), self.ground("fold")
            case "yours" | "theirs":
                flat = line.part == "theirs" and self.is_flat
                ink, ground = self.ink("added" if flat else ""), self.ground(line.part)
        bar = Segment(BAR if current else " ", self.ink("accent"))
        text = line.text.rstrip("\r\n").expandtabs(4)
        sign = {"theirs": "+ ", "yours": "  ", "base": "- "}.get(line.part, "  ")
        sign = "" if line.part == "head" else sign
        return Strip([bar, Segment(f" {sign}{one_line(text)}", ink + ground)]).crop_extend(
            0, width, ground or self.ink("")
        )

    def on_click(self, event: events.Click) -> None:
        y = event.y + self.scroll_offset.y
        if y < len(self._lines) and self._lines[y].place >= 0:
            side = self._lines[y].side
            self.post_message(self.SidePressed(self._lines[y].place, side if side != "base" else ""))
