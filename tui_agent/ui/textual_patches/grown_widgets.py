"""Keeps the drawn lines of a widget that grows at its end, and avoids a second layout.

Defect: `Widget._size_updated` redraws the whole widget for each new height and requests another layout.

Figure: share of a core while 100 tokens a second stream; time of a frame (docs/notes/performance.md).

Upstream report: "A widget that draws its own lines could keep them if only its height changes."
"""

from __future__ import annotations

from textual import events
from textual.geometry import Size
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, plain_unless

_problem = missing(Widget, "_size", _size_updated="self size virtual_size container_size layout")


@plain_unless("laid out once", _problem)
class LaidOutOnce(Widget):
    """Skips the second layout after a size change, unless a scrollbar appeared or disappeared."""

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        barred = self.show_vertical_scrollbar
        resized = super()._size_updated(size, virtual_size, container_size, layout=False)
        if self.show_vertical_scrollbar != barred:
            self.call_next(self.refresh, layout=True)
        return resized


@plain_unless("grown widgets", _problem)
class GrowsAtEnd(Widget):
    @property
    def size(self) -> Size:
        """Size in the last layout. Textual finds it through the screen, and for a widget out of view lays
        the screen out again after each scroll.
        """
        (width, height), gutter = self.outer_size, self.gutter
        return Size(max(width - gutter.width, 0), max(height - gutter.height, 0))

    def resized(self, size: Size, container: Size) -> None:
        pass

    def on_resize(self, event: events.Resize) -> None:
        if "_size_updated" not in vars(GrowsAtEnd):
            self.resized(event.size, event.container_size or event.size)

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        if size.width == self._size.width:
            self._size = size
        self.resized(size, container_size)
        return super()._size_updated(size, virtual_size, container_size, layout=False)
