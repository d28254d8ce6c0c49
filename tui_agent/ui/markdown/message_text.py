"""The text of a message, of any length, also while it streams.

Textual's Markdown has a widget per block, a millisecond each. Here a thread makes lines, and only visible
lines become cells.
"""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, takewhile
from typing import ClassVar
from weakref import WeakKeyDictionary

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.content import Content
from textual.geometry import Offset, Region, Size
from textual.screen import Screen
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style

from tui_agent.processes.background import WorkCancelled, in_background, pause
from tui_agent.ui.host import keys_of
from tui_agent.ui.markdown.rendering import coloured
from tui_agent.ui.markdown.streaming import DrawnLines, Reading
from tui_agent.ui.markdown.text_lines import MARGIN, TAB, AnyLine, DrawnRow, Fragment, TextLine
from tui_agent.ui.safe_text import one_line
from tui_agent.ui.textual_patches.grown_widgets import GrowsAtEnd
from tui_agent.ui.textual_patches.styles_cache import forget_lines
from tui_agent.ui.widgets.error_guard import WORDS, Guarded, logged
from tui_agent.ui.widgets.line_view import fit

#: Maximum characters to parse or wrap in the event loop; longer texts use a thread.
AT_ONCE = 4_000
#: The same for the new part of a growing text: 1.5 ms.
MORE_AT_ONCE = 1_000
MOST_STRIPS = 300

#: Style key of a code block's copy mark; its value is the block's first line.
_COPIED = "copied"

#: By screen: texts far from the view are measured one after another.
_TURNS: WeakKeyDictionary[Screen[object], asyncio.Lock] = WeakKeyDictionary()


