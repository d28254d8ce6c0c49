"""From a name in a request to a chain of patterns, in the order of the strategy, with the index to ask.

Exact path, then the name anywhere, then near the folder that was named, then the name with another ending, then
part of the name anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tui_agent.answers.plans import MAX_PATTERNS
from tui_agent.planning.spelling import one_of, parts_of, spellings
from tui_agent.workspace.index import Index, Matches
from tui_agent.workspace.patterns import InvalidPattern, compile_pattern, escape

#: What stands for a folder where a module is named.
_ENTRY_FILES: Final = "{__init__,index,mod,main}"
_SHORTEST_PART: Final = 3
#: A pattern that fits more files than this is too broad to be of use.
MOST_IN_CHAIN: Final = 20


def chain_for_path(path: str, index: Index) -> tuple[str, ...]:
    """For a path or a file name, right or nearly right."""
    folder, _, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    stem = stem or name
    patterns = [
        path,
        f"**/{escape(name)}",
    ]  # a path as it is written is looked up before it is read as a pattern
    if len(stem) < _SHORTEST_PART:
        return _first(patterns)
    ending = f".{escape(extension)}" if dot and stem != name else ""
    near = _nearest_folder(folder, index)
    patterns += [f"{escape(near)}/**/*{escape(stem)}*{ending}"] if near else []
    patterns += [f"**/{one_of([escape(spelling) for spelling in spellings(stem)])}.*"]
    return _first([*patterns, _part_of_name(stem, ending, index)])


def chain_for_module(parts: list[str], source: str = "") -> tuple[str, ...]:
    """For `a.b.c`, `@/a/b/c` or an import path: the module, the package, the module that holds the name.

    `source` is the folder in which such paths most often begin.
    """
    whole, holder = "/".join(map(escape, parts)), "/".join(map(escape, parts[:-1]))
    patterns = [
        f"{source}/{whole}.*" if source else f"{whole}.*",
        f"**/{whole}.*",
        f"**/{whole}/{_ENTRY_FILES}.*",
    ]
    patterns += [f"**/{holder}.*"] if holder else []
    return _first(patterns)


def chain_for_identifier(word: str) -> tuple[str, ...]:
    """For a class, function or component: files that are called so, in any spelling, then files with it in the name."""
    names = one_of([escape(spelling) for spelling in spellings(word)])
    return (f"**/{names}.*", f"**/*{names}*")


def chain_for_tests(name: str) -> tuple[str, ...]:
    """For the tests of a file or a thing."""
    stem = name.rpartition("/")[2]
    stem = stem.rpartition(".")[0] or stem
    names = one_of([escape(spelling) for spelling in spellings(stem)])
    return (
        f"**/test_{names}.*",
        f"**/{names}{{_test,.test,.spec,_spec,Test,Tests}}.*",
        f"**/{{test_*{escape(stem)}*,*{escape(stem)}*{{test,spec}}*}}.*",
        f"**/{{test,tests,spec,__tests__}}/**/*{escape(stem)}*",
    )


def chain_for_batch(folder: str, names: str, index: Index) -> tuple[str, ...]:
    """For all files below a folder (or anywhere) whose names fit."""
    below = "**" if names == "*" else f"**/{names}"
    if not folder:
        return (below,)
    safe = escape(folder)
    here = f"{safe}/{below}"
    return (here,) if index.has_folder(folder) else (here, f"**/{safe}/{below}")


def by_suffix(path: str, index: Index) -> str:
    """The file of the index that an absolute or foreign path ends in, the longest first; "" where there is none."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    for start in range(len(parts)):
        candidate = "/".join(parts[start:])
        if index.contains(candidate):
            return candidate
    return ""


def folder_called(name: str, index: Index) -> str:
    """The folder of the index that a name means: that path, or the first that ends so; "" where there is none."""
    name = re.sub(r"^(?:\./)+", "", name).rstrip("/")
    if not name or index.has_folder(name):
        return name
    found = _matches(f"**/{escape(name)}/**", index)
    if found is None or not found.paths:
        return ""
    above, _, _ = f"/{found.paths[0]}".partition(f"/{name}/")
    return f"{above}/{name}".lstrip("/")


def fits_something(patterns: Iterable[str], index: Index, most: int) -> bool:
    """Whether a chain would load something: one of its patterns fits, and fits at most `most` files."""
    for pattern in patterns:
        found = _matches(pattern, index)
        if found is not None and 0 < found.count <= most:
            return True
    return False


def _matches(pattern: str, index: Index) -> Matches | None:
    compiled = compile_pattern(pattern, ignore_case=index.ignore_case)
    return None if isinstance(compiled, InvalidPattern) else index.match(compiled, limit=1)


def _part_of_name(stem: str, ending: str, index: Index) -> str:
    """The last resort: files with the stem in their names, or else with its parts in their paths."""
    whole = f"**/*{escape(stem)}*"
    parts = [part for part in parts_of(stem) if len(part) >= _SHORTEST_PART]
    if len(parts) < 2 or fits_something([whole], index, MOST_IN_CHAIN):
        return whole
    tries = [f"**/*{a}*/**/*{b}*{ending}" for a, b in (parts[-2:], parts[-2:][::-1])]
    tries += [f"**/*{part}*{ending}" for part in sorted(parts, key=len, reverse=True)]
    return next((pattern for pattern in tries if fits_something([pattern], index, 1)), whole)


def _nearest_folder(folder: str, index: Index) -> str:
    """The deepest folder on the way that exists."""
    while folder and not index.has_folder(folder):
        folder = folder.rpartition("/")[0]
    return folder


def _first(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(patterns))[:MAX_PATTERNS]
