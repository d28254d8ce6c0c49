"""What became of one known file, touch by touch: who did what to it at which turn, the newest first."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial

from tui_agent.context.known import Touch
from tui_agent.ui.widgets.lines import Line, Piece
from tui_agent.ui.widgets.rows import Row

#: How many touches of one file are shown.
SHOWN = 200


def timeline_rows(path: str, touches: Iterable[Touch]) -> list[Row]:
    """A heading with the file's name, the latest times, and a row for each touch; none without a touch.

    `touches` are of all files, the oldest first.
    """
    found = [touch for touch in touches if touch.path == path]
    if not found:
        return []
    heading = Line((Piece("Timeline  ", "muted"), Piece(path, "", "start")))
    newest_first = reversed(found[-SHOWN:])
    return [
        Row("", heading),
        Row("", Line((Piece(_latest(found[-1]), "muted"),)), wraps=True),
        *(Row("", partial(_line, touch)) for touch in newest_first),
    ]


def _latest(touch: Touch) -> str:
    times = (("read", touch.read_at), ("edited", touch.edited_at), ("outside", touch.outside_at))
    return " · ".join(f"{name} {clock(at)}" for name, at in times if at) or "no time is known"


def _line(touch: Touch) -> Line:
    ink = "muted" if touch.active else "stale"
    mark = "  " if touch.active else "⚠ "
    at = Piece(clock(touch.at), ink)
    hashed = Piece(f"{touch.md5[:8]}  {at.text}", ink)
    return Line((Piece(f"{mark}turn {touch.turn:<3} {touch.kind}", ink, "end"),), (hashed, at, Piece("")))


def clock(at: float) -> str:
    """The time of day of seconds since the epoch; nothing where it is not known."""
    return time.strftime("%H:%M:%S", time.localtime(at)) if at else ""
