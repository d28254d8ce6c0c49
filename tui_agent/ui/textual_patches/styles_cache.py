"""Replaces a Textual cache that retains removed widgets.

Defect: `StylesCache.get_inner_outer` has `self` in its cache key, which retains the newest thousand
widgets with their drawn lines, including removed ones; its result depends only on two colours. A widget's
own cache keeps every line ever drawn.

Figure: memory of the interface after 500 turns.

Upstream report: "`StylesCache.get_inner_outer` could be a cached function of the two colours, and a
widget's lines could be limited."
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, usable

try:
    from textual._styles_cache import StylesCache
except ImportError:
    StylesCache = None


def apply() -> bool:
    original: Any = getattr(getattr(StylesCache, "get_inner_outer", None), "__wrapped__", None)
    known = usable(
        "styles cache",
        missing(StylesCache or object, get_inner_outer="cls base_background background"),
        "" if original else "it has no cache",
    )
    if not known or StylesCache is None:
        return False

    @lru_cache(1024)
    def by_colours(base: Any, background: Any) -> Any:
        return original(None, base, background)

    def get_inner_outer(_: Any, base_background: Any, background: Any) -> Any:
        return by_colours(base_background, background)

    StylesCache.get_inner_outer = get_inner_outer  # ty: ignore[invalid-assignment]
    return True


def forget_lines(widget: Widget, most: int) -> bool:
    """Drops the drawn lines of a widget if they exceed `most`. Returns whether they were dropped."""
    if not usable(
        "drawn lines",
        missing(Widget, "_styles_cache"),
        missing(StylesCache or object, "_cache", clear="self"),
    ):
        return False
    many = len(widget._styles_cache._cache) > most
    if many:
        widget._styles_cache.clear()
    return many
