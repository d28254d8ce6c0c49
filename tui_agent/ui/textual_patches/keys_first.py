"""What is drawn of a screen, and when: the cells that changed, each by the one widget that is seen there, keys first.

Textual's compositor draws every widget that reaches the changed lines whole, and then takes what is seen: a letter that
is typed costs a file tree, four borders and the background.

Defect: Textual's compositor draws each widget that reaches the changed lines whole, and a key is drawn with the next
frame.

Figure: echo of a key, 4.3 ms where it is 26 ms without (docs/performance.md, "A frame, and a key").

Checked with: Textual 8.2.8.

Upstream report: "The compositor could ask each widget for the lines of it that are seen and have changed, from the
front, and a screen could draw what has the focus ahead of the next frame."
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from rich.console import Console, RenderableType
from textual._compositor import Compositor, CompositorMap, CompositorUpdate, ReflowResult
from textual._context import visible_screen_stack
from textual.geometry import Region, Size
from textual.screen import Screen, ScreenResultType
from textual.strip import Strip
from textual.widget import Widget

_log = logging.getLogger(__name__)

#: Seconds for which a drawing is put off while a key is handled, and how many times at most: half a frame's time.
PUT_OFF, MOST_PUT_OFF = 0.002, 4
#: Cells that are drawn at once: the rest of a large terminal follows in the next rounds of the loop.
MOST_CELLS = 4_000
#: Cells of a line, from the first to before the second.
Span = tuple[int, int]


class Stretch(NamedTuple):
    """Cells that belong together, and where they are."""

    y: int
    x: int
    strip: Strip


class PiecesUpdate(CompositorUpdate):
    """Pieces as the terminal takes them."""

    def __init__(self, pieces: Sequence[Stretch]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for y, x, strip in self.pieces)


class KeysFirstScreen(Screen[ScreenResultType]):
    """Lets a key be seen before a frame: what has the focus is drawn ahead of it, what is scrolled at once, and while
    nobody types there is room for a key between the layout of a frame and its drawing.

    Together these two would hold up a key for 15 ms, ten times a second while a reply streams.
    """

    def __init__(self, typing: Callable[[], bool]) -> None:
        """`typing` says whether a key is being handled."""
        super().__init__()
        self._typing = typing
        self._compositor = SpanCompositor()
        self._apart = False
        self._due: asyncio.TimerHandle | None = None

    def on_idle(self) -> None:
        if self._typing():
            if self._scroll_required:
                self._on_timer_update()
            self._paint_focused()

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        self._apart = not scroll and not self._typing()
        try:
            super()._refresh_layout(size, scroll)
        finally:
            self._apart = False

    def _screen_resized(self, size: Size) -> None:
        """A terminal that was resized twice since the last layout has lost what it showed, whatever its size now."""
        self._compositor._dirty_regions.add(size.region)
        super()._screen_resized(size)

    def _compositor_refresh(self) -> None:
        drawn_soon = self._due is not None and not self._typing()
        # In a batch nothing is shown, and what was drawn would be lost.
        if self._apart or drawn_soon or self.app._batch_count:
            self._draw_frame_later(0, MOST_PUT_OFF)
            return
        if self._due is not None:
            self._due.cancel()
            self._due = None
        cast("SpanCompositor", self._compositor).mark_moved()  # also for a dialog that lies over this screen
        super()._compositor_refresh()
        if self._compositor._dirty_regions and self.is_current:
            self._draw_frame_later(0, MOST_PUT_OFF)

    def _draw_frame_later(self, seconds: float, put_off: int) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(seconds, self._draw_frame, put_off)

    def _draw_frame(self, put_off: int) -> None:
        """Draw what was laid out. A key that came meanwhile is first, so many times at most."""
        self._due = None
        if self.app._batch_count:
            self._draw_frame_later(PUT_OFF, put_off)
        elif self._typing() and put_off:
            self._draw_frame_later(PUT_OFF, put_off - 1)
        elif self.is_running:
            try:
                self._compositor.update_widgets(self._dirty_widgets)
                self._compositor_refresh()
            except Exception as error:  # the loop would only log it, and the screen stay as it is
                _log.debug("a frame failed", exc_info=True)
                self.app._handle_exception(error)

    def _paint_focused(self) -> None:
        """Draw what has the focus now, if it changed, ahead of the frame that all else waits for, at most a 60th of a
        second. Where its place changes too it is drawn with that frame."""
        focused, waiting = self.focused, self._dirty_widgets
        if focused is None or focused not in waiting or self.app._batch_count or not self.is_current:
            return
        if any(focused is widget or focused in ones for widget, ones in self._layout_widgets.items()):
            return
        compositor = cast("SpanCompositor", self._compositor)
        compositor.mark_moved()
        laid_out, compositor._dirty_regions = compositor._dirty_regions, set()
        compositor.update_widgets({focused})
        self._dirty_widgets = set()
        super()._compositor_refresh()
        self._dirty_widgets = waiting - {focused}
        compositor._dirty_regions |= laid_out


class SpanCompositor(Compositor):
    """Goes through the widgets from the front and asks each for the lines of it that are seen and have changed."""

    def __init__(self) -> None:
        super().__init__()
        #: Where widgets were when the screen was last laid out, and they were told.
        self._told: CompositorMap = {}
        #: Where widgets were seen, and of which widgets what is drawn was made.
        self._seen: dict[Widget, tuple[Region, Region]] = {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay the screen out. Whoever asks for a place after a scroll and before this has Textual make the map at once,
        which then finds nothing new: what came into view or has another size is told so here."""
        before = self._told
        made_meanwhile = self._full_map is not before
        result = super().reflow(parent, size)
        now = self._told = self._full_map
        if made_meanwhile:
            shown = now.keys() - before.keys()
            both = now.keys() & before.keys()
            resized = {one for one in both if now[one].region.size != before[one].region.size}
            return ReflowResult(hidden=result.hidden, shown=shown, resized=resized)
        return result

    def reflow_visible(self, parent: Widget, size: Size) -> set[Widget]:
        """Textual would draw the whole screen for the first scroll after each layout."""
        to_draw = set(self._dirty_regions)
        try:
            return super().reflow_visible(parent, size)
        finally:
            self._dirty_regions = to_draw

    def mark_moved(self) -> None:
        """Have the cells drawn of each widget that came, went, moved or has another size since this was last asked,
        whenever the map was made and by whom."""
        seen = self.visible_widgets
        if seen is not self._seen:
            changed = seen.items() ^ self._seen.items()
            self._dirty_regions.update(clip.intersection(region) for _, (region, clip) in changed)
            self._seen = seen

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
    ) -> RenderableType | None:
        """What changed since the last time; the whole screen, for a picture, is Textual's to draw."""
        if full:
            return super().render_update(full, screen_stack, simplify)
        visible_screen_stack.set(screen_stack or [])
        self.mark_moved()
        pieces = sorted(self._pieces(self._changed_spans()), key=lambda piece: (piece.y, piece.x))
        return PiecesUpdate(pieces) if pieces else None  # ty: ignore[invalid-explicit-return]

    def _changed_spans(self) -> dict[int, list[Span]]:
        screen = self.size.region
        regions = [region.intersection(screen) for region in self._dirty_regions]
        self._dirty_regions.clear()
        spans: dict[int, list[Span]] = {}
        cells = 0
        for y, start, end in sorted(self._regions_to_spans(regions)):
            cells += end - start
            if cells > MOST_CELLS and spans:
                self._dirty_regions.add(Region(start, y, end - start, 1))
            elif start < end:
                spans.setdefault(y, []).append((start, end))
        return spans

    def _pieces(self, open_: dict[int, list[Span]]) -> Iterator[Stretch]:
        """`open_` are the cells of each line that no widget has drawn so far."""
        for widget, (region, clip) in self.visible_widgets.items():
            if not open_:
                return
            seen = region.intersection(clip)
            for first, end in _runs(open_, seen):
                part = Region(seen.x - region.x, first - region.y, seen.width, end - first)
                for y, strip in zip(range(first, end), widget.render_lines(part), strict=False):
                    left: list[Span] = []
                    for span in open_[y]:
                        start, stop = max(span[0], seen.x), min(span[1], seen.right)
                        if start >= stop:
                            left.append(span)
                            continue
                        yield Stretch(y, start, strip.crop(start - seen.x, stop - seen.x))
                        left += [
                            cells for cells in ((span[0], start), (stop, span[1])) if cells[0] < cells[1]
                        ]
                    if left:
                        open_[y] = left
                    else:
                        del open_[y]


def _runs(open_: dict[int, list[Span]], seen: Region) -> list[Span]:
    """The runs of lines in which cells of this region are open."""
    runs: list[Span] = []
    for y in seen.line_range:
        if any(start < seen.right and seen.x < end for start, end in open_.get(y, ())):
            if runs and runs[-1][1] == y:
                runs[-1] = runs[-1][0], y + 1
            else:
                runs.append((y, y + 1))
    return runs
