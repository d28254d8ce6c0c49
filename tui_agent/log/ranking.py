"""Which session was written last, whatever the clock says: a number that only grows, in one file beside the sessions.

It is the time, as long as the clock does not go back; then it is a little more than the last one.
"""

from __future__ import annotations

import os
from pathlib import Path

from tui_agent.files.private import open_private

#: The file in the folder of all sessions.
NAME = "rank"
#: How much a rank is over the one before, at the least, in seconds; and the greatest that is believed.
STEP, GREATEST = 0.001, 1e11


class Ranks:
    """Gives ranks to one session; where the file cannot be used they grow while that session is open."""

    def __init__(self, sessions: Path) -> None:
        self._path = sessions / NAME
        self._last = 0.0

    def next(self, now: float) -> float:
        """A rank over all that were given, at the time `now` (seconds since 1970)."""
        try:
            descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        except OSError:
            return self._over(now, 0.0)
        try:
            rank = self._over(now, _number(os.pread(descriptor, 40, 0)))
            os.pwrite(descriptor, b"%-20.3f\n" % rank, 0)
            return rank
        except OSError:
            return self._over(now, 0.0)
        finally:
            os.close(descriptor)

    def _over(self, now: float, given: float) -> float:
        self._last = max(now, self._last + STEP, given + STEP)
        return self._last


def _number(text: bytes) -> float:
    """What the file says; 0 where that is not a rank."""
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if 0 < found < GREATEST else 0.0
