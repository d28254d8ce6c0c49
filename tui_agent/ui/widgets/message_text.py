"""The text of a message: one widget that draws the lines in view, however long the text and however fast it grows.

A widget for each block, as Textual's own Markdown has, costs a millisecond and more of the event loop apiece, for
layout and styles. Here the text becomes lines in a thread, and only what is seen becomes cells.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from textual.content import Content
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widget import Widget

from tui_agent.ui.widgets.markdown import Drawn, TextLine, draw

#: Shorter text is parsed, and text of so many characters wrapped, at once; longer text in a thread.
AT_ONCE = 4_000
#: Cells that code is indented on both sides.
MARGIN = 1


class MessageText(Widget):
    """A message in Markdown, or with `parsed` false in plain words.

    `show` may be called again with a longer text while it streams; `growing` says that more will come.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"message-text--code"}
    DEFAULT_CSS = """
    MessageText { height: auto; }
    MessageText > .message-text--code { background: $surface-raised; }
    """

    def __init__(self, text: str, *, parsed: bool = True, growing: bool = False, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._text = text
        self._parsed = parsed
        self._growing = growing
        self._drawn = draw(text, parsed=parsed, growing=growing) if len(text) <= AT_ONCE else Drawn("", ())
        self._drawing = asyncio.Lock()
        #: How far down each line ends, at the width at which it was measured.
        self._ends: list[int] = []
        self._width = self._wanted = 0
        self._strips: dict[int, list[Strip]] = {}

    def on_mount(self) -> None:
        if not self._drawn.lines:
            self.run_worker(partial(self.show, self._text, growing=self._growing), exit_on_error=False)

    async def show(self, text: str, *, growing: bool = False) -> None:
        """Draw this text. Returns when it is on its way to the screen."""
        self._text = text
        async with self._drawing:
            if text != self._text:
                return  # a longer one waits
            before = self._drawn
            if len(text) <= AT_ONCE:
                drawn = draw(text, parsed=self._parsed, growing=growing, before=before)
            else:
                drawn = await asyncio.to_thread(
                    draw, text, parsed=self._parsed, growing=growing, before=before
                )
            kept = _same(before.lines, drawn.lines)
            fresh, width = drawn.lines[kept:], self._width
            if width:
                heights = await _heights(fresh, width)
            self._drawn = drawn
            self._strips = {at: strips for at, strips in self._strips.items() if at < kept}
            tall = self._ends[-1] if self._ends else 0
            if width and width == self._width:
                del self._ends[kept:]
                self._ends += _sums(heights, self._ends[-1] if self._ends else 0)
            else:
                self._width = self._wanted = 0
            self._redraw(kept, not self._width or tall != (self._ends[-1] if self._ends else 0))

    def _redraw(self, first: int, layout: bool) -> None:
        """Draw the lines from that one on; those before keep their cells."""
        top = self._ends[first - 1] if 0 < first <= len(self._ends) else 0
        height = max(self.size.height, self._ends[-1] if self._ends else 0)
        if height > top:
            self.refresh(Region(0, top, max(self.size.width, 1), height - top), layout=layout)

    # ── size ─────────────────────────────────────────────────────────────────────────────────────────────

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if width != self._width:
            if sum(len(line.content) for line in self._drawn.lines) <= AT_ONCE:
                self._measured(width, [_height(line, width) for line in self._drawn.lines])
            elif width != self._wanted:
                self._wanted = width
                self.run_worker(partial(self._measure, width), group="measure", exclusive=True)
        return self._ends[-1] if self._ends else 0

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        """A text that grew keeps the lines that are drawn, and needs no second layout for its new height."""
        if size.width == self._size.width:
            self._size = size
        return super()._size_updated(size, virtual_size, container_size, layout=False)

    async def _measure(self, width: int) -> None:
        async with self._drawing:
            heights = await _heights(self._drawn.lines, width)
            self._measured(width, heights)
        self.refresh(layout=True)

    def _measured(self, width: int, heights: Sequence[int]) -> None:
        self._width = self._wanted = width
        self._ends = _sums(heights)
        self._strips.clear()

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────

    def render_line(self, y: int) -> Strip:
        at = bisect_right(self._ends, y)
        if at >= len(self._ends):
            return Strip.blank(self.size.width, self.rich_style)
        strips = self._strips.get(at)
        if strips is None:
            strips = self._strips[at] = self._render_strips(at)
        from_top = y - (self._ends[at - 1] if at else 0)
        return strips[from_top] if from_top < len(strips) else Strip.blank(self.size.width, self.rich_style)

    def _render_strips(self, at: int) -> list[Strip]:
        line, style = self._drawn.lines[at], self.visual_style
        content, selection = line.content, self.text_selection
        if selection is not None and (span := selection.get_span(at)) is not None:
            start, end = span
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(selected, start, len(content) if end == -1 else end)
        if not line.code:
            return [_placed(strip, at) for strip in self._wrapped(content, self._width, style)]
        style += self.get_visual_style("message-text--code", partial=True)
        edge = Segment(" " * MARGIN, style.rich_style)
        width = self._width - 2 * MARGIN
        return [
            Strip.join(
                [Strip([edge]), _placed(strip.extend_cell_length(width, style.rich_style), at), Strip([edge])]
            )
            for strip in self._wrapped(content, width, style)
        ]

    def _wrapped(self, content: Content, width: int, style: Style) -> list[Strip]:
        return Visual.to_strips(self, content, max(width, 1), None, style, apply_selection=False)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    # ── selecting ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def plain(self) -> str:
        """All that is drawn, without styles."""
        return "\n".join(line.content.plain for line in self._drawn.lines)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract(self.plain), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        super().selection_updated(selection)


def _placed(strip: Strip, line: int) -> Strip:
    """The strip with the places of its letters in the text, which is what a selection by mouse goes by."""
    first = next(iter(strip), None)
    place = first.style.meta.get("offset") if first is not None and first.style is not None else None
    return strip if place is None else strip.apply_offsets(place[0], line)


def _height(line: TextLine, width: int) -> int:
    width = max(1, width - 2 * MARGIN if line.code else width)
    plain = line.content.plain
    return (
        1
        if plain.isascii() and len(plain) <= width and "\t" not in plain
        else line.content.get_height({}, width)
    )


async def _heights(lines: Sequence[TextLine], width: int) -> list[int]:
    if sum(len(line.content) for line in lines) <= AT_ONCE:
        return [_height(line, width) for line in lines]
    return await asyncio.to_thread(lambda: [_height(line, width) for line in lines])


def _sums(heights: Sequence[int], before: int = 0) -> list[int]:
    return list(accumulate(heights, initial=before))[1:]


def _same(before: Sequence[TextLine], after: Sequence[TextLine]) -> int:
    """How many lines at the beginning are the same."""
    pairs = zip(before, after, strict=False)
    return next(
        (at for at, (old, new) in enumerate(pairs) if not _equal(old, new)), min(len(before), len(after))
    )


def _equal(old: TextLine, new: TextLine) -> bool:
    return old is new or (
        old.code is new.code
        and old.content.plain == new.content.plain
        and old.content.spans == new.content.spans
    )
