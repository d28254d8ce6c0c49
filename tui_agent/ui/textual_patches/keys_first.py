"""When a frame is drawn: keys first.

Defect: a key is drawn with the next frame of Textual, and a frame is laid out and drawn in one step of the loop.

Figure: echo of a key, 4.3 ms where it is 26 ms without (docs/performance.md, "A frame, and a key").

Checked with: Textual 8.2.8.

Upstream report: "A screen could draw what has the focus ahead of the next frame, and let a key in between the layout of
a frame and its drawing."
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual.app import App
from textual.geometry import Size
from textual.screen import Screen, ScreenResultType

from tui_agent.ui.textual_patches.guard import missing, module_of, plain_unless

if TYPE_CHECKING:
    from tui_agent.ui.textual_patches.spans import SpanCompositor

_log = logging.getLogger(__name__)

#: Seconds for which a drawing is put off while a key is handled, and how many times at most: half a frame's time.
PUT_OFF, MOST_PUT_OFF = 0.002, 4

_spans = module_of("spans")


@plain_unless(
    "keys first",
    _spans.problem() if _spans else "the compositor's names are others",
    missing(
        Screen,
        "_compositor _dirty_widgets _scroll_required _layout_widgets",
        _compositor_refresh="self",
        _refresh_layout="self size scroll",
        _screen_resized="self size",
        _on_timer_update="self",
    ),
    missing(App, "_batch_count", _handle_exception="self error"),
)
class KeysFirstScreen(Screen[ScreenResultType]):
    """Lets a key be seen before a frame: what has the focus is drawn ahead of it, what is scrolled at once, and while
    nobody types there is room for a key between the layout of a frame and its drawing.

    Together these two would hold up a key for 15 ms, ten times a second while a reply streams.
    """

    @property
    def _in_force(self) -> bool:
        return "_compositor_refresh" in vars(KeysFirstScreen)

    def __init__(self, typing: Callable[[], bool]) -> None:
        """`typing` says whether a key is being handled."""
        super().__init__()
        self._typing = typing
        if self._in_force and _spans is not None:
            self._compositor = _spans.SpanCompositor()
        self._apart = False
        self._due: asyncio.TimerHandle | None = None

    def on_idle(self) -> None:
        if self._in_force and self._typing():
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
