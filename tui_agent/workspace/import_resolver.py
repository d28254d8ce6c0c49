"""Resolves imports to files of the workspace, using only indexed paths.

Results are always in the index: inside the workspace and not ignored.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from tui_agent.workspace.import_statement import Import
from tui_agent.workspace.index import Index
from tui_agent.workspace.tsconfig import Aliases

_SCRIPT_ENDINGS: Final = (
    "ts",
    "tsx",
    "d.ts",
    "mts",
    "cts",
    "js",
    "jsx",
    "mjs",
    "cjs",
    "json",
    "vue",
    "svelte",
)
#: TypeScript sources import their future JavaScript files.
_COMPILED: Final = {"js": ("ts", "tsx"), "jsx": ("tsx",), "mjs": ("mts",), "cjs": ("cts",)}
_JAVA_ROOTS: Final = ("src/main/java", "src/test/java", "src", "")
MOST_OF_A_PACKAGE: Final = 5


class ImportRoots(Struct, frozen=True):
    """The index, `aliases` of the nearest tsconfig, and `go_modules` (name, folder)."""

    index: Index
    aliases: Callable[[str], Aliases] = lambda path: Aliases()
    go_modules: Sequence[tuple[str, str]] = ()


def imported(path: str, language: str, imports: Sequence[Import], places: ImportRoots) -> list[str]:
    """The files imported by `path`, in order, without duplicates."""
    found: dict[str, None] = {}
    for one in imports:
        found.update(dict.fromkeys(_resolved(path, language, one, places)))
    found.pop(path, None)
    return list(found)


def _resolved(path: str, language: str, one: Import, places: ImportRoots) -> Iterator[str]:
    match language:
        case "python":
            yield from _python(path, one, places.index)
        case "javascript" | "typescript" | "tsx":
            yield from _script(path, one.module, places)
        case "go":
            yield from _go(one.module, places)
        case "rust":
            yield from _rust(path, one, places.index)
        case "java":
            yield from _java(path, one, places.index)


# ── Python ───────────────────────────────────────────────────────────────────────────────────────────────


def _python(path: str, one: Import, index: Index) -> Iterator[str]:
    """`from a import b` refers to the module `a/b` if it exists, otherwise to `a`, which defines `b`."""
    parts = one.module.split(".") if one.module else []
    for base in _python_bases(path, one.level, index):
        folder = posixpath.normpath(posixpath.join(base, *parts)) if base or parts else ""
        folder = "" if folder == "." else folder
        submodules = [found for name in one.names if (found := _module(_join(folder, name), index))]
        own = _module(folder, index) if parts or one.level else ""
        if submodules:
            yield from submodules
            if len(submodules) < len(one.names) and own:
                yield own
            return
        if own:
            yield own
            return


def _python_bases(path: str, level: int, index: Index) -> Iterator[str]:
    """Base folders of an import: the package for a relative one, otherwise each parent folder possibly on the
    path."""
    folder = posixpath.dirname(path)
    if level:
        above = folder.split("/") if folder else []
        if level - 1 <= len(above):
            yield "/".join(above[: len(above) - (level - 1)])
        return
    roots = [folder]
    while folder:
        folder = posixpath.dirname(folder)
        roots.append(folder)
    roots.reverse()  # the project root first, the script's own folder last
    yield from dict.fromkeys(
        [*(_join(root, "src") for root in roots if index.has_folder(_join(root, "src"))), *roots]
    )


def _module(place: str, index: Index) -> str:
    if not place:
        return ""
    names = (f"{place}.py", f"{place}/__init__.py", f"{place}.pyi")
    return next((name for name in names if index.contains(name)), "")


# ── JavaScript and TypeScript ────────────────────────────────────────────────────────────────────────────


def _script(path: str, module: str, places: ImportRoots) -> Iterator[str]:
    module = module.split("?")[0].split("#")[0] if not module.startswith("#") else module
    if module.startswith(("./", "../")) or module in (".", ".."):
        targets = [posixpath.join(posixpath.dirname(path), module)]
    else:
        targets = places.aliases(path).targets(module)
    for target in targets:
        target = posixpath.normpath(target)
        if target.startswith("../") or target == "..":
            continue
        place = "" if target == "." else target
        stem, dot, ending = place.rpartition(".")
        names = [place] if place else []
        if dot and ending in _COMPILED:
            names += [f"{stem}.{other}" for other in _COMPILED[ending]]
        if place:
            names += [f"{place}.{other}" for other in _SCRIPT_ENDINGS]
        names += [_join(place, f"index.{other}") for other in _SCRIPT_ENDINGS]
        found = next((name for name in names if places.index.contains(name)), "")
        if found:
            yield found
            return


# ── Go, Rust, Java: the plain cases ──────────────────────────────────────────────────────────────────────


def _go(module: str, places: ImportRoots) -> Iterator[str]:
    for name, root in places.go_modules:
        if module == name or module.startswith(f"{name}/"):
            folder = _join(root, module[len(name) :].strip("/"))
            sources = [
                file
                for file in places.index.folder(folder)[1]
                if file.endswith(".go") and not file.endswith("_test.go")
            ]
            yield from (_join(folder, file) for file in sources[:MOST_OF_A_PACKAGE])
            return


def _rust(path: str, one: Import, index: Index) -> Iterator[str]:
    folder, name = posixpath.split(path)
    own = folder if name in ("mod.rs", "lib.rs", "main.rs") else _join(folder, name.removesuffix(".rs"))
    parts = one.module.split("::")
    if one.inner:
        base = own
    elif parts[0] == "crate":
        while folder and not any(index.contains(f"{folder}/{name}") for name in ("lib.rs", "main.rs")):
            folder = posixpath.dirname(folder)
        base, parts = folder, parts[1:]
    elif parts[0] == "self":
        base, parts = own, parts[1:]
    elif parts[0] == "super":
        base = own
        while parts and parts[0] == "super":
            base, parts = posixpath.dirname(base), parts[1:]
    else:
        return
    for length in range(len(parts), 0, -1):
        place = _join(base, "/".join(parts[:length]))
        found = next((n for n in (f"{place}.rs", f"{place}/mod.rs") if index.contains(n)), "")
        if found:
            yield found
            return


def _java(path: str, one: Import, index: Index) -> Iterator[str]:
    parts = one.module.split(".")
    above = posixpath.dirname(path)
    roots = [""]
    while above:
        roots.append(above)
        above = posixpath.dirname(above)
    for root in dict.fromkeys(_join(base, place) for base in roots for place in _JAVA_ROOTS):
        if one.names == ("*",):
            files = [file for file in index.folder(_join(root, "/".join(parts)))[1] if file.endswith(".java")]
            if files:
                yield from (_join(root, "/".join([*parts, file])) for file in files[:MOST_OF_A_PACKAGE])
                return
        for length in range(len(parts), 0, -1):
            name = _join(root, "/".join(parts[:length])) + ".java"
            if index.contains(name):
                yield name
                return


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}".strip("/") if folder and name else folder or name
