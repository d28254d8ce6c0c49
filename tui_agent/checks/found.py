"""Which checks a project has, as its own files say. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tui_agent.files.git_folder import read_regular
from tui_agent.files.structures import Unreadable, read_json, read_toml
from tui_agent.settings.schema import CheckCommand

#: Bytes of a project's own file that are read to find its checks.
_MOST_READ = 1 << 20


#: So many test files are read to know what they are written for.
_MOST_FILES = 5
#: Tests that are functions, or ask for pytest, are for pytest.
_PYTEST = re.compile(r"^(?:async )?def test_|^(?:import|from) pytest\b", re.MULTILINE)


def concerns(check: CheckCommand, paths: Iterable[str]) -> bool:
    """Whether it has to do with one of these files."""
    return not check.files or any(
        fnmatchcase(path, glob) or fnmatchcase(f"/{path}", f"*/{glob}")
        for path in paths
        for glob in check.files
    )


def found_in(root: Path) -> list[CheckCommand]:
    """The checks that the project's own files name, tests first. Nothing is run. Blocking."""
    return list(_found(root, lambda name: _text(root / name)))


def _found(root: Path, text: Callable[[str], str]) -> Iterator[CheckCommand]:
    python = _toml(text("pyproject.toml"))
    tools = _table(python.get("tool"))
    test_files = bool(_test_files(root))
    pytest = (
        "pytest" in tools
        or (root / "pytest.ini").is_file()
        or (root / "conftest.py").is_file()
        or (root / "tests/conftest.py").is_file()
        or "[tool:pytest]" in text("setup.cfg")
        or "[pytest]" in text("tox.ini")
        or _PYTEST.search("\n".join(_text(path) for path in _test_files(root)[:_MOST_FILES]))
    )
    if pytest:
        yield CheckCommand("pytest", "pytest -q", files=("*.py",))
    elif test_files:
        yield CheckCommand("unittest", "python -m unittest discover -q", files=("*.py",))
    package = _json(text("package.json"))
    test = _table(package.get("scripts")).get("test")
    if isinstance(test, str) and test and "no test specified" not in test:
        yield CheckCommand("test", f"{_node_runner(root)} test")
    if (root / "Cargo.toml").is_file():
        yield CheckCommand("cargo", "cargo test --quiet", files=("*.rs", "Cargo.toml"))
    if (root / "go.mod").is_file():
        yield CheckCommand("go", "go test ./...", files=("*.go", "go.mod"))
    nothing_else = not (pytest or test_files or test)
    if nothing_else and re.search(r"^test\s*:", text("Makefile"), re.MULTILINE):
        yield CheckCommand("make", "make test")
    yield from _linters(root, tools, text)


def _test_files(root: Path) -> list[Path]:
    return sorted([*root.glob("test_*.py"), *root.glob("tests/**/test_*.py")])


def _linters(root: Path, tools: dict[str, object], text: Callable[[str], str]) -> Iterator[CheckCommand]:
    if "ruff" in tools or (root / "ruff.toml").is_file() or (root / ".ruff.toml").is_file():
        yield CheckCommand("ruff", "ruff check --quiet --output-format concise .", files=("*.py",))
    if "mypy" in tools or (root / "mypy.ini").is_file() or "[mypy]" in text("setup.cfg"):
        yield CheckCommand("mypy", "mypy .", files=("*.py",))
    if "ty" in tools or (root / "ty.toml").is_file():
        yield CheckCommand("ty", "ty check", files=("*.py",))
    if (root / "tsconfig.json").is_file():
        yield CheckCommand("tsc", "npx --no-install tsc --noEmit", files=("*.ts", "*.tsx"))
    names = ("eslint.config.js", "eslint.config.mjs", "eslint.config.ts", ".eslintrc.json", ".eslintrc.js")
    if any((root / name).is_file() for name in (*names, ".eslintrc.cjs", ".eslintrc.yml")):
        yield CheckCommand("eslint", "npx --no-install eslint .", files=("*.js", "*.ts", "*.jsx", "*.tsx"))


def _node_runner(root: Path) -> str:
    if (root / "pnpm-lock.yaml").is_file():
        return "pnpm"
    return "yarn" if (root / "yarn.lock").is_file() else "npm"


def _text(path: Path) -> str:
    try:
        return read_regular(str(path), _MOST_READ).decode("utf-8", "replace")  # never waits at a pipe
    except OSError:
        return ""


def _table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _toml(text: str) -> dict[str, object]:
    try:
        return read_toml(text)
    except Unreadable:
        return {}


def _json(text: str) -> dict[str, object]:
    try:
        return _table(read_json(text))
    except Unreadable:
        return {}
