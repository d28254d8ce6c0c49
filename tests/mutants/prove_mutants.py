"""Mutants: single changes of behaviour at random places, each of which the package's own tests have to notice.

A mutant is made in a copy of the project. It is killed if the tests of its package's folder fail or take much longer
than without it. The tests that run its lines are tried; if none is known, or if the lines also run in other processes,
all tests of the folder. The list of survivors is printed; one that changes what a user sees calls for a test.
Other mutants are chosen with `--seed N`.
"""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

import coverage
import pytest

from tests.proofs.tally import Tally

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("answers", "context", "edits", "files", "log", "review", "tools", "sandbox")
MUTANTS: Final = 60
#: A larger number is a limit of size, length or time. One more changes next to nothing, so it becomes 0 instead.
LARGEST: Final = 10
#: Calls whose text is for the debug log only, by the name of the logger and of its method.
LOGGERS: Final = ("_log", "log", "logger", "logging")
LOGGED: Final = ("debug", "info", "warning", "error", "exception", "critical")
#: Modules that also run in processes of their own, where no test is known by its lines.
ELSEWHERE: Final = (
    "tui_agent/sandbox/inside/",
    "tui_agent/sandbox/layer_comparison.py",
    "tui_agent/sandbox/folder_access.py",
)
COPIES: Final = 2
COPIED: Final = ("tui_agent", "tests", "config", "themes", "docs", "pyproject.toml", "README.md")
#: A mutant that takes this many times as long as the tests without it loops; the seconds are for a busy machine.
LONGER, AT_LEAST = 4, 60
#: More tests are not named on a command line.
MOST_NAMED: Final = 500
#: Tests of a package that may fail without a mutant, on a busy machine.
MOST_FAILED: Final = 3
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", re.MULTILINE)
_COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
#: The same for a limit, which a test is not expected to know exactly.
_REVERSED: Final[dict[type[ast.cmpop], str]] = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}
_COMPUTED: Final[dict[type[ast.operator], str]] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
}


class Mutant(NamedTuple):
    """`new` in place of the characters from `begin` to `end` of a module, in bytes of UTF-8."""

    module: str
    line: int
    begin: int
    end: int
    new: str
    #: In a function whose result is cached, so that its lines run in the first test alone.
    cached: bool = False

    @property
    def package(self) -> str:
        return self.module.split("/")[1]

    @property
    def runs_elsewhere(self) -> bool:
        """Whether other tests can notice it than those that run its lines here."""
        return self.cached or self.module.startswith(ELSEWHERE)

    def applied(self, source: bytes) -> bytes:
        return source[: self.begin] + self.new.encode() + source[self.end :]

    def described(self, source: bytes) -> str:
        old = " ".join(source[self.begin : self.end].decode().split())
        return f"{self.module}:{self.line}: {old[:60]} -> {self.new[:60]}"


def prove(tally: Tally, scale: float, seed: int = 1) -> None:
    chosen = random.Random(seed).sample(mutants(), max(round(MUTANTS * scale), 1))
    with tempfile.TemporaryDirectory(prefix="tui-agent-mutants-") as place:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(COPIES):
            copies.put(_copy(Path(place) / str(number)))
        with ThreadPoolExecutor(COPIES) as pool:
            packages = sorted({mutant.package for mutant in chosen})
            baselines = dict(
                zip(packages, pool.map(lambda one: _baseline(copies, one), packages), strict=True)
            )
            for mutant, killed in zip(
                chosen,
                pool.map(lambda one: _is_killed(copies, one, baselines[one.package]), chosen),
                strict=True,
            ):
                what = mutant.described((ROOT / mutant.module).read_bytes())
                sys.stderr.write(f"{'noticed' if killed else 'SURVIVED'} {what}\n")
                tally.case(mutant.package, killed, what=what)


def mutants() -> list[Mutant]:
    """Every mutant of every function of the packages, in a fixed order."""
    found: list[Mutant] = []
    for package in PACKAGES:
        for path in sorted((ROOT / "tui_agent" / package).rglob("*.py")):
            source = path.read_bytes()
            starts = [0]
            for line in source.splitlines(keepends=True):
                starts.append(starts[-1] + len(line))
            name = path.relative_to(ROOT).as_posix()

            def span(node: ast.expr | ast.stmt, starts: list[int] = starts) -> tuple[int, int]:
                begin = starts[node.lineno - 1] + node.col_offset
                return begin, starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

            def written(node: ast.expr, source: bytes = source) -> str:
                return source[slice(*span(node))].decode()

            for node, new, cached in _changes(ast.parse(source), written):
                found.append(Mutant(name, node.lineno, *span(node), new, cached))
    return found


