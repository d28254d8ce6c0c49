"""A widget that only grew at its end: what is drawn stays, and its new height needs no second layout.

Defect: `Widget._size_updated` draws a widget whole for each new height, and asks for another layout after it.

Figure: share of a core while 100 tokens a second stream; time of a frame (docs/performance.md).

Checked with: Textual 8.2.8.

Upstream report: "A widget that draws its lines itself could keep them if only its height is another."
"""

from __future__ import annotations

from textual import events
from textual.geometry import Size
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, plain_unless

_problem = missing(Widget, "_size", _size_updated="self size virtual_size container_size layout")


@plain_unless("laid out once", _problem)
class LaidOutOnce(Widget):
    """Gets no second layout after one in which its size changed, unless its scrollbar came or went."""

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
    """Keeps what is drawn if only its height is another."""

    def resized(self, size: Size, container: Size) -> None:
        """Called when its size is known, before it is drawn."""

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
