"""Detects endless repetition in a streamed answer."""

from __future__ import annotations

#: Characters of repeated text permitted per permitted repetition.
LETTERS = 200
#: Maximum length of a repeated block in characters, and the divisor of the limit for such blocks.
LONGEST, BLOCKS = 4_000, 10
#: Characters between two checks.
STEP = 512
#: Length of the suffix used to find a repetition.
_PROBE = 48


class Repetition:
    """Processes an answer incrementally. `limit` is the maximum number of equal lines; 0 disables it.

    A repetition is a text of up to `LONGEST` characters repeated without gaps. Tables with different
    numbers and code with different names do not count.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text = ""
        self._new = 0

    def feed(self, piece: str) -> bool:
        """Whether the limit is exceeded."""
        if not self._limit or not piece:
            return False
        self._text += piece
        self._new += len(piece)
        if self._new < STEP:
            return False
        self._new = 0
        self._text = self._text[-self._most :]
        text = self._text
        before = text.rfind(text[-_PROBE:], 0, len(text) - 1)
        period = len(text) - _PROBE - before
        if before < 0 or period > LONGEST:
            return False
        needed = max(self._limit * LETTERS, period * max(2, self._limit // BLOCKS))
        tail = text[-needed:]
        return len(text) >= needed and tail[period:] == tail[:-period]

    @property
    def _most(self) -> int:
        return max(self._limit * LETTERS, LONGEST * max(2, self._limit // BLOCKS))
