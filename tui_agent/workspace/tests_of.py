"""Where the tests of a source file are, by the names that people give them."""

from __future__ import annotations

from collections.abc import Iterable

from tui_agent.workspace.index import Index

_SCRIPTS = ("ts", "tsx", "js", "jsx", "mts", "cts", "mjs", "cjs")


def is_test(path: str) -> bool:
    """Whether a file is a test itself, by its name."""
    name = path.rpartition("/")[2]
    stem, _, ending = name.rpartition(".")
    match ending:
        case "py":
            return stem.startswith("test_") or stem.endswith("_test") or stem == "conftest"
        case "go":
            return stem.endswith("_test")
        case "rs":
            return stem == "tests" or path.startswith("tests/") or "/tests/" in path
        case "java":
            return stem.endswith(("Test", "Tests", "IT"))
    return ending in _SCRIPTS and stem.endswith((".test", ".spec", "-test", "_test", ".e2e"))


def find_tests(paths: Iterable[str], index: Index) -> dict[str, list[str]]:
    """For each source file those of its tests that there are, the nearest first. Looks at every path once."""
    names = {path: _names(path) for path in paths if not is_test(path)}
    wanted = {name for found in names.values() for name in found}
    if not wanted:
        return {}
    places = index.named(wanted)
    return {
        path: sorted(
            {
                place
                for name in found
                for place in places[name]
                if place.endswith(f"/{name}") or place == name
            },
            key=lambda place: (-_alike(path, place), place),
        )
        for path, found in names.items()
    }


def _names(path: str) -> list[str]:
    name = path.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem:
        return []
    match ending:
        case "py":
            stem = path.split("/")[-2] if stem == "__init__" and "/" in path else stem
            return [f"test_{stem}.py", f"{stem}_test.py"]
        case "go":
            return [f"{stem}_test.go"]
        case "rs":
            return [f"{stem}_test.rs", f"test_{stem}.rs", f"{stem}_tests.rs"]
        case "java":
            return [f"{stem}Test.java", f"{stem}Tests.java", f"{stem}IT.java"]
    if ending not in _SCRIPTS:
        return []
    stem = path.split("/")[-2] if stem == "index" and "/" in path else stem
    return [f"{stem}{mark}.{other}" for mark in (".test", ".spec", "_test", "-test") for other in _SCRIPTS]


def _alike(path: str, test: str) -> int:
    """How many folders of the source's path the test's path has too: its own tests lie nearest, or mirror it."""
    there = set(test.split("/")[:-1])
    return sum(folder in there for folder in path.split("/")[:-1])
