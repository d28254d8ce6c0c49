"""Fallback chains: patterns are tried in order until one matches. Corrects approximate file names.

Models write names from memory: `src/Config.py` for `src/core/config.py`, `users.ts` for `user.tsx`,
`a.b.c` for `a/b/c.py`. Names match regardless of case, separators, plural and extension if one file is
nearest to the named folders.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.plans import Author, FileAction
from tui_agent.workspace.index import SLICE, Index
from tui_agent.workspace.patterns import InvalidPattern, compile_pattern, escape
from tui_agent.workspace.syntax_trees import is_source_extension

MOST_TIED: Final = 3
_ENTRIES: Final = frozenset({"__init__", "__main__", "index", "mod", "main"})
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+")
_ENTRY_FILES: Final = ("__init__.", "index.", "mod.")
_TEST_SIGN: Final = re.compile(r"\Atest_|[._](?:test|spec)(?=\.\w+\Z)")
_JOINTS: Final = frozenset("_-. ")
_SEPARATORS: Final = str.maketrans("", "", "_-. ")


class _WantedFile(Struct, frozen=True):
    folders: tuple[str, ...]
    key: str
    extension: str


def completed(actions: Sequence[FileAction], index: Index) -> tuple[FileAction, ...]:
    """Adds patterns for approximate names. Scans the index once; call it on a thread."""
    readings = [_readings(action, index) for action in actions]
    keys = {one.key for wanted in readings for one in wanted if one.key}
    named: dict[str, list[str]] = {key: [] for key in keys}
    beginnings, paths = {key[:2] for key in keys}, index.paths
    for at in range(0, len(paths) if named else 0, SLICE):
        for path in paths[at : at + SLICE]:
            folder, _, name = path.rpartition("/")
            if name.startswith(_ENTRY_FILES):
                _add_path(path, folder.rpartition("/")[2], named, beginnings)
            _add_path(path, name, named, beginnings, cut=True)
    result = []
    for action, wanted in zip(actions, readings, strict=True):
        patterns = (_test(action, index), _pattern(wanted, named))
        extra = tuple(dict.fromkeys(one for one in patterns if one not in ("", *action.patterns)))
        result.append(replace(action, extra=extra) if extra else action)
    return tuple(result)


def _test(action: FileAction, index: Index) -> str:
    path = action.patterns[0].removeprefix("./")
    folder, _, name = path.rpartition("/")
    if action.all or action.fallback == "create_new" or not folder or not names_one(path):
        return ""
    if index.contains(path) or not index.has_folder(folder):
        return ""
    found = [file for file in index.folder(folder)[1] if file != name and _TEST_SIGN.sub("", file) == name]
    return escape(f"{folder}/{found[0]}") if len(found) == 1 else ""


def _readings(action: FileAction, index: Index) -> list[_WantedFile]:
    exact = [pattern for pattern in action.patterns if names_one(pattern)]
    if action.all or action.fallback == "create_new" or not exact:
        return []
    if any(index.contains(pattern.removeprefix("./")) for pattern in exact):
        return []
    found = []
    for pattern in exact:
        folder, _, name = re.sub(r"\\(.)", r"\1", pattern.removeprefix("./")).rpartition("/")
        folders = tuple(_key(part) for part in folder.split("/") if part not in ("", "**", "."))
        stem, dot, extension = name.rpartition(".")
        if _MODULE.fullmatch(name) and not is_source_extension(extension):
            parts = [_key(part) for part in re.split(r"\.|::", name)]
            found.append(_WantedFile((*folders, *parts[:-1]), parts[-1], ""))
            found.append(_WantedFile((*folders, *parts[:-2]), parts[-2], ""))
        elif dot and stem:
            found.append(_WantedFile(folders, _key(stem), extension))
        else:
            found.append(_WantedFile(folders, _key(name), ""))
    return found


def _add_path(
    path: str, name: str, found: dict[str, list[str]], beginnings: Collection[str], *, cut: bool = False
) -> None:
    """The first two characters exclude nearly all paths."""
    if name[:2].lower() not in beginnings and not (set(name[:2]) & _JOINTS):
        return
    key = _key((name.rpartition(".")[0] or name) if cut else name)
    if key in found:
        found[key].append(path)


def _rank(path: str, wanted: _WantedFile) -> tuple[int, int, bool, bool]:
    *folders, name = path.split("/")
    keys = [_key(folder) for folder in folders]
    stem, _, extension = name.rpartition(".")
    if stem in _ENTRIES and _key(stem) != wanted.key:
        keys = keys[:-1]
    same = not wanted.extension or extension == wanted.extension
    return *_likeness(wanted.folders, keys), same, is_source_extension(extension)


def _pattern(wanted: Sequence[_WantedFile], found: Mapping[str, Sequence[str]]) -> str:
    """Of the found paths with the highest rank, or ""."""
    one = next((one for one in wanted if found.get(one.key)), None)
    if one is None:
        return ""
    ranks = {path: _rank(path, one) for path in found[one.key]}
    top = max(ranks.values())
    best = [path for path in found[one.key] if ranks[path] == top]
    if len(best) == 1:
        return escape(best[0])
    names = {path.rpartition("/")[2] for path in best}
    if len(names) == 1:
        return f"**/{escape(names.pop())}"
    if len(best) > MOST_TIED or any("," in path or re.search(r"[\[\]{}*?\\]", path) for path in best):
        return ""
    return "{" + ",".join(sorted(best)) + "}"


def _key(name: str) -> str:
    letters = name.lower().translate(_SEPARATORS)
    if len(letters) > 4 and letters.endswith("ies"):
        return letters[:-3] + "y"
    if len(letters) > 3 and letters.endswith("s") and not letters.endswith("ss"):
        return letters[:-1]
    return letters


_SIGNS = re.compile(r"[*?\[\]{}]")


def names_one(pattern: str) -> bool:
    """Whether it names one file in any folder: `**/schema.ts`, but not `src/*` or `**/*Schema*`."""
    name = pattern.rpartition("/")[2]
    return bool(name) and not _SIGNS.search(re.sub(r"\\.", "", name))


def nearest(action: FileAction, paths: Sequence[str]) -> tuple[str, ...]:
    """Returns the paths with the most similar folders: first by the number of matching ones from the end,
    then of shared ones.
    """
    named = (pattern.removeprefix("./").split("/")[:-1] for pattern in action.patterns)
    plain = ([folder for folder in folders if not _SIGNS.search(folder)] for folders in named)
    hints = [folders for folders in plain if folders]
    if not hints:
        return tuple(paths)
    scores = {path: max(_likeness(hint, path.split("/")[:-1]) for hint in hints) for path in paths}
    best = max(scores.values())
    return tuple(path for path in paths if scores[path] == best)


def _likeness(hint: Sequence[str], folders: Sequence[str]) -> tuple[int, int]:
    agree = 0
    for ours, theirs in zip(reversed(hint), reversed(folders), strict=False):
        if ours != theirs:
            break
        agree += 1
    return agree, len(set(hint) & set(folders))


Outcome = Literal["looking", "hit", "miss", "too_broad", "invalid", "timeout"]
SHOWN = 5
OTHER_CASE: Final = "found with different letter case"
PLAN_SECONDS = 20.0


class Attempt(Struct, frozen=True):
    """`index` counts from 1 among the `total` patterns of the same author. `matches` counts matching paths,
    `paths` are the first of them, `lines` the number of loaded lines.
    """

    action: str
    pattern: str
    index: int
    total: int
    outcome: Outcome = "looking"
    matches: int = 0
    ms: float = 0.0
    paths: tuple[str, ...] = ()
    lines: int = 0
    why: str = ""
    by: Author = "program"

    @property
    def step(self) -> tuple[Author, int]:
        return self.by, self.index


class ChainLimits(Struct, frozen=True):
    """`max_per_action` files per pattern; `pattern_timeout` is in seconds. A batch (`all`) is never too
    broad: `max_batch` paths are passed on.
    """

    max_per_action: int = 20
    pattern_timeout: float = 2.0
    #: Remaining seconds for the whole plan; also limits each pattern.
    plan_left: float = PLAN_SECONDS
    max_batch: int = 10_000


async def try_patterns(
    action: FileAction, index: Index, limits: ChainLimits | None = None, after: Attempt | None = None
) -> AsyncIterator[Attempt]:
    """Yields each attempt at its start (`looking`) and end, after the attempt `after`; the last is the hit, if any."""
    limits = limits or ChainLimits()
    authors = [by for by, _ in action.steps]
    planned = [
        Attempt(action.name, text, authors[: at + 1].count(by), authors.count(by), by=by)
        for at, (by, text) in enumerate(action.steps)
    ]
    if after is None:
        attempts = planned
    else:
        passed = next(n for n, one in enumerate(planned, 1) if one.step == after.step)
        attempts = planned[passed:]
    for started in attempts:
        yield started
        began = time.perf_counter()
        ended = await _attempt(started, action, index, limits)
        seconds = time.perf_counter() - began
        limits = replace(limits, plan_left=limits.plan_left - seconds)
        yield replace(ended, ms=round(seconds * 1000, 2))
        if ended.outcome == "hit":
            return


async def _attempt(started: Attempt, action: FileAction, index: Index, limits: ChainLimits) -> Attempt:
    if index.contains(started.pattern):
        return replace(started, outcome="hit", matches=1, paths=(started.pattern,))
    if limits.plan_left <= 0:
        return replace(started, outcome="timeout", why="the time limit of the plan was reached")
    deadline = time.monotonic() + min(limits.pattern_timeout, limits.plan_left)
    most = limits.max_batch if action.all else limits.max_per_action
    for ignore_case in (True,) if index.ignore_case else (False, True):
        pattern = compile_pattern(started.pattern, ignore_case=ignore_case)
        if isinstance(pattern, InvalidPattern):
            return replace(started, outcome="invalid", why=pattern.why)
        found = await asyncio.to_thread(index.match, pattern, most, deadline)
        if found.count or not found.complete:
            break
    else:
        return replace(started, outcome="miss")
    ended = replace(started, matches=found.count)
    if not found.complete:
        why = f"stopped after {limits.pattern_timeout:g} s, the limit for one pattern"
        return replace(ended, outcome="timeout", why=why)
    if not action.all and found.count > limits.max_per_action:
        why = f"{found.count:,} files match; narrow the pattern"
        return replace(ended, outcome="too_broad", paths=found.paths[:SHOWN], why=why)
    paths = found.paths
    if not action.all:
        paths = tuple(sorted(paths, key=lambda path: (path.count("/"), path)))
    why = OTHER_CASE if ignore_case and not index.ignore_case else ""
    return replace(ended, outcome="hit", paths=paths, why=why)
