"""Checks: commands that tell whether a change is good. Which a project has, and what their output says."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

#: Bytes of a project's own file that are read to find its checks.
_MOST_READ = 1 << 20
#: How many failing places are told.
MOST_PLACES = 50


class Check(Struct, frozen=True):
    """A command that runs on what is `proposed`, or on what was `applied`. `files` are globs; none means all."""

    name: str
    command: str
    when: Literal["proposed", "applied"] = "proposed"
    files: tuple[str, ...] = ()

    def concerns(self, paths: Iterable[str]) -> bool:
        """Whether it has to do with one of these files."""
        return not self.files or any(
            fnmatchcase(path, glob) or fnmatchcase(f"/{path}", f"*/{glob}")
            for path in paths
            for glob in self.files
        )


class Place(NamedTuple):
    """Where something failed: a relative path, and a line from 1."""

    path: str
    line: int


class Counts(NamedTuple):
    """What the runner says itself; None where it says nothing that is known."""

    passed: int | None = None
    failed: int | None = None


def found_in(root: Path) -> list[Check]:
    """The checks that the project's own files name, tests first. Nothing is run. Blocking."""
    return list(_found(root, lambda name: _text(root / name)))


def _found(root: Path, text: Callable[[str], str]) -> Iterator[Check]:
    python = _toml(text("pyproject.toml"))
    tools = _table(python.get("tool"))
    test_files = any(root.glob("test_*.py")) or any(root.glob("tests/**/test_*.py"))
    pytest = (
        "pytest" in tools
        or (root / "pytest.ini").is_file()
        or (root / "conftest.py").is_file()
        or (root / "tests/conftest.py").is_file()
        or "[tool:pytest]" in text("setup.cfg")
        or "[pytest]" in text("tox.ini")
        or "import pytest" in "".join(_text(path) for path in sorted(root.glob("tests/test_*.py"))[:5])
    )
    if pytest:
        yield Check("pytest", "pytest -q", files=("*.py",))
    elif test_files:
        yield Check("unittest", "python -m unittest discover -q", files=("*.py",))
    package = _json(text("package.json"))
    test = _table(package.get("scripts")).get("test")
    if isinstance(test, str) and test and "no test specified" not in test:
        yield Check("test", f"{_node_runner(root)} test")
    if (root / "Cargo.toml").is_file():
        yield Check("cargo", "cargo test --quiet", files=("*.rs", "Cargo.toml"))
    if (root / "go.mod").is_file():
        yield Check("go", "go test ./...", files=("*.go", "go.mod"))
    nothing_else = not (pytest or test_files or test)
    if nothing_else and re.search(r"^test\s*:", text("Makefile"), re.MULTILINE):
        yield Check("make", "make test")
    yield from _linters(root, tools, text)


def _linters(root: Path, tools: dict[str, object], text: Callable[[str], str]) -> Iterator[Check]:
    if "ruff" in tools or (root / "ruff.toml").is_file() or (root / ".ruff.toml").is_file():
        yield Check("ruff", "ruff check --quiet --output-format concise .", files=("*.py",))
    if "mypy" in tools or (root / "mypy.ini").is_file() or "[mypy]" in text("setup.cfg"):
        yield Check("mypy", "mypy .", files=("*.py",))
    if "ty" in tools or (root / "ty.toml").is_file():
        yield Check("ty", "ty check", files=("*.py",))
    if (root / "tsconfig.json").is_file():
        yield Check("tsc", "npx --no-install tsc --noEmit", files=("*.ts", "*.tsx"))
    names = ("eslint.config.js", "eslint.config.mjs", "eslint.config.ts", ".eslintrc.json", ".eslintrc.js")
    if any((root / name).is_file() for name in (*names, ".eslintrc.cjs", ".eslintrc.yml")):
        yield Check("eslint", "npx --no-install eslint .", files=("*.js", "*.ts", "*.jsx", "*.tsx"))


def _node_runner(root: Path) -> str:
    if (root / "pnpm-lock.yaml").is_file():
        return "pnpm"
    return "yarn" if (root / "yarn.lock").is_file() else "npm"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_READ).decode("utf-8", "replace") if path.is_file() else ""
    except OSError:
        return ""


def _table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _toml(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _json(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return _table(value)


#: Summaries of known runners, each with groups `passed` and `failed` where it has them; the last match counts.
_SUMMARIES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^(?:=+ )?(?:(?P<failed>\d+) failed)?(?:, )?(?:(?P<passed>\d+) passed)?[^\n]*? in [\d.]+s",  # pytest
        r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed",  # cargo
        r"^Tests:\s+(?:(?P<failed>\d+) failed, )?(?:\d+ \w+, )*(?P<passed>\d+) passed",  # jest
        r"^\s*Tests\s+(?:(?P<failed>\d+) failed \| )?(?P<passed>\d+) passed",  # vitest
        r"^(?:#|ℹ) pass (?P<passed>\d+)(?:\n(?:#|ℹ) fail (?P<failed>\d+))?",  # node --test
        r"^\s*(?P<passed>\d+) passing(?:[^\n]*\n\s*(?P<failed>\d+) failing)?",  # mocha
        r"^Found (?P<failed>\d+) errors?",  # ruff, mypy, tsc
        r"^✖ (?P<failed>\d+) problems?",  # eslint
    )
)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s\n\n(?:OK|FAILED \(([^)]*)\))", re.MULTILINE)
_PYTEST_ONLY_FAILED = re.compile(r"(\d+) (failed|error)s?\b")
_GO = re.compile(r"^--- (FAIL|PASS)", re.MULTILINE)
_PLACES = re.compile(
    r"^(?:\s*(?:File \"|at |-->|❯ )\s*)?(?P<path>[\w.@+-][\w./@+-]*\.\w+)(?::|\", line |\()(?P<line>\d+)",
    re.MULTILINE,
)


def counts(output: str) -> Counts:
    """How many passed and failed, as the runner's own summary says; None where it has none that is known."""
    if found := _UNITTEST.search(output):
        failed = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", found[2] or "")))
        return Counts(int(found[1]) - failed, failed)
    for pattern in _SUMMARIES:
        found_all = list(pattern.finditer(output))
        if not found_all:
            continue
        last = found_all[-1]
        groups = last.groupdict()
        failed = int(groups.get("failed") or 0)
        if not groups.get("passed") and not failed:
            only = _PYTEST_ONLY_FAILED.findall(last[0])
            if not only:
                continue
            failed = sum(int(number) for number, _ in only)
        errors = re.search(r"(\d+) errors? in [\d.]+s", last[0])
        if errors and " failed" in last[0]:
            failed += int(errors[1])
        passed = groups.get("passed")
        return Counts(int(passed) if passed else (0 if "passed" in groups else None), failed)
    results = _GO.findall(output)
    if results:
        return Counts(results.count("PASS"), results.count("FAIL"))
    return Counts()


def places(output: str, exists: Callable[[str], bool]) -> list[Place]:
    """Where the output points to in the project's files, each once, in order."""
    found: dict[Place, None] = {}
    for match in _PLACES.finditer(output):
        path = match["path"].removeprefix("./")
        if exists(path):
            found[Place(path, int(match["line"]))] = None
            if len(found) == MOST_PLACES:
                break
    return list(found)
