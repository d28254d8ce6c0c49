"""Scroll position of the transcript, saved with the session."""

from __future__ import annotations

from typing import Any, NamedTuple


class ScrollPosition(NamedTuple):
    """Number of the topmost visible message, and the number of its lines above the view."""

    message: int
    line: int = 0

    def saved(self) -> dict[str, Any]:
        return {"message": self.message, "line": self.line}


def read_position(saved: object, total: int) -> ScrollPosition | None:
    """`None` means following the newest message."""
    if not isinstance(saved, dict):
        return None
    message, line = saved.get("message"), saved.get("line", 0)
    if not isinstance(message, int) or not isinstance(line, int) or not 1 <= message <= total:
        return None
    return ScrollPosition(message, max(line, 0))


def messages_around(stand: ScrollPosition, total: int, count: int) -> tuple[int, int]:
    """Returns the first and last of about `count` messages to draw, two thirds of them below the position."""
    last = min(stand.message + count - count // 3, total)
    return max(1, min(stand.message - count // 3, last - count + 1)), last
