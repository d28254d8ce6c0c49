"""Caches of Textual that would keep what is no longer shown, patched: memory and time do not grow with every turn."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.await_remove import AwaitRemove
    from textual.color import Color
    from textual.document._document import DocumentBase
    from textual.filter import LineFilter
    from textual.geometry import Region
    from textual.strip import Strip

#: Lines of a widget from which on it is tall.
TALL = 2_000


def patch_caches() -> None:
    """All of it, once in the life of the process."""
    patch_styles_cache()
    patch_strip_caches()
    patch_notices()
    patch_tall_widgets()


def patch_styles_cache() -> None:
    """A cache over all widgets holds on to the newest thousand by their drawn lines, also those that were removed:
    what it remembers depends on two colours only."""
    from textual._styles_cache import StylesCache

    method: Any = StylesCache.get_inner_outer
    original = getattr(method, "__wrapped__", None)
    if original is None:
        return  # patched already, or another version that has no such cache

    @lru_cache(1024)
    def by_colours(base: Any, background: Any) -> Any:
        return original(None, base, background)

    def get_inner_outer(_: Any, base_background: Any, background: Any) -> Any:
        return by_colours(base_background, background)

    StylesCache.get_inner_outer = get_inner_outer  # ty: ignore[invalid-assignment]


class Forgetful:
    """A cache that keeps nothing."""

    __slots__ = ()

    def get(self, key: object, default: object = None) -> object:
        return default

    def __setitem__(self, key: object, value: object) -> None:
        pass


def patch_strip_caches() -> None:
    """A drawn line has seven caches of its own, for its parts, which have seven too: a kilobyte a line, and a ring
    where a part is the line itself. Without them a frame takes a third less time."""
    from textual.strip import Strip

    nothing: Any = Forgetful()

    def made(strip: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
        strip._segments = list(segments)
        strip._cell_length = cell_length
        strip._cell_count = strip._link_ids = strip._render_cache = None
        strip._divide_cache = strip._crop_cache = strip._crop_extend_cache = nothing
        strip._style_cache = strip._filter_cache = strip._line_length_cache = strip._offsets_cache = nothing

    def filtered(strip: Strip, line_filter: LineFilter, background: Color) -> Strip:
        """The same line, with what is known of it, where the filter changes nothing: with colours of its own a theme
        needs none."""
        segments = line_filter.apply(strip._segments, background)
        if all(new.style is old.style for new, old in zip(segments, strip._segments, strict=False)):
            return strip
        return Strip(segments, strip._cell_length)

    if {*Strip.__slots__} == {*made.__code__.co_names} - {"list"}:  # not another version
        Strip.__init__ = made  # ty: ignore[invalid-assignment]
        Strip.apply_filter = filtered  # ty: ignore[invalid-assignment]


def patch_notices() -> None:
    """A notice that a key takes away would leave the widget around it, which each frame lays out."""
    from textual.widget import Widget
    from textual.widgets._toast import Toast, ToastHolder

    def remove(toast: Toast) -> AwaitRemove:
        return Widget.remove(toast.parent if isinstance(toast.parent, ToastHolder) else toast)

    Toast.remove = remove  # ty: ignore[invalid-assignment]


def patch_tall_widgets() -> None:
    """What is done for each line of a widget that has another size, or for each 20 lines of one that is laid out,
    takes longer than all else where it has 20,000. Of lines that are not kept none is out of date; and a widget that
    is so tall may as well be looked at whatever the part in view."""
    from textual._spatial_map import SpatialMap
    from textual._styles_cache import StylesCache

    def set_dirty(cache: StylesCache, *regions: Region) -> None:
        if not regions:
            cache.clear()
        for region in regions:
            cache._dirty_lines.update(y for y in cache._cache if y in region.line_range)

    insert = SpatialMap.insert

    def insert_few(places: SpatialMap[Any], found: Iterable[tuple[Region, Any, bool, bool, Any]]) -> None:
        found = list(found)
        tall = [one for one in found if one[0].height > TALL and not one[3]]
        insert(places, [one for one in found if one not in tall])
        for region, _, fixed, _, value in tall:
            places.total_region = places.total_region if fixed else places.total_region.union(region)
            places._fixed.append(value)

    if insert.__name__ != insert_few.__name__:  # else patched already
        StylesCache.set_dirty = set_dirty  # ty: ignore[invalid-assignment]
        SpatialMap.insert = insert_few  # ty: ignore[invalid-assignment]


def release_document(document: DocumentBase) -> None:
    """A document that is no longer shown: its tree and it hold each other in a way that is never collected."""
    if hasattr(document, "_syntax_tree"):
        document._syntax_tree = None  # ty: ignore[invalid-assignment]
