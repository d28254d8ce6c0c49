"""A place in the transcript: where the person was, kept with the session, and which messages are drawn around it."""

from __future__ import annotations

from typing import Any, NamedTuple


class ScrollPosition(NamedTuple):
    """The message at the upper edge, by its number, and how many of its lines are above that."""

    message: int
    line: int = 0

    def saved(self) -> dict[str, Any]:
        return {"message": self.message, "line": self.line}


def read_position(saved: object, total: int) -> ScrollPosition | None:
    """The saved place where there is such a message; None where the newest one is followed."""
    if not isinstance(saved, dict):
        return None
    message, line = saved.get("message"), saved.get("line", 0)
    if not isinstance(message, int) or not isinstance(line, int) or not 1 <= message <= total:
        return None
    return ScrollPosition(message, max(line, 0))


def around(stand: ScrollPosition, total: int, count: int) -> tuple[int, int]:
    """The first and last of about `count` messages to draw, most of them from the place on downwards."""
    last = min(stand.message + count - count // 3, total)
    return max(1, min(stand.message - count // 3, last - count + 1)), last
