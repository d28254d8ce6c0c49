"""Sorted in-memory index of all paths: lookup, folders, patterns and fuzzy search."""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tui_agent.processes.background import pause
from tui_agent.workspace.listing import FEW, without
from tui_agent.workspace.patterns import Pattern

if TYPE_CHECKING:
    from frizbee import Haystacks


#: Paths copied at once; holds the GIL for two milliseconds.
PORTION: Final = 8192
#: Best matches ranked again by file name.
FINALISTS: Final = 200
MOST_GONE: Final = 500
NAME_BONUS: Final = 24


class Picker:
    """A copy of the paths in the matcher's memory. Thread-safe.

    Appends new paths; filters removed ones from results until there are too many.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._haystacks: Haystacks | None = None
        self._paths: list[str] = []
        self._gone: set[str] = set()

    def find(self, paths: Sequence[str], query: str, limit: int) -> list[str]:
        """Best first; each word of `query` matches."""
        import frizbee

        patterns = [frizbee.Pattern(word) for word in query.split()]
        matcher = frizbee.Matcher.from_patterns(patterns, max_items=FINALISTS + MOST_GONE, casing="ignore")
        with self._lock:
            matches = matcher.match_list(self._filled(paths))
            found = [(match.score, self._paths[match.index]) for match in matches]
            found = [(score, path) for score, path in found if path not in self._gone]
        words = query.lower().split()
        ranked: list[tuple[int, int, str]] = []
        for score, path in found:
            name = path.rpartition("/")[2].lower()
            score += sum(NAME_BONUS * (1 + name.startswith(word)) for word in words if word in name)
            ranked.append((-score, len(path), path))
        return [path for *_, path in sorted(ranked)[:limit]]

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


#: Names compared per call; holds the GIL for a few milliseconds.
NEAREST_SLICE: Final = 4096
#: Minimum similarity, of 100.
LEAST: Final = 55.0
FOLDER_SHARE: Final = 0.25
#: Paths processed at once, so that a thread does not block the event loop.
SLICE = 8192


def nearest_names(paths: Sequence[str], wanted: str, count: int) -> list[str]:
    """Returns names, best first, by the similarity to the last part of `wanted`, a path or a pattern.
    Case-insensitive; folder similarity resolves ties.
    """
    from rapidfuzz import fuzz, process

    wanted = re.sub(r"[*?\[\]{}\\]", "", wanted)
    target = wanted.rstrip("/").rpartition("/")[2].lower()
    if not target:
        return []
    best: list[tuple[float, str]] = []
    for at in range(0, len(paths), NEAREST_SLICE):
        part = paths[at : at + NEAREST_SLICE]
        names = [path.rpartition("/")[2].lower() for path in part]
        found = process.extract(target, names, scorer=fuzz.ratio, limit=4 * count, score_cutoff=LEAST)
        best += [(score, part[place]) for _, score, place in found]
    whole = wanted.lower()
    ranked = sorted((-score - FOLDER_SHARE * fuzz.ratio(whole, path.lower()), path) for score, path in best)
    return [path for _, path in ranked[:count]]


class Overview(Struct, frozen=True):
    """Top-level `files`, and all folders with recursive file counts, shallow ones first."""

    files: tuple[str, ...]
    folders: tuple[tuple[str, int], ...]


class Matches(Struct, frozen=True):
    """`complete`: the whole index was searched."""

    paths: tuple[str, ...]
    count: int
    complete: bool = True


class Index:
    """Paths relative to the root, with `/`, sorted by code points.

    Updates belong to one event loop; reading is thread-safe, because each update replaces the list.
    `ignore_case`: the file system is case-insensitive.
    """

    def __init__(self, paths: Iterable[str] = (), *, ignore_case: bool = False) -> None:
        self.ignore_case = ignore_case
        self.revision = 0
        self._paths = sorted(set(paths))
        self._picker = Picker()
        self._overview: tuple[list[str], Overview] | None = None

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def paths(self) -> list[str]:
        """Not to be modified."""
        return self._paths

    def contains(self, path: str) -> bool:
        paths = self._paths
        at = bisect_left(paths, path)
        return at < len(paths) and paths[at] == path

    def replace(self, paths: list[str]) -> None:
        """Takes ownership of the list, sorted and without duplicates."""
        self._picker.empty()
        self._take(paths)

    def update(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> bool:
        gone = {
            path for name in removed for path in ([name] if self.contains(name) else []) + self.below(name)
        }
        new = sorted({path for path in added if path in gone or not self.contains(path)})
        gone.difference_update(new)
        fresh = [path for path in new if not self.contains(path)]
        if not gone and not fresh:
            return False
        kept = without(self._paths, gone)
        if len(fresh) > FEW:
            kept.extend(fresh)
            kept.sort()  # merges two sorted runs
        else:
            for path in fresh:
                kept.insert(bisect_left(kept, path), path)
        self._picker.change(fresh, gone)
        self._take(kept)
        return True

    def folder(self, path: str = "") -> tuple[list[str], list[str]]:
        folders: list[str] = []
        files: list[str] = []
        paths, path = self._paths, path.rstrip("/")
        skip = len(path) + 1 if path else 0
        at, end = self._range(path + "/")
        while at < end:
            name, slash, _ = paths[at][skip:].partition("/")
            (folders if slash else files).append(name)
            at = bisect_left(paths, paths[at][:skip] + name + "0", lo=at) if slash else at + 1
        return sorted(folders), files

    def overview(self) -> Overview:
        paths = self._paths
        if self._overview is None or self._overview[0] is not paths:
            self._overview = paths, _overview(paths)
        return self._overview[1]

    def has_folder(self, path: str) -> bool:
        prefix = path.rstrip("/") + "/"
        at = bisect_left(self._paths, prefix)
        return at < len(self._paths) and self._paths[at].startswith(prefix)

    def below(self, path: str) -> list[str]:
        start, end = self._range(path.rstrip("/") + "/")
        return self._paths[start:end]

    def match(self, pattern: Pattern, limit: int = 1000, deadline: float = float("inf")) -> Matches:
        """Searches in slices up to the `deadline`, a value of `time.monotonic()`."""
        found: dict[str, None] = {}
        paths = self._paths
        for alternative in pattern.alternatives:
            literal, matches = alternative.literal, alternative.matches
            start, end = self._range(alternative.prefix or "/")
            if alternative.exact:
                start = bisect_left(paths, alternative.exact)
                end = start + 1
            for at in range(start, min(end, len(paths)), SLICE):
                near = paths[at : min(at + SLICE, end)]
                # The literal first, which is several times faster
                if literal and alternative.lowered:
                    near = [path for path in near if literal in path.lower()]
                elif literal:
                    near = [path for path in near if literal in path]
                found.update(dict.fromkeys(filter(matches, near)))
                if time.monotonic() > deadline:
                    return Matches(tuple(found)[:limit], len(found), complete=False)
        return Matches(tuple(found)[:limit], len(found))

    def named(self, names: Collection[str]) -> dict[str, list[str]]:
        """By file name, with or without the last extension. Ignores case."""
        wanted: dict[str, list[str]] = {name.lower(): [] for name in names}
        paths = self._paths
        for at in range(0, len(paths), SLICE):
            part = paths[at : at + SLICE]
            text = "/" + "\0/".join(part).lower() + "\0"
            hits = {place for key in wanted for end in ("\0", ".") for place in _places(text, f"/{key}{end}")}
            for path in (part[place] for place in sorted(hits)):
                name = path.rpartition("/")[2].lower()
                for key in {name, name.rpartition(".")[0]} & wanted.keys():
                    wanted[key].append(path)
        return {name: wanted[name.lower()] for name in names}

    def nearest(self, name: str, count: int = 5) -> list[str]:
        """Best first."""
        return nearest_names(self._paths, name, count)

    def fuzzy(self, query: str, limit: int = 20) -> list[str]:
        """Best first. Ignores case."""
        if not query.strip():
            return self._paths[:limit]
        return self._picker.find(self._paths, query, limit)

    def warm(self) -> None:
        """Prepares the first search. Call it on a thread."""
        self._picker.fill(self._paths)
        pause()
        self.overview()

    def _take(self, paths: list[str]) -> None:
        self._paths = paths
        self.revision += 1

    def _range(self, prefix: str) -> tuple[int, int]:
        if prefix == "/":
            return 0, len(self._paths)
        paths = self._paths
        start = bisect_left(paths, prefix)
        return start, bisect_left(paths, prefix[:-1] + "0", lo=start)


def _overview(paths: list[str]) -> Overview:
    inside = Counter(path.rpartition("/")[0] for path in paths)
    below: Counter[str] = Counter()
    for folder, count in inside.items():
        while folder:
            below[folder] += count
            folder = folder.rpartition("/")[0]
    folders = sorted(below.items(), key=lambda item: (item[0].count("/"), item[0]))
    return Overview(tuple(path for path in paths if "/" not in path) if inside[""] else (), tuple(folders))


def _places(text: str, wanted: str) -> Iterator[int]:
    place = start = 0
    while (found := text.find(wanted, start)) >= 0:
        place += text.count("\0", start, found)
        yield place
        start = text.find("\0", found) + 1
        place += 1
