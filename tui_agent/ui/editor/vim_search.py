"""Vim's searches and marks, as offsets in a text."""

from __future__ import annotations

import re

#: Most repetitions of a search.
_MOST = 1_000


class Places:
    """The last search and the marks of a text area. Marks do not move with the text."""

    def __init__(self) -> None:
        self._search = ""
        self._backward = self._whole = False
        self._marks: dict[str, tuple[int, int]] = {}

    def target(self, command: str, count: int, text: str, at: int) -> int | None:
        """The offset to which a command moves: a search (`/text`, `?text`, n, N, *, #), a mark that it sets or goes to.
        None for other commands. Raises LookupError with a sentence if there is no such place."""
        sign, rest = command[0], command[1:]
        match sign:
            case "/" | "?":
                self._search, self._backward, self._whole = rest or self._search, sign == "?", False
                return self._found(text, at, count, self._backward)
            case "n" | "N" if not rest:
                return self._found(text, at, count, self._backward != (sign == "N"))
            case "*" | "#" if not rest:
                word, start = _word_at(text, at)
                self._search, self._backward, self._whole = word, sign == "#", True
                return self._found(text, start, count, self._backward)
            case "m" if rest:
                line = text.rfind("\n", 0, at) + 1
                self._marks[rest] = text.count("\n", 0, line), at - line
                return at
            case "`" | "'" if rest:
                return self._marked(text, rest, by_column=sign == "`")
        return None

    def _found(self, text: str, at: int, count: int, backward: bool) -> int:
        """The place after `count` steps, past the end or the beginning too."""
        edge = r"\b" if self._whole else ""
        found = re.finditer(f"{edge}{re.escape(self._search)}{edge}", text) if self._search else ()
        places = [place.start() for place in found]
        if not places:
            raise LookupError(
                f"Not found: {self._search[:40]}" if self._search else "There is nothing to find"
            )
        for _ in range(min(count, _MOST)):
            if backward:
                at = next((place for place in reversed(places) if place < at), places[-1])
            else:
                at = next((place for place in places if place > at), places[0])
        return at

    def _marked(self, text: str, name: str, *, by_column: bool) -> int:
        if name not in self._marks:
            raise LookupError(f"There is no mark {name}")
        row, column = self._marks[name]
        lines = text.split("\n")
        row = min(row, len(lines) - 1)
        indent = len(lines[row]) - len(lines[row].lstrip(" \t"))
        return sum(len(line) + 1 for line in lines[:row]) + (
            min(column, len(lines[row])) if by_column else indent
        )


def _word_at(text: str, at: int) -> tuple[str, int]:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    for word in re.finditer(r"\w+", text[start : len(text) if end < 0 else end]):
        if start + word.end() > at:
            return word[0], start + word.start()
    raise LookupError("There is no word here")
