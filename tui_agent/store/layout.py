"""Layout of the screen, loaded before the other state."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class LayoutSlice(Struct, frozen=True):
    """`place` is a pane's own position. `sizes` are factors of the default share."""

    focus: str = "chat"
    zoomed: str = ""
    hidden: tuple[str, ...] = ()
    tabs: dict[str, str] = field(default_factory=dict)
    place: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