class MessageText(Guarded, GrowsAtEnd):
    """Markdown, or plain text unless `parsed`. A `growing` text is incomplete."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"message-text--code"}
    DEFAULT_CSS = """
    MessageText { height: auto; }
    MessageText > .message-text--code { background: $surface-raised; }
    """

    def __init__(self, text: str, *, parsed: bool = True, growing: bool = False, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._text = text
        self._growing = growing
        self._reading = Reading(parsed=parsed)
        at_once = len(text) <= AT_ONCE
        self._drawn = self._lines_of(text, growing) if at_once else DrawnLines()
        self._read = len(text) if at_once else 0
        self._drawing = asyncio.Lock()
        #: Row below each line, measured at `_width`; `_wanted` is the current width.
        self._ends: list[int] = []
        self._width = self._wanted = 0
        self._strips: dict[int, list[Strip]] = {}
        self._colouring = self._measuring = False

    def on_mount(self) -> None:
        if not self._read or self._reading.uncoloured:
            self.run_worker(partial(self.show, self._text, growing=self._growing), exit_on_error=False)

    async def show(self, text: str, *, growing: bool = False) -> None:
        """Returns after scheduling the repaint; long code is highlighted later."""
        self._text, self._growing = text, growing
        async with self._drawing:
            if text != self._text:
                return
            read = partial(self._lines_of, text, growing)
            known = self._read if len(text) >= self._read else 0
            drawn = read() if len(text) - known <= MORE_AT_ONCE else await in_background(read)
            self._read = len(text)
            await self._show_lines(drawn)
        if self._reading.uncoloured and not self._colouring:
            self._colouring = True
            self.run_worker(self._colour(), exit_on_error=False)

    def _lines_of(self, text: str, growing: bool) -> DrawnLines:
        try:
            return self._reading.read(text, growing=growing)
        except WorkCancelled:
            raise
        except Exception as error:
            self.break_down(error)
            self._reading = Reading(parsed=False)
            return DrawnLines((TextLine(Content.styled(WORDS, "$error")),))

    async def _show_lines(self, drawn: DrawnLines) -> None:
        before, after = self._drawn.lines, drawn.lines
        most = min(len(before), len(after))
        # `Content` compares only plain text.
        changed = (
            at
            for at in range(min(drawn.kept, len(before)), most)
            if before[at] is not after[at]
            and (before[at] != after[at] or before[at].content.spans != after[at].content.spans)
        )
        kept = next(changed, most)
        fresh, width, heights = drawn.lines[kept:], 0, []
        while width != self._width:
            width = self._width
            heights = await _heights(fresh, width)
        self._drawn = drawn
        self._strips = {at: strips for at, strips in self._strips.items() if at < kept}
        tall = self._ends[-1] if self._ends else 0
        if width:
            del self._ends[kept:]
            self._ends += _sums(heights, self._ends[-1] if self._ends else 0)
        top = self._ends[kept - 1] if 0 < kept <= len(self._ends) else 0
        height = max(self.size.height, self._ends[-1] if self._ends else 0)
        if height > top:
            self.refresh(
                Region(0, top, max(self.size.width, 1), height - top),
                layout=(not width or tall != (self._ends[-1] if self._ends else 0)),
            )

    async def _colour(self) -> None:
        while codes := list(self._reading.uncoloured):
            found = await in_background(lambda: [coloured(code.code, code.language) for code in codes])
            async with self._drawing:
                drawn = DrawnLines(self._drawn.lines, len(self._drawn.lines))
                for code, contents in zip(codes, found, strict=True):
                    drawn = self._reading.colour(code, contents, drawn)
                await self._show_lines(drawn)
        self._colouring = False

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if width != self._width and (self._near or not self._width) and _short(self._drawn.lines):
            self._measured(width, [_height(line, width) for line in self._drawn.lines])
        return self._ends[-1] if self._ends else 0

    def resized(self, size: Size, container: Size) -> None:
        self._wanted = width = max(size.width - self.gutter.width, 0)
        if width:
            # For an earlier width Textual uses its cached height.
            self.get_content_height(container, container, width)
        if width not in (0, self._width) and not self._measuring:
            self._measuring = True
            self.run_worker(self._measure())

    @property
    def _near(self) -> bool:
        return getattr(self.parent, "near", True)

    async def _measure(self) -> None:
        """Measures until the width is current. Texts far from the view take turns, since each working thread
        slows the event loop.
        """
        try:
            while (width := self._wanted) not in (0, self._width):
                turn = _TURNS.setdefault(self.screen, asyncio.Lock())
                async with contextlib.nullcontext() if self._near else turn, self._drawing:
                    with contextlib.suppress(WorkCancelled):
                        lines = self._drawn.lines
                        self._measured(width, await _heights(lines, width, lambda: self._wanted == width))
        finally:
            self._measuring = False
        self.refresh(layout=True)

    def _measured(self, width: int, heights: Sequence[int]) -> None:
        self._width = width
        self._ends = _sums(heights)
        self._strips.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        if forget_lines(self, 3 * MOST_STRIPS) or len(self._strips) > MOST_STRIPS:
            self._strips.clear()
            forget_lines(self, 0)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        at = bisect_right(self._ends, y)
        if at >= len(self._ends):
            return Strip.blank(self.size.width, self.rich_style)
        strips = self._strips.get(at)
        if strips is None:
            line, selection = self._drawn.lines[at], self.text_selection
            content = line.content
            if selection is not None and (span := selection.get_span(at)) is not None:
                start, end = span
                selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
                content = content.stylize(selected, start, len(content) if end == -1 else end)
            strips = self._strips[at] = [self._strip(row, at) for row in line.rows(self._width, content)]
        from_top = y - (self._ends[at - 1] if at else 0)
        return strips[from_top] if from_top < len(strips) else Strip.blank(self.size.width, self.rich_style)

    def _strip(self, row: DrawnRow, line: int) -> Strip:
        style = self.visual_style
        if row.code:  # a partial visual style has no opaque background
            ground = style + Style(background=self.get_component_styles("message-text--code").background)
        else:
            ground = style
        strips, pieces = [], [*row.pieces]
        room = self._width - 2 * MARGIN
        if row.head:  # the language of a code block, and a clickable hint of the keys that copy it
            left = room - sum(piece.content.cell_length for piece in pieces)
            key = keys_of(self).shown("chat.blocks")
            copies = f"{key}, y copies" if key else "copy"
            gap = left - cell_len(row.head) - cell_len(copies)
            pieces.append(Fragment(Content.styled(fit(row.head, left), "$muted")))
            if gap > 1:
                pressed = Content.styled(copies, "$muted").stylize(Style.from_meta({_COPIED: line}))
                pieces += [Fragment(Content(" " * gap)), Fragment(pressed)]
        for piece in pieces:
            content = piece.content.expand_tabs(TAB) if "\t" in piece.content.plain else piece.content
            if content:
                rendered = content.render(
                    ground,
                    end="",
                    parse_style=lambda style: style if isinstance(style, Style) else Style.parse(style),
                )
                strip = Strip([Segment(text, one.rich_style) for text, one in rendered])
                strips.append(strip if piece.at < 0 else strip.apply_offsets(piece.at, line))
        if row.code:
            edge = Strip([Segment(" " * MARGIN, ground.rich_style)])
            inner = Strip.join(strips)
            last = next(reversed([*inner]), Segment("")).style
            filling = last if last and last.bgcolor else ground.rich_style
            return Strip.join([edge, inner.extend_cell_length(room, filling), edge])
        return Strip.join(strips) if strips else Strip([Segment("", style.rich_style)])

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def on_click(self, event: events.Click) -> None:
        """Copies code or a link: opening links could happen by accident, or on the wrong machine."""
        address, head = event.style.meta.get("address"), event.style.meta.get(_COPIED)
        if address:
            event.stop()
            self.app.copy_to_clipboard(address)
            self.notify(f"{one_line(address)} is copied", markup=False)
        elif isinstance(head, int):
            event.stop()
            below = self._drawn.lines[head + 1 :]
            code = takewhile(lambda line: isinstance(line, TextLine) and line.code and not line.head, below)
            self.app.copy_to_clipboard("".join(f"{line.plain[len(line.hang) :]}\n" for line in code))
            self.notify("The code is copied", markup=False)

    @property
    def plain(self) -> str:
        return "\n".join(line.plain for line in self._drawn.lines)

    def select_code(self, code: str) -> Region | None:
        """`None` if it is not drawn."""
        wanted, lines = code.rstrip("\n").split("\n"), self._drawn.lines
        for at in range(len(self._ends) - len(wanted) + 1):
            found = lines[at : at + len(wanted)]
            if [line.plain for line in found] == wanted and all(
                getattr(line, "code", False) for line in found
            ):
                last = at + len(wanted) - 1
                selection = Selection(Offset(0, at), Offset(len(wanted[-1]), last))
                self.screen.selections = {self: selection}
                top = self._ends[at - 1] if at else 0
                return Region(0, top, self.size.width, self._ends[last] - top)
        return None

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract(self.plain), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        super().selection_updated(selection)


def _short(lines: Sequence[AnyLine]) -> bool:
    return all(letters <= AT_ONCE for letters in accumulate(len(line.plain) + 1 for line in lines))


async def _heights(
    lines: Sequence[AnyLine], width: int, wanted: Callable[[], bool] = lambda: True
) -> list[int]:
    if _short(lines):
        return [_height(line, width) for line in lines]
    return await in_background(lambda: [_height(line, width) for line in lines], wanted)


def _height(line: AnyLine, width: int) -> int:
    pause()
    try:
        return line.height(width)
    except Exception as error:
        logged(error)
        return 1


def _sums(heights: Iterable[int], before: int = 0) -> list[int]:
    return list(accumulate(heights, initial=before))[1:]
