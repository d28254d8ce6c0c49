"""A change as coloured lines: drawn a line at a time, so that its length does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui_agent.edits.change import Diff, HunkState
from tui_agent.ui.sink import one_line
from tui_agent.ui.widgets.diff_lines import DiffLine, DiffLines
from tui_agent.ui.widgets.lined import Lined
from tui_agent.ui.widgets.lines import wrap

_BAR = "▌"
_STATES: dict[HunkState, str] = {"pending": " ", "applied": "✓", "skipped": "–"}
_SIGNS = {"same": " ", "removed": "-", "added": "+"}
#: Drawn lines that are kept: several screens of them.
_KEPT = 512


class DiffView(Lined):
    """Shows one diff with a current hunk; hunks that were decided are dimmed and carry their mark."""

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
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "toggle_folds", "Show all lines", show=False)]

    class HunkClicked(Message):
        """The mouse chose a hunk, counted from 0."""

        def __init__(self, hunk: int) -> None:
            super().__init__()
            self.hunk = hunk

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.shown: DiffLines | None = None
        self._words = ""
        self._states: tuple[HunkState, ...] = ()
        self._current = -1
        self._unfolded: set[int] = set()
        self._drawn: LRUCache[int, Strip] = LRUCache(_KEPT)

    def show_diff(self, diff: Diff, states: Sequence[HunkState] = (), current: int = -1) -> None:
        """Show a diff with its hunks' states; a new diff, or another current hunk, is scrolled to."""
        fresh = self.shown is None or self.shown.diff is not diff
        if fresh:
            self._unfolded = set()
            self.shown = DiffLines(diff)
            self._words = ""
            self.scroll_to(0, 0, animate=False)
        moved = fresh or current != self._current
        self._states, self._current = tuple(states), current
        self._changed()
        if moved:
            self.call_after_refresh(self._reveal)

    def show_words(self, text: str) -> None:
        """Show a sentence instead of a diff."""
        if self.shown is None and self._words == text:
            return
        self.shown, self._words, self._current = None, text, -1
        self.scroll_to(0, 0, animate=False)
        self._changed()

    def state_of(self, hunk: int) -> HunkState:
        return self._states[hunk] if 0 <= hunk < len(self._states) else "pending"

    def action_toggle_folds(self) -> None:
        """Show every unchanged line, or fold them again."""
        if self.shown is None:
            return
        folds = {line.at for line in self.shown.lines if line.kind == "fold"}
        self._unfold(self._unfolded | folds if folds else set())

    def forget_drawn(self) -> None:
        self._drawn.clear()

    def render_line(self, y: int) -> Strip:
        width = self.across
        if self.shown is None:
            return self._sentence(y, width)
        y += self.scroll_offset.y
        if y >= len(self.shown.lines):
            return Strip.blank(width, self.ink(""))
        line = self.shown.lines[y]
        if line.kind == "fold":
            return self._fold(line, width)
        gutter, body, ground = self._gutter(line, y), self._body(line, y), self._ground(line)
        left = self.scroll_offset.x
        room = max(width - gutter.cell_length, 0)
        return Strip.join([gutter, body.crop_extend(left, left + room, ground)])

    def on_click(self, event: events.Click) -> None:
        y = event.y + self.scroll_offset.y
        if self.shown is None or y >= len(self.shown.lines):
            return
        line = self.shown.lines[y]
        if line.kind == "fold":
            self._unfold(self._unfolded | {line.at})
        elif line.hunk >= 0:
            self.post_message(self.HunkClicked(line.hunk))

    def on_resize(self) -> None:
        self._changed()

    def _gutter(self, line: DiffLine, y: int) -> Strip:
        assert self.shown is not None
        current = line.hunk >= 0 and line.hunk == self._current
        state = self.state_of(line.hunk)
        first = line.hunk >= 0 and self.shown.firsts[line.hunk] == y
        mark = _STATES[state] if first else " "
        ground = self._ground(line)
        sign = _SIGNS[line.kind]
        return Strip(
            [
                Segment(_BAR if current else " ", self.ink("accent")),
                Segment(mark, self.ink("done" if state == "applied" else "muted")),
                Segment(f"{line.number:>{self.shown.digits}} ", self.ink("muted") + ground),
                Segment(
                    f"{sign} ",
                    self.ink(line.kind if state == "pending" and sign != " " else "muted") + ground,
                ),
            ]
        )

    def _body(self, line: DiffLine, y: int) -> Strip:
        strip = self._drawn.get(y)
        if strip is None:
            strip = self._drawn[y] = Strip(self._segments(line))
        return strip

    def _segments(self, line: DiffLine) -> list[Segment]:
        assert self.shown is not None
        text, ending = self.shown.text(line), self.shown.ending(line)
        style = self._text_style(line) + self._ground(line)
        spans = self.shown.words(line) if self.state_of(line.hunk) == "pending" else []
        segments, at = [], 0
        for start, end in spans:
            segments.append(Segment(one_line(text[at:start]), style))
            segments.append(Segment(one_line(text[start:end]), style + self.ground(f"{line.kind}-word")))
            at = end
        segments.append(Segment(one_line(text[at:]), style))
        if ending:
            segments.append(Segment(f"  {ending}", self.ink("muted") + self._ground(line)))
        return segments

    def _text_style(self, line: DiffLine) -> Style:
        decided = line.hunk >= 0 and self.state_of(line.hunk) != "pending"
        return self.ink("muted") if decided else self.ink("")

    def _ground(self, line: DiffLine) -> Style:
        if line.hunk < 0 or self.state_of(line.hunk) != "pending":
            return Style.null()
        return self.ground(line.kind)

    def _fold(self, line: DiffLine, width: int) -> Strip:
        assert self.shown is not None
        text = f"  {'⋯':>{self.shown.digits}}   {line.number} unchanged lines"
        style = self.ink("muted") + self.ground("fold")
        return Strip([Segment(text, style)]).crop_extend(0, width, style)

    def _sentence(self, y: int, width: int) -> Strip:
        lines = wrap(self._words, max(width - 3, 8))
        text = f" {lines[y]}" if y < len(lines) else ""
        return Strip([Segment(text, self.ink("muted"))]).crop_extend(0, width, self.ink(""))

    def _unfold(self, unfolded: set[int]) -> None:
        assert self.shown is not None
        self._unfolded = unfolded
        self.shown = DiffLines(self.shown.diff, unfolded)
        self._changed()

    def _changed(self) -> None:
        self._drawn.clear()
        shown = self.shown
        # the gutter: bar, mark, number, space, sign, space
        self.virtual_size = Size(shown.width + shown.digits + 5, len(shown.lines)) if shown else Size(0, 0)
        self.refresh()

    def _reveal(self) -> None:
        """Scroll so that the current hunk is seen, as far as it fits, with its context above it."""
        if self.shown is None or not 0 <= self._current < len(self.shown.firsts):
            return
        first, last = self.shown.firsts[self._current], self.shown.lasts[self._current]
        top, height = self.scroll_offset.y, self.down
        if top + 1 <= first and last < top + height - 1:
            return
        self.scroll_to(y=max(first - min(3, height // 4), 0), animate=False)
