"""Gives key echo priority over frames.

Defect: Textual shows a key with the next frame, and lays out and draws a frame in one step of the loop.

Figure: echo of a key, 4.3 ms with the patch, 26 ms without (docs/notes/performance.md, "A frame, and a
key").

Upstream report: "A screen could draw the focused widget before the next frame, and handle a key between
layout and drawing."
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual.app import App
from textual.geometry import Size
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, module_of, plain_unless

if TYPE_CHECKING:
    from tui_agent.ui.textual_patches.spans import SpanCompositor

_log = logging.getLogger(__name__)

#: Seconds by which a pending key delays a frame, and the maximum number of delays: half a frame's time in
#: total.
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
    """Draws the focused widget and scrolling before the frame, and separates layout from drawing while no
    key is handled.
    """

    @property
    def _in_force(self) -> bool:
        return "_compositor_refresh" in vars(KeysFirstScreen)

    def __init__(self, typing: Callable[[], bool]) -> None:
        super().__init__()
        self._typing = typing
        #: Shows keys while no widget has the focus.
        self.echo: Widget | None = None
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
        """Two resizes since the last layout invalidate the terminal's content, even if the size is
        unchanged.
        """
        self._compositor._dirty_regions.add(size.region)
        super()._screen_resized(size)

    def _compositor_refresh(self) -> None:
        drawn_soon = self._due is not None and not self._typing()
        # Batches show nothing and would discard the drawn frame.
        if self._apart or drawn_soon or self.app._batch_count:
            self._draw_frame_later(0, MOST_PUT_OFF)
            return
        if self._due is not None:
            self._due.cancel()
            self._due = None
        cast("SpanCompositor", self._compositor).mark_moved()  # also for a dialog over this screen
        super()._compositor_refresh()
        if self._compositor._dirty_regions and self.is_current:
            self._draw_frame_later(0, MOST_PUT_OFF)

    def _draw_frame_later(self, seconds: float, put_off: int) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(seconds, self._draw_frame, put_off)

    def _draw_frame(self, put_off: int) -> None:
        """Draws the laid-out frame, after at most `put_off` delays for pending keys."""
        self._due = None
        if self.app._batch_count:
            self._draw_frame_later(PUT_OFF, put_off)
        elif self._typing() and put_off:
            self._draw_frame_later(PUT_OFF, put_off - 1)
        elif self.is_running:
            try:
                self._compositor.update_widgets(self._dirty_widgets)
                self._compositor_refresh()
            except Exception as error:  # the loop would only log it and leave the screen unchanged
                _log.debug("a frame failed", exc_info=True)
                self.app._handle_exception(error)

    def _paint_focused(self) -> None:
        """Draws changes of the focused widget before the pending frame, at most 1/60 s ahead. A moved widget
        is drawn with that frame.
        """
        focused, waiting = self.focused or self.echo, self._dirty_widgets
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
