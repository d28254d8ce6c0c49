"""Draws only the changed cells of a screen, each by its visible widget.

Defect: Textual's compositor draws every widget on the changed lines completely and then crops: a typed
character costs a file tree, four borders and the background. A layout after a scroll is made twice.

Figure: echo of a key; see `keys_first`.

Upstream report: "The compositor could request only the visible changed lines from each widget, front to
back."
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console, RenderableType
from textual._compositor import Compositor, CompositorMap, CompositorUpdate, MapGeometry, ReflowResult
from textual._context import visible_screen_stack
from textual.errors import NoWidget
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing

#: Maximum cells per drawing step; the rest of a large terminal follows in the next loop iterations.
MOST_CELLS = 4_000
#: Cells of a line as a half-open range.
Span = tuple[int, int]


def problem() -> str:
    """Describes the missing members of the compositor, or returns ""."""
    return missing(
        Compositor,
        "_dirty_regions _full_map _full_map_invalidated _visible_map _visible_widgets",
        reflow="self parent size",
        reflow_visible="self parent size",
        find_widget="self widget",
        render_update="self full screen_stack simplify",
        update_widgets="self widgets",
        _regions_to_spans="regions",
    )


class ChangedSpan(NamedTuple):
    y: int
    x: int
    strip: Strip


class PiecesUpdate(CompositorUpdate):
    def __init__(self, pieces: Sequence[ChangedSpan]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for y, x, strip in self.pieces)


class SpanCompositor(Compositor):
    def __init__(self) -> None:
        super().__init__()
        #: The map at the last layout, as reported to the widgets.
        self._told: CompositorMap = {}
        #: Visible regions of the widgets at the last drawing.
        self._seen: dict[Widget, tuple[Region, Region]] = {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """A position query between a scroll and the layout makes Textual build the map early and report no
        changes; this method then reports shown and resized widgets.
        """
        before = self._told
        made_meanwhile = self._full_map is not before
        result = super().reflow(parent, size)
        # Textual leaves the mark of an earlier scroll on the new map, and the next query lays the screen out again.
        self._full_map_invalidated = False
        now = self._told = self._full_map
        if made_meanwhile:
            shown = now.keys() - before.keys()
            both = now.keys() & before.keys()
            resized = {one for one in both if now[one].region.size != before[one].region.size}
            return ReflowResult(hidden=result.hidden, shown=shown, resized=resized)
        return result

    def reflow_visible(self, parent: Widget, size: Size) -> set[Widget]:
        """Textual would redraw the whole screen for the first scroll after each layout."""
        to_draw = set(self._dirty_regions)
        try:
            return super().reflow_visible(parent, size)
        finally:
            self._dirty_regions = to_draw

    def find_widget(self, widget: Widget) -> MapGeometry:
        """Textual would lay the screen out again if the first query after a scroll is about a hidden widget."""
        asks = self._full_map_invalidated and widget not in (self._visible_map or ())
        if asks and not all(one.display for one in widget.ancestors_with_self if isinstance(one, Widget)):
            raise NoWidget("Widget is not in layout")
        return super().find_widget(widget)

    def mark_moved(self) -> None:
        """Marks the cells of widgets added, removed, moved or resized since the last call, regardless of
        when the map was built.
        """
        seen = self.visible_widgets
        if seen is not self._seen:
            changed = seen.items() ^ self._seen.items()
            self._dirty_regions.update(clip.intersection(region) for _, (region, clip) in changed)
            self._seen = seen

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
    ) -> RenderableType | None:
        """Returns the changes since the last call. Textual draws full screens for pictures."""
        if full:
            return super().render_update(full, screen_stack, simplify)
        visible_screen_stack.set(screen_stack or [])
        self.mark_moved()
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
        pieces = sorted(self._pieces(spans), key=lambda piece: (piece.y, piece.x))
        return PiecesUpdate(pieces) if pieces else None  # ty: ignore[invalid-explicit-return]

    def _pieces(self, open_: dict[int, list[Span]]) -> Iterator[ChangedSpan]:
        """`open_` maps lines to cells not yet drawn by any widget."""
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
                        yield ChangedSpan(y, start, strip.crop(start - seen.x, stop - seen.x))
                        left += [
                            cells for cells in ((span[0], start), (stop, span[1])) if cells[0] < cells[1]
                        ]
                    if left:
                        open_[y] = left
                    else:
                        del open_[y]


def _runs(open_: dict[int, list[Span]], seen: Region) -> list[Span]:
    runs: list[Span] = []
    for y in seen.line_range:
        if any(start < seen.right and seen.x < end for start, end in open_.get(y, ())):
            if runs and runs[-1][1] == y:
                runs[-1] = runs[-1][0], y + 1
            else:
                runs.append((y, y + 1))
    return runs
