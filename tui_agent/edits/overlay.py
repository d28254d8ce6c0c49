"""Combines typed text with a concurrent change of the same text without losing either."""

from __future__ import annotations

from collections.abc import Iterator

from tui_agent.edits.hunks import hunks
from tui_agent.edits.lines import split


class Overlay:
    """One run of characters typed over `base`, applied to the text `now` derived from the same base.

    `text` contains all of `now` and all typed characters. A deletion is dropped if `now` has changed the
    deleted text. Places are offsets in characters. Runs without a process.
    """

    def __init__(self, base: str, typed: str, now: str) -> None:
        start = _same_start(base, typed)
        same_end = _same_end(base, typed, start)
        self._start, self._end, self._base_end = start, len(typed) - same_end, len(base) - same_end
        self._changed = list(_changed(base, now))
        self._at, after = self._moved(start), self._moved(self._base_end)
        if now[self._at : after] != base[start : self._base_end]:
            self._at = after
        self._grown = self._end - start - (after - self._at)
        self.text = now[: self._at] + typed[start : self._end] + now[after:]

    def place(self, at: int) -> int:
        """Converts an offset in the typed text to one in `text`."""
        if at < self._start:
            return self._moved(at)
        if at <= self._end:
            return self._at + at - self._start
        return self._moved(at - self._end + self._base_end) + self._grown

    def _moved(self, at: int) -> int:
        """Converts an offset in the base to one in `now`; inside replaced text, to the end of the
        replacement."""
        shift = 0
        for begin, old, new in self._changed:
            within = at - begin
            if within >= len(old) and within >= 0:
                shift += len(new) - len(old)
                continue
            start = _same_start(old, new)
            if within > start:
                left = min(len(old) - within, _same_end(old, new, start))
                return begin + shift + len(new) - left
            break
        return at + shift


def _changed(base: str, now: str) -> Iterator[tuple[int, str, str]]:
    """Yields changed runs of lines: offset in the base, old text, new text."""
    lines, at, line = split(base), 0, 0
    for hunk in hunks(base, now):
        at += sum(map(len, lines[line : hunk.start]))
        line = hunk.start
        yield at, "".join(hunk.removed), "".join(hunk.added)


def _same_start(one: str, other: str) -> int:
    """Returns the length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _same_end(one: str, other: str, start: int) -> int:
    """Returns the length of the common suffix after `start`."""
    low, high = 0, min(len(one), len(other)) - start
    while low < high:
        middle = (low + high + 1) // 2
        same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        low, high = (middle, high) if same else (low, middle - 1)
    return low