def _changes(
    tree: ast.Module, written: Callable[[ast.expr], str]
) -> Iterator[tuple[ast.expr | ast.stmt, str, bool]]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        cached = any("cache" in ast.unparse(decorator) for decorator in function.decorator_list)
        for statement in function.body:
            for node in _below(statement):
                for changed, new in _changes_of(node, written):
                    yield changed, new, cached


def _below(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it, without other functions, annotations, the texts of errors, and the debug log."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Raise | ast.Assert):
        return
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))):
            if name in LOGGERS and method in LOGGED:
                return
    yield node
    for name, value in ast.iter_fields(node):
        if name == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _below(child)


def _changes_of(
    node: ast.AST, written: Callable[[ast.expr], str]
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARED:
            signs = _COMPARED | _REVERSED if _is_limit(left) or _is_limit(right) else _COMPARED
            yield node, f"({written(left)} {signs[type(sign)]} {written(right)})"
        case ast.BoolOp(op=sign, values=values):
            other = " or " if isinstance(sign, ast.And) else " and "
            yield node, f"({other.join(f'({written(value)})' for value in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({written(operand)})"
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _COMPUTED:
            yield node, f"(({written(left)}) {_COMPUTED[type(sign)]} ({written(right)}))"
        case ast.Constant(value=True | False as value):
            yield node, str(not value)
        case ast.Constant(value=int() as value):
            yield node, str(value + 1 if value <= LARGEST else 0)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({written(test)}))"
        case ast.Continue() | ast.Break():
            yield node, "pass"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node, "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield value, "None"


def _is_limit(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=int() as value):
            return value > LARGEST
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
    return False


def _copy(place: Path) -> Path:
    place.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / name, place / name)
    return place


class Baseline(NamedTuple):
    """The seconds that a package's tests take, those that fail, and the tests of each line, by module."""

    seconds: float
    failed: list[str]
    covering: dict[str, dict[int, list[str]]]

    def tests_of(self, mutant: Mutant, source: bytes) -> list[str]:
        last = source[: mutant.end].count(b"\n") + 1
        by_line = self.covering.get(mutant.module, {})
        return sorted(
            {test for line in range(mutant.line, last + 1) for test in by_line.get(line, ()) if test}
        )


def _baseline(copies: SimpleQueue[Path], package: str) -> Baseline:
    """Raises RuntimeError if the tests of a package fail without a mutant."""
    copy = copies.get()
    try:
        data = copy / f"{package}.coverage"
        begun = time.monotonic()
        done = _run(copy, [f"tests/{package}"], None, data)
        failed = _FAILED.findall(done.stdout) if done is not None else []
        if done is None or done.returncode not in (0, 1) or len(failed) > MOST_FAILED:
            raise RuntimeError(f"tests/{package} fail without a mutant: {done and done.stdout[-2000:]}")
        if failed:
            sys.stderr.write(f"left out, because they fail without a mutant: {failed}\n")
        seconds = time.monotonic() - begun
        found = coverage.CoverageData(str(data))
        found.read()
        names = {
            Path(name).relative_to(copy).as_posix(): name
            for name in found.measured_files()
            if Path(name).is_relative_to(copy)
        }
        return Baseline(
            seconds, failed, {short: found.contexts_by_lineno(name) for short, name in names.items()}
        )
    finally:
        copies.put(copy)


def _is_killed(copies: SimpleQueue[Path], mutant: Mutant, baseline: Baseline) -> bool:
    copy = copies.get()
    try:
        path = copy / mutant.module
        source = path.read_bytes()
        tests = baseline.tests_of(mutant, source)
        path.write_bytes(mutant.applied(source))
        try:
            everything = [f"tests/{mutant.package}", *(f"--deselect={test}" for test in baseline.failed)]
            for chosen in ([tests] if 0 < len(tests) <= MOST_NAMED else []) + [everything]:
                done = _run(copy, chosen, max(baseline.seconds * LONGER, AT_LEAST))
                if done is None or done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.USAGE_ERROR):
                    return True
                if done.returncode == pytest.ExitCode.OK and not mutant.runs_elsewhere:
                    return False
            return False
        finally:
            path.write_bytes(source)
    finally:
        copies.put(copy)


def _run(
    copy: Path, tests: list[str], limit: float | None, data: Path | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Run tests in a copy of the project; None if they take longer than the limit, in seconds. `data` is the file for
    their coverage."""
    options = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    if data is None:
        options.append("-x")
    else:
        measured = [f"--data-file={data}", "--rcfile=/dev/null", "--source=tui_agent"]
        options = ["-m", "coverage", "run", *measured, *options, "-p", "tests.mutants.covering"]
    try:
        return subprocess.run(
            [sys.executable, *options, *tests],
            check=False,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return None
