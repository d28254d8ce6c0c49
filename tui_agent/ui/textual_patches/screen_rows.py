"""The drawn rows of one screen, for the plain screen, and the row of an option in a list.

Defect: Textual has no public access to a screen's rows (`export_screenshot` makes a picture), nor to an
option's first line in an `OptionList`.

Figure: a row of the plain screen, drawn once; without the patch each update redraws each widget.

Upstream report: "Programs for screen readers need a public `Screen.render_strips()`, and
`OptionList.line_of(index)` for their cursor."
"""

from __future__ import annotations

from functools import cache
from typing import Any

from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import OptionList

from tui_agent.ui.textual_patches.guard import missing, usable

try:
    from textual._compositor import Compositor
    from textual._context import visible_screen_stack
except ImportError:
    Compositor = visible_screen_stack = None


def rows_of(screen: Screen[Any]) -> list[Strip]:
    """Excludes the screens behind it."""
    if _known() and visible_screen_stack is not None:
        visible_screen_stack.set([])
        return screen._compositor.render_strips()
    # with public names: draws each widget over the previous ones
    size = screen.size
    rows = [Strip.blank(size.width) for _ in range(size.height)]
    for widget in screen.walk_children(Widget, with_self=True):
        region = widget.region
        seen = region.intersection(size.region)
        parent = widget.parent
        while isinstance(parent, Widget):
            seen = seen.intersection(parent.region)
            parent = parent.parent
        if not widget.display or not seen:
            continue
        drawn = widget.render_lines(Region(seen.x - region.x, seen.y - region.y, seen.width, seen.height))
        for y, strip in enumerate(drawn, seen.y):
            before, after = rows[y].crop(0, seen.x), rows[y].crop(seen.right)
            rows[y] = Strip.join([before, strip.adjust_cell_length(seen.width), after])
    return rows


def line_of(options: OptionList, index: int) -> int:
    """The first line of an option, relative to the first option."""
    return options._index_to_line.get(index, 0) if _known() else index


@cache
def _known() -> bool:
    return usable(
        "rows of a screen",
        "" if visible_screen_stack is not None else "its names are others",
        missing(Screen, "_compositor"),
        missing(Compositor or object, render_strips="self size"),
        missing(OptionList, "_index_to_line"),
    )
