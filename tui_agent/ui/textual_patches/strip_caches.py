"""Drawn lines without their own caches.

Defect: a `Strip` has seven caches for its parts, which have seven too: a kilobyte per line, and a
reference cycle if a part is the line itself, which only the garbage collector frees.

Figure: processor time of a frame, a third less without the caches; share of a core while 100 tokens a
second stream.

Upstream report: "A `Strip` could create its caches on the second call, and
`apply_filter` could return an unchanged strip."
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.style import Style
from textual.filter import ANSIToTruecolor
from textual.strip import Strip

from tui_agent.ui.textual_patches.guard import missing, usable

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.color import Color
    from textual.filter import LineFilter


class NoCache:
    __slots__ = ()

    def get(self, key: object, default: object = None) -> object:
        return default

    def __bool__(self) -> bool:
        return False

    def __setitem__(self, key: object, value: object) -> None:
        pass


def apply() -> bool:
    fields = {*Strip.__slots__} ^ ({*_made.__code__.co_names} - {"list", "_NOTHING"})
    known = usable(
        "strip caches",
        missing(Strip, __init__="self segments cell_length", apply_filter="self filter background"),
        missing(Style, "_color _bgcolor _attributes"),
        f"a strip has other fields: {', '.join(sorted(fields))}" if fields else "",
    )
    if known:
        Strip.__init__ = _made  # ty: ignore[invalid-assignment]
        Strip.apply_filter = _filtered  # ty: ignore[invalid-assignment]
    return known


_NOTHING: Any = NoCache()


def _made(strip: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
    strip._segments = list(segments)
    strip._cell_length = cell_length
    strip._cell_count = strip._link_ids = strip._render_cache = None
    strip._divide_cache = strip._crop_cache = strip._crop_extend_cache = _NOTHING
    strip._style_cache = strip._filter_cache = strip._line_length_cache = strip._offsets_cache = _NOTHING


#: The bit of a dim style.
_DIM = 2


def _is_true(style: Style | None) -> bool:
    """Whether it has neither the terminal's own colours nor dim ones, which a filter would replace."""
    if style is None:
        return True
    colour, ground = style._color, style._bgcolor
    return (
        (colour is None or colour.triplet is not None)
        and (ground is None or ground.triplet is not None)
        and not style._attributes & _DIM
    )


def _filtered(strip: Strip, line_filter: LineFilter, background: Color) -> Strip:
    if type(line_filter) is ANSIToTruecolor and all(_is_true(one.style) for one in strip._segments):
        return strip
    asked: Any = (line_filter, background)
    if strip._filter_cache.get(asked):
        return strip
    segments = line_filter.apply(strip._segments, background)
    styles = zip((new.style for new in segments), (old.style for old in strip._segments), strict=False)
    if all(new is old or new == old for new, old in styles):  # a filter may return a style of equal value
        # Only that it is unchanged: the strip itself would be a reference cycle.
        strip._filter_cache = {**(strip._filter_cache or {}), asked: True}  # ty: ignore[invalid-assignment]
        return strip
    return Strip(segments, strip._cell_length)
