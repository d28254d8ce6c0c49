"""Constant layout time for widgets with thousands of lines.

Defect: `StylesCache.set_dirty` records every line of a region, and `SpatialMap.insert` every 20 lines of
a widget: for 20,000 lines this takes longer than the rest of a frame.

Figure: longest stall while a reply streams and while it is resized, at 20,000 lines.

Upstream report: "`StylesCache.set_dirty` could record only cached lines. `SpatialMap` could keep regions
of more than a hundred grid cells in a list that each query scans."
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual._spatial_map import SpatialMap
from textual._styles_cache import StylesCache
from textual.geometry import Region

from tui_agent.ui.textual_patches.guard import missing, usable

#: Minimum lines of a tall widget.
TALL = 2_000


def apply() -> bool:
    known = usable(
        "tall widgets",
        missing(StylesCache, "_cache _dirty_lines", set_dirty="self regions", clear="self"),
        missing(SpatialMap, "_fixed total_region", insert="self regions_and_values"),
    )
    if not known:
        return False
    insert = SpatialMap.insert

    def set_dirty(cache: StylesCache, *regions: Region) -> None:
        if not regions:
            cache.clear()
        for region in regions:
            cache._dirty_lines.update(y for y in cache._cache if y in region.line_range)

    def insert_few(places: SpatialMap[Any], found: Iterable[tuple[Region, Any, bool, bool, Any]]) -> None:
        found = list(found)
        tall = [one for one in found if one[0].height > TALL and not one[3]]
        insert(places, [one for one in found if one not in tall])
        for region, _, fixed, _, value in tall:
            places.total_region = places.total_region if fixed else places.total_region.union(region)
            places._fixed.append(value)

    StylesCache.set_dirty = set_dirty  # ty: ignore[invalid-assignment]
    SpatialMap.insert = insert_few  # ty: ignore[invalid-assignment]
    return True
