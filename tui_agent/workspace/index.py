"""Every path of the workspace, sorted, in memory: looked up, listed by folder, matched, and guessed at."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from tui_agent.processes.background import pause
from tui_agent.workspace.patterns import Alternative, Pattern
from tui_agent.workspace.picker import Picker

#: How many names are compared in one call, which holds the interpreter for a few milliseconds.
NEAREST_SLICE: Final = 4096
#: Below this likeness, of 100, a name does not help.
LEAST: Final = 55.0
#: How much the folders count beside the name.
FOLDER_SHARE: Final = 0.25
#: How many paths are looked at in one go: a few milliseconds, so that a thread never holds up the loop.
SLICE = 8192
#: Up to so many paths are put in or taken out one by one; more are done at once.
FEW = 64


def nearest_names(paths: Sequence[str], wanted: str, count: int) -> list[str]:
    """At most `count` of `paths`, best first: those whose file names are most like the last part of `wanted`.

    `wanted` is a path or a pattern. Case counts for nothing; of names that are equally alike, those in more similar
    folders come first.
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
    """The `files` at the top, and every folder with the number of files below it, the shallow ones first."""

    files: tuple[str, ...]
    folders: tuple[tuple[str, int], ...]


class Matches(Struct, frozen=True):
    """What fitted a pattern: the first `paths` in order, and how many there are (`complete`: in the whole index)."""

    paths: tuple[str, ...]
    count: int
    complete: bool = True


