"""Tests of a source file by conventional names and locations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tui_agent.workspace.index import Index

_SCRIPTS: Final = ("ts", "tsx", "js", "jsx", "mts", "cts", "mjs", "cjs", "vue", "svelte")
#: Before the extension.
_SCRIPT_MARKS: Final = (".test", ".spec", "_test", "-test", "_spec", "-spec", ".cy", ".e2e")
_JAVA_ENDINGS: Final = ("Test", "Tests", "TestCase", "IT", "ITCase")
#: A file here with the source's name is its test.
_TEST_FOLDERS: Final = frozenset({"tests", "test", "__tests__", "spec", "specs", "e2e"})
#: Omitted in test paths.
_SOURCE_FOLDERS: Final = frozenset({"src", "lib", "app", "source", "main"})
#: The files in `tests/` test the whole crate.
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
    """Returns existing tests of each source file, nearest first. Scans all paths once."""
    sources = [path for path in paths if not is_test(path)]
    marked = {path: _names(path) for path in sources}
    plain = {path: _plain_names(path) for path in sources}
    wanted = {name for names in (*marked.values(), *plain.values()) for name in names}
    if not wanted:
        return {}
    places = index.named(wanted)

    def called(names: Iterable[str]) -> set[str]:
        return {place for name in names for place in places[name] if place.rpartition("/")[2] == name}

    return {
        path: sorted(
            {
                *called(marked[path]),
                *(place for place in called(plain[path]) if _mirrors(path, place)),
                *_beside(path, index),
            }
            - {path},
            key=_nearest_to(path),
        )
        for path in sources
    }


def _names(path: str) -> list[str]:
    stem, ending = _parted(path)
    match ending:
        case "py":
            return [f"test_{stem}.py", f"{stem}_test.py", f"{stem}_tests.py"]
        case "go":
            return [f"{stem}_test.go"]
        case "rs":
            return [f"{stem}_test.rs", f"test_{stem}.rs", f"{stem}_tests.rs"]
        case "java":
            return [f"Test{stem}.java", *(f"{stem}{mark}.java" for mark in _JAVA_ENDINGS)]
    if ending not in _SCRIPTS:
        return []
    return [f"{stem}{mark}.{other}" for mark in _SCRIPT_MARKS for other in _SCRIPTS]


def _plain_names(path: str) -> list[str]:
    stem, ending = _parted(path)
    if ending == "rs":
        return [f"{stem}.rs"]
    return [f"{stem}.{other}" for other in _SCRIPTS] if ending in _SCRIPTS else []


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
    """Tests for a whole unit: a Go package, a Rust module or crate, a Django application."""
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


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
