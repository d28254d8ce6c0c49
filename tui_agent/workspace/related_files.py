"""Imports of a file (with `paths` and `baseUrl` of a tsconfig) and its tests by name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from tui_agent.workspace.index import Index


class Import(Struct, frozen=True):
    """`module` as written: `a.b` in Python and Java, `./a` in JavaScript, `x.org/a` in Go, `crate::a::b` in
    Rust.

    `names` are imported from it. `level` counts Python's leading dots. `inner`: a Rust `mod` line.
    """

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    inner: bool = False


TSCONFIG_NAMES = ("tsconfig.json", "jsconfig.json", "tsconfig.base.json")
MOST_EXTENDS = 5
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')

ReadText = Callable[[str], str | None]


class Aliases(Struct, frozen=True):
    """`paths`: (pattern with at most one `*`, targets relative to the root); `base`: `baseUrl`."""

    paths: tuple[tuple[str, tuple[str, ...]], ...] = ()
    base: str | None = None

    def targets(self, module: str) -> list[str]:
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
    """Of the nearest configuration at or above the file."""
    folder = posixpath.dirname(path)
    while True:
        for name in TSCONFIG_NAMES:
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
    pairs: list[tuple[str, tuple[str, ...]]] = []
    for pattern, places in paths.items():
        named = (place for place in (places if isinstance(places, list) else []) if isinstance(place, str))
        pairs.append((pattern, tuple(posixpath.normpath(posixpath.join(start, place)) for place in named)))
    return Aliases(tuple(pairs), base)


def _parsed(text: str) -> dict[str, Any]:
    def plain(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else " "

    text = _TRAILING_COMMA.sub(plain, _STRING_OR_COMMENT.sub(plain, text.lstrip("\ufeff")))
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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
#: TypeScript imports its future JavaScript files.
_COMPILED: Final = {"js": ("ts", "tsx"), "jsx": ("tsx",), "mjs": ("mts",), "cjs": ("cts",)}
_JAVA_ROOTS: Final = ("src/main/java", "src/test/java", "src", "")
MOST_OF_A_PACKAGE: Final = 5


class ImportRoots(Struct, frozen=True):
    """`go_modules` are (name, folder)."""

    index: Index
    aliases: Callable[[str], Aliases] = lambda path: Aliases()
    go_modules: Sequence[tuple[str, str]] = ()


def imported(path: str, language: str, imports: Sequence[Import], places: ImportRoots) -> list[str]:
    """In order, without duplicates."""
    found: dict[str, None] = {}
    for one in imports:
        resolved: Iterable[str] = ()
        match language:
            case "python":
                resolved = _python(path, one, places.index)
            case "javascript" | "typescript" | "tsx":
                resolved = _script(path, one.module, places)
            case "go":
                resolved = _go(one.module, places)
            case "rust":
                resolved = _rust(path, one, places.index)
            case "java":
                resolved = _java(path, one, places.index)
        found.update(dict.fromkeys(resolved))
    found.pop(path, None)
    return list(found)


def _python(path: str, one: Import, index: Index) -> Iterator[str]:
    """`from a import b`: the module `a/b` if it exists, otherwise `a`."""
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
    """Yields the package of a relative import, otherwise each parent folder possibly on the path."""
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
    roots.reverse()  # the project root first, the script's folder last
    yield from dict.fromkeys(
        [*(_join(root, "src") for root in roots if index.has_folder(_join(root, "src"))), *roots]
    )


def _module(place: str, index: Index) -> str:
    if not place:
        return ""
    names = (f"{place}.py", f"{place}/__init__.py", f"{place}.pyi")
    return next((name for name in names if index.contains(name)), "")


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


_SCRIPTS: Final = ("ts", "tsx", "js", "jsx", "mts", "cts", "mjs", "cjs", "vue", "svelte")
#: Before the extension.
_SCRIPT_MARKS: Final = (".test", ".spec", "_test", "-test", "_spec", "-spec", ".cy", ".e2e")
_JAVA_ENDINGS: Final = ("Test", "Tests", "TestCase", "IT", "ITCase")
_TEST_FOLDERS: Final = frozenset({"tests", "test", "__tests__", "spec", "specs", "e2e"})
_SOURCE_FOLDERS: Final = frozenset({"src", "lib", "app", "source", "main"})
#: Files in `tests/` test the whole crate.
_CRATES: Final = ("lib.rs", "main.rs")


def is_test(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    in_tests = not _TEST_FOLDERS.isdisjoint(folder.split("/"))
    match ending:
        case "py":
            return (
                stem.startswith("test_")
                or stem.endswith(("_test", "_tests"))
                or stem in ("conftest", "tests")
            )
        case "go":
            return stem.endswith("_test")
        case "rs":
            return (
                in_tests or stem == "tests" or stem.startswith("test_") or stem.endswith(("_test", "_tests"))
            )
        case "java":
            return stem.endswith(_JAVA_ENDINGS) or (stem.startswith("Test") and stem[4:5].isupper())
    return ending in _SCRIPTS and (in_tests or stem.endswith(_SCRIPT_MARKS))


def find_tests(paths: Iterable[str], index: Index) -> dict[str, list[str]]:
    """Nearest first. Scans all paths once."""
    sources = [path for path in paths if not is_test(path)]
    names_of = {path: _test_names(path) for path in sources}
    wanted = {name for both in names_of.values() for names in both for name in names}
    if not wanted:
        return {}
    places = index.named(wanted)

    def called(names: Iterable[str]) -> set[str]:
        return {place for name in names for place in places[name] if place.rpartition("/")[2] == name}

    return {
        path: sorted(
            {
                *called(marked),
                *(place for place in called(plain) if _mirrors(path, place)),
                *_beside(path, index),
            }
            - {path},
            key=_nearest_to(path),
        )
        for path, (marked, plain) in names_of.items()
    }


def _test_names(path: str) -> tuple[list[str], list[str]]:
    """Returns names of a test, and names that are of a test only in a folder of tests."""
    stem, ending = _parted(path)
    match ending:
        case "py":
            return [f"test_{stem}.py", f"{stem}_test.py", f"{stem}_tests.py"], []
        case "go":
            return [f"{stem}_test.go"], []
        case "rs":
            return [f"{stem}_test.rs", f"test_{stem}.rs", f"{stem}_tests.rs"], [f"{stem}.rs"]
        case "java":
            return [f"Test{stem}.java", *(f"{stem}{mark}.java" for mark in _JAVA_ENDINGS)], []
    others = _SCRIPTS if ending in _SCRIPTS else ()
    marked = [f"{stem}{mark}.{other}" for mark in _SCRIPT_MARKS for other in others]
    return marked, [f"{stem}.{other}" for other in others]


def _parted(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    if stem in ("index", "__init__", "mod") and folder:
        stem = folder.rpartition("/")[2]
    return stem, ending if stem else ""


def _mirrors(path: str, test: str) -> bool:
    folders, places = path.split("/")[:-1], test.split("/")[:-1]
    if _TEST_FOLDERS.isdisjoint(places):
        return False
    ours = [folder for folder in folders if folder not in _SOURCE_FOLDERS]
    theirs = [folder for folder in places if folder not in _TEST_FOLDERS | _SOURCE_FOLDERS]
    return theirs in (ours, ours[: len(theirs)], ours[len(ours) - len(theirs) :])


def _beside(path: str, index: Index) -> list[str]:
    """Yields tests of a whole unit: a Go package, a Rust module or crate, a Django application."""
    folder, _, name = path.rpartition("/")
    stem, ending = _parted(path)
    match ending:
        case "go":
            files = [file for file in index.folder(folder)[1] if file.endswith("_test.go")]
            own = [file for file in files if file.startswith(f"{stem}_")]
            chosen = own or [file for file in files if file == f"{folder.rpartition('/')[2]}_test.go"]
            return [_join(folder, file) for file in chosen]
        case "rs" if name in _CRATES:
            tests = _join(folder.rpartition("/")[0], "tests")
            return [f"{tests}/{file}" for file in index.folder(tests)[1] if file.endswith(".rs")]
        case "rs":
            inner = folder if name == "mod.rs" else _join(folder, stem)
            return [place for place in (_join(inner, "tests.rs"),) if index.contains(place)]
        case "py":
            return [place for place in (_join(folder, "tests.py"),) if index.contains(place)]
    return []


def _nearest_to(path: str) -> Callable[[str], tuple[int, str]]:
    folders = path.split("/")[:-1]

    def rank(test: str) -> tuple[int, str]:
        there = set(test.split("/")[:-1])
        return -sum(folder in there for folder in folders), test

    return rank
