"""The lines of an answer, and candidate lines for changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import overload

from tui_agent.answers import markers
from tui_agent.files.lazy_regex import late

#: A line that could begin, divide or end an item.
_FENCE = r"[ \t]++(?:`{3}|~{3})"
_HOT = late(
    r"\n(?=[ \t`~<>=@|\d*+d-])(?=[ \t`~<>=@|\d][^\n][^\n]|([-*+])(?:\1|[ \t]++[`~])|diff)"
    r"[ \t]*+(?:>[ \t>]*+)?(?:`{3}|~{3}|[<>]{5}|={5}|\|{7}"
    rf"|-(?:-{{4,8}} ?[A-Z]{{4}}|-- \S|{_FENCE})|\+(?:\+{{4,8}} ?[A-Z]{{4}}|{_FENCE})|\*(?:\*\* ?[A-Za-z]|{_FENCE})"
    rf"|@@|diff --|</?(?:{markers.TAGS})\b|\d{{1,9}}+[.)]{_FENCE})"
)
#: Maximum number of candidate lines in an answer.
MOST_HOT = 20_000
#: Maximum number of lines of a patch or an answer.
MOST_LINES = 300_000
#: Characters searched per call, because a call blocks other threads.
_SLICE = 200_000


class Lines:
    """All lines of a text in `all`, and the numbers of candidate lines in `hot`. Truncated just above the
    limits."""

    def __init__(self, text: str) -> None:
        self.all: list[str] = []
        self.hot: list[int] = []
        at = 0
        while at < len(text) and not self.excess:
            end = text.find("\n", at + _SLICE)
            end = len(text) if end < 0 else end
            part = "\n" + text[at:end]
            seen, number = 0, len(self.all) - 1
            for match in _HOT.finditer(part):
                number += part.count("\n", seen, match.start() + 1)
                seen = match.start() + 1
                self.hot.append(number)
            if len(self.all) <= MOST_LINES:
                self.all.extend(part[1:].split("\n"))
            at = end + 1

    @property
    def excess(self) -> str:
        """The exceeded limit in words, or ""."""
        if len(self.hot) > MOST_HOT:
            return f"more than {MOST_HOT:,} lines that could belong to a change"
        return f"more than {MOST_LINES:,} lines" if self.hot and len(self.all) > MOST_LINES else ""

    def __len__(self) -> int:
        return len(self.all)

    def next_hot(self, at: int) -> int:
        """The first candidate line from `at` on, or the number of lines."""
        place = bisect_left(self.hot, at)
        return self.hot[place] if place < len(self.hot) else len(self.all)

    def hot_from(self, at: int) -> Iterator[int]:
        for place in range(bisect_left(self.hot, at), len(self.hot)):
            yield self.hot[place]

    def below(self, at: int) -> int:
        """The first non-blank line from `at` on."""
        while at < len(self.all) and not self.all[at].strip():
            at += 1
        return at

    def above(self, at: int, floor: int) -> str:
        """The last non-blank line above `at`, not above `floor`."""
        while at > floor:
            at -= 1
            if self.all[at].strip():
                return self.all[at].strip()
        return ""

    def last(self) -> int:
        """The line after the last non-blank line."""
        end = len(self.all)
        while end and not self.all[end - 1].strip():
            end -= 1
        return end


class DedentedLines(Sequence[str]):
    """Lines without the indentation of their fence; less indented lines are excluded."""

    #: Replaces a less indented line; no format has a line that begins like this.
    LESS = "\0"

    def __init__(self, lines: Sequence[str], prefix: str) -> None:
        self._lines = lines
        self._prefix = prefix

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self._lines)))]
        line = self._lines[at]
        if line.startswith(self._prefix):
            return line[len(self._prefix) :]
        return self.LESS if line.strip() else ""
