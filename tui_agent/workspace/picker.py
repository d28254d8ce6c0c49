"""Fuzzy path search for the picker, fast enough to run on every key press."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from frizbee import Haystacks, Matcher

#: Paths copied at once; copying holds the GIL for about two milliseconds.
PORTION: Final = 8192
#: Number of best matches that are ranked again by file name.
FINALISTS: Final = 200
#: Maximum removed paths in the copy before it is rebuilt.
MOST_GONE: Final = 500
NAME_BONUS: Final = 24


class Picker:
    """A copy of the paths in the matcher's memory, created before the first search and updated.

    New paths are appended; removed ones are filtered from results until there are too many. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._haystacks: Haystacks | None = None
        self._paths: list[str] = []
        self._gone: set[str] = set()

    def find(self, paths: Sequence[str], query: str, limit: int) -> list[str]:
        """At most `limit` of `paths` that match every word of `query`, best first."""
        with self._lock:
            haystacks = self._filled(paths)
            found = [
                (match.score, self._paths[match.index]) for match in _matcher(query).match_list(haystacks)
            ]
            found = [(score, path) for score, path in found if path not in self._gone]
        words = query.lower().split()
        found.sort(key=lambda scored: (-_with_name(scored[0], scored[1], words), len(scored[1]), scored[1]))
        return [path for _, path in found[:limit]]

    def fill(self, paths: Sequence[str]) -> None:
        with self._lock:
            self._filled(paths)

    def empty(self) -> None:
        with self._lock:
            self._haystacks, self._paths, self._gone = None, [], set()

    def change(self, added: Sequence[str], removed: Iterable[str]) -> None:
        with self._lock:
            if self._haystacks is None:
                return
            self._append(self._haystacks, [path for path in added if path not in self._gone])
            self._gone.difference_update(added)
            self._gone.update(removed)
            if len(self._gone) > MOST_GONE:
                self._haystacks, self._paths, self._gone = None, [], set()

    def _filled(self, paths: Sequence[str]) -> Haystacks:
        if self._haystacks is None:
            from frizbee import Haystacks

            self._haystacks = Haystacks()
            self._append(self._haystacks, paths)
        return self._haystacks

    def _append(self, haystacks: Haystacks, new: Sequence[str]) -> None:
        for at in range(0, len(new), PORTION):
            portion = new[at : at + PORTION]
            haystacks.extend(portion)
            self._paths.extend(portion)


def _matcher(query: str) -> Matcher:
    from frizbee import Matcher, Pattern

    words = [Pattern(word) for word in query.split()]
    return Matcher.from_patterns(words, max_items=FINALISTS + MOST_GONE, casing="ignore")


def _with_name(score: int, path: str, words: Sequence[str]) -> int:
    name = path.rpartition("/")[2].lower()
    return score + sum(NAME_BONUS * (1 + name.startswith(word)) for word in words if word in name)
