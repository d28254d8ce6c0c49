"""An answer that repeats itself without end, seen while it comes."""

from __future__ import annotations

#: A row of the same may be so many letters long for each time that it may be repeated.
LETTERS = 200
#: The longest block that is looked for, in letters, and the share of the limit at which such a block is too many.
LONGEST, BLOCKS = 4_000, 10
#: So many letters come between two looks.
STEP = 512
#: The end of the text by which a repetition is found.
_PROBE = 48


class Repetition:
    """Takes an answer as it comes. `limit` is how often a line may be the same; 0 means as often as it likes.

    What repeats itself is one text of any length up to `LONGEST`, with nothing between: a table with numbers that
    differ, or code with names that differ, does not.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text = ""
        self._new = 0

    def feed(self, piece: str) -> bool:
        """Whether it has repeated itself too often."""
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