class Index:
    """Paths relative to the root, with `/` between folders, in the order of their characters.

    Belongs to the loop that updates it; the methods that read may be called from any thread, since an update
    puts a new list in the place of the old one. `ignore_case` is true where the file system takes `A` for `a`.
    """

    def __init__(self, paths: Iterable[str] = (), *, ignore_case: bool = False) -> None:
        self.ignore_case = ignore_case
        self.revision = 0
        self._paths = sorted(set(paths))
        self._picker = Picker()
        #: What was made of which paths: a request asks for it twice, and most requests find the folder as it was.
        self._overview: tuple[list[str], Overview] | None = None

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def paths(self) -> list[str]:
        """Every path, sorted. The list is never changed by the index, and must not be by who asks for it."""
        return self._paths

    def contains(self, path: str) -> bool:
        """Whether exactly this path is there; also for a thread."""
        paths = self._paths
        at = bisect_left(paths, path)
        return at < len(paths) and paths[at] == path

    def replace(self, paths: list[str]) -> None:
        """Take these for all that there is. They are sorted, without doubles, and the list is given away."""
        self._picker.empty()
        self._take(paths)

    def update(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> bool:
        """Put paths in and take paths out; a removed folder takes all below it along. True if that changed it."""
        gone = {path for name in removed for path in self._at_or_below(name)}
        new = sorted({path for path in added if path in gone or not self.contains(path)})
        gone.difference_update(new)
        fresh = [path for path in new if not self.contains(path)]
        if not gone and not fresh:
            return False
        kept = _without(self._paths, gone)
        _insert(kept, fresh)
        self._picker.change(fresh, gone)
        self._take(kept)
        return True

    def folder(self, path: str = "") -> tuple[list[str], list[str]]:
        """The names of the folders and of the files directly in a folder; `""` is the root.

        Costs what the folder itself holds, not what lies below it. Both lists are empty where there is none.
        """
        folders, files = [], []
        for name in self._children(path.rstrip("/")):
            (folders if name.endswith("/") else files).append(name.rstrip("/"))
        return sorted(folders), files

    def overview(self) -> Overview:
        """The folder in short. Looks at every path once for as long as none comes or goes."""
        paths = self._paths
        if self._overview is None or self._overview[0] is not paths:
            self._overview = paths, _overview(paths)
        return self._overview[1]

    def has_folder(self, path: str) -> bool:
        """Whether something lies below this folder."""
        prefix = path.rstrip("/") + "/"
        at = bisect_left(self._paths, prefix)
        return at < len(self._paths) and self._paths[at].startswith(prefix)

    def below(self, path: str) -> list[str]:
        """Every path below a folder, at any depth."""
        start, end = self._range(path.rstrip("/") + "/")
        return self._paths[start:end]

    def match(self, pattern: Pattern, limit: int = 1000, deadline: float = float("inf")) -> Matches:
        """What fits a pattern: at most `limit` paths, all of them counted.

        Works in slices, and gives up (`complete` is false) when `time.monotonic()` passes `deadline`.
        """
        found: dict[str, None] = {}
        paths = self._paths
        for alternative in pattern.alternatives:
            for hits in _scan(paths, self._span(alternative), alternative):
                found.update(dict.fromkeys(hits))
                if time.monotonic() > deadline:
                    return Matches(tuple(found)[:limit], len(found), complete=False)
        return Matches(tuple(found)[:limit], len(found))

    def named(self, names: Collection[str]) -> dict[str, list[str]]:
        """For each of these names, the paths whose file name is it, with or without its last extension.

        Case counts for nothing. Only the paths that hold one of the names are looked at one by one.
        """
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
        """The paths whose names are spelled most like `name`, best first: for "did you mean"."""
        return nearest_names(self._paths, name, count)

    def fuzzy(self, query: str, limit: int = 20) -> list[str]:
        """The paths that hold the letters of `query` in order, best first: for the picker. Case counts for nothing."""
        if not query.strip():
            return self._paths[:limit]
        return self._picker.find(self._paths, query, limit)

    def warm(self) -> None:
        """Get the picker ready ahead of its first key, and the overview ahead of the first request. For a thread."""
        self._picker.fill(self._paths)
        pause()
        self.overview()

    def _take(self, paths: list[str]) -> None:
        self._paths = paths
        self.revision += 1

    def _at_or_below(self, name: str) -> list[str]:
        return ([name] if self.contains(name) else []) + self.below(name)

    def _range(self, prefix: str) -> tuple[int, int]:
        """Where the paths that begin with `prefix` (which ends in `/`) stand; `0` is the sign after `/`."""
        if prefix == "/":
            return 0, len(self._paths)
        paths = self._paths
        start = bisect_left(paths, prefix)
        return start, bisect_left(paths, prefix[:-1] + "0", lo=start)

    def _children(self, folder: str) -> Iterator[str]:
        paths = self._paths
        skip = len(folder) + 1 if folder else 0
        at, end = self._range(folder + "/")
        while at < end:
            name, slash, _ = paths[at][skip:].partition("/")
            yield name + slash
            at = bisect_left(paths, paths[at][:skip] + name + "0", lo=at) if slash else at + 1

    def _span(self, alternative: Alternative) -> tuple[int, int]:
        if alternative.exact:
            at = bisect_left(self._paths, alternative.exact)
            return at, at + 1
        return self._range(alternative.prefix or "/")


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
    """In which of the parts of a text, which NUL ends, `wanted` is."""
    place = start = 0
    while (found := text.find(wanted, start)) >= 0:
        place += text.count("\0", start, found)
        yield place
        start = text.find("\0", found) + 1
        place += 1


def _without(paths: list[str], gone: set[str]) -> list[str]:
    if len(gone) > FEW:
        return [path for path in paths if path not in gone]
    kept = list(paths)
    for path in gone:
        del kept[bisect_left(kept, path)]
    return kept


def _insert(paths: list[str], new: list[str]) -> None:
    if len(new) > FEW:
        paths.extend(new)
        paths.sort()  # two runs that are sorted already: one merge
        return
    for path in new:
        paths.insert(bisect_left(paths, path), path)


def _scan(paths: list[str], span: tuple[int, int], alternative: Alternative) -> Iterator[list[str]]:
    """The hits of each slice; the literal is looked for first, since that is several times faster."""
    start, end = span
    literal, matches = alternative.literal, alternative.matches
    for at in range(start, min(end, len(paths)), SLICE):
        part = paths[at : min(at + SLICE, end)]
        if not literal:
            near = part
        elif alternative.lowered:
            near = [path for path in part if literal in path.lower()]
        else:
            near = [path for path in part if literal in path]
        yield [path for path in near if matches(path)]
