"""What Textual would keep of what is gone: mended here, so that the interface does not grow with every turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.style import Style
    from textual.document._document import DocumentBase
    from textual.strip import Strip


def mend_styles_cache() -> None:
    """A cache over all widgets holds on to the newest thousand by their drawn lines, also those that were removed:
    what it remembers depends on two colours only."""
    from textual._styles_cache import StylesCache

    method: Any = StylesCache.get_inner_outer
    original = getattr(method, "__wrapped__", None)
    if original is None:
        return  # mended already, or another version that has no such cache

    @lru_cache(1024)
    def by_colours(base: Any, background: Any) -> Any:
        return original(None, base, background)

    def get_inner_outer(_: Any, base_background: Any, background: Any) -> Any:
        return by_colours(base_background, background)

    StylesCache.get_inner_outer = get_inner_outer  # ty: ignore[invalid-assignment]


def mend_strips() -> None:
    """A strip that is drawn at its own width remembers itself as its only part, so each line that was ever drawn
    waits for the garbage collector: in a long session tens of megabytes of them."""
    from textual.strip import Strip

    divide: Any = Strip.divide
    crop_extend: Any = Strip.crop_extend
    if hasattr(divide, "__wrapped__"):
        return  # mended already

    @wraps(divide)
    def divided(strip: Strip, cuts: Iterable[int]) -> Sequence[Strip]:
        inside = [cut for cut in cuts if cut <= strip.cell_length]
        return [strip] if inside == [strip.cell_length] else divide(strip, inside)

    @wraps(crop_extend)
    def cropped(strip: Strip, start: int, end: int, style: Style | None) -> Strip:
        return strip if start <= 0 and end == strip.cell_length else crop_extend(strip, start, end, style)

    Strip.divide = divided  # ty: ignore[invalid-assignment]
    Strip.crop_extend = cropped  # ty: ignore[invalid-assignment]


def let_go(document: DocumentBase) -> None:
    """A document that is no longer shown: its tree and it hold each other in a way that is never collected."""
    if hasattr(document, "_syntax_tree"):
        document._syntax_tree = None  # ty: ignore[invalid-assignment]
