"""The layout of the screen, which is there before the rest of the state."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class LayoutSlice(Struct, frozen=True):
    """What the person made of the screen: kept, so that a session opens as it was left.

    `place` holds a pane's own position, such as the review's change and hunk, as plain values. `sizes` maps a part
    of the screen to what it was made of its usual share (1: that).
    """

    focus: str = "chat"
    zoomed: str = ""
    hidden: tuple[str, ...] = ()
    tabs: dict[str, str] = field(default_factory=dict)
    place: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
