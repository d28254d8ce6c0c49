"""`paths` and `baseUrl` of a tsconfig, for resolving module names that are not relative paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

NAMES = ("tsconfig.json", "jsconfig.json", "tsconfig.base.json")
MOST_EXTENDS = 5
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')

ReadText = Callable[[str], str | None]


class Aliases(Struct, frozen=True):
    """`paths` are (pattern with at most one `*`, targets relative to the root), `base` is `baseUrl`."""

    paths: tuple[tuple[str, tuple[str, ...]], ...] = ()
    base: str | None = None

    def targets(self, module: str) -> list[str]:
        """The candidate paths of a module name, longest pattern first."""
        found = []
        for pattern, places in sorted(self.paths, key=lambda item: -len(item[0].partition("*")[0])):
            start, star, end = pattern.partition("*")
            if star and len(module) >= len(start + end) and module.startswith(start) and module.endswith(end):
                middle = module[len(start) : len(module) - len(end)]
                found += [place.replace("*", middle, 1) for place in places]
            elif not star and module == pattern:
                found += places
        if self.base is not None:
            found.append(posixpath.join(self.base, module))
        return found


def aliases_for(path: str, read: ReadText) -> Aliases:
    """The aliases of the nearest configuration at or above a source file; empty if there is none."""
    folder = posixpath.dirname(path)
    while True:
        for name in NAMES:
            place = posixpath.join(folder, name)
            if read(place) is not None:
                return _read(place, read, MOST_EXTENDS)
        if not folder:
            return Aliases()
        folder = posixpath.dirname(folder)


def _read(place: str, read: ReadText, extends: int) -> Aliases:
    folder = posixpath.dirname(place)
    config = _parsed(read(place) or "")
    options = config.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    inherited = Aliases()
    parent = config.get("extends")
    for name in [parent] if isinstance(parent, str) else parent if isinstance(parent, list) else []:
        if extends and isinstance(name, str) and name.startswith("."):
            above = posixpath.normpath(posixpath.join(folder, name))
            inherited = _read(above if above.endswith(".json") else f"{above}.json", read, extends - 1)
    url = options.get("baseUrl")
    base = posixpath.normpath(posixpath.join(folder, url)) if isinstance(url, str) else inherited.base
    paths = options.get("paths")
    if not isinstance(paths, dict):
        return Aliases(inherited.paths, base)
    start = base if base is not None else folder
    return Aliases(tuple(_pair(pattern, places, start) for pattern, places in paths.items()), base)


def _pair(pattern: str, places: Any, start: str) -> tuple[str, tuple[str, ...]]:
    listed = places if isinstance(places, list) else []
    return pattern, tuple(
        posixpath.normpath(posixpath.join(start, place)) for place in listed if isinstance(place, str)
    )


def _parsed(text: str) -> dict[str, Any]:
    def plain(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else " "

    text = _TRAILING_COMMA.sub(plain, _STRING_OR_COMMENT.sub(plain, text.lstrip("\ufeff")))
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
