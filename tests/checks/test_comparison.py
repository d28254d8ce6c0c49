"""Which failures a change brought."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui_agent.checks.comparison import (
    Difference,
    Finding,
    difference,
    finding,
    has_run,
    limited_to,
    still_there,
)
from tui_agent.checks.formats import Outcome
from tui_agent.checks.projects.files import Project
from tui_agent.checks.projects.node import script_runner

OK = Finding(True, 0, 3, 0)


def failed(*names: str, count: int | None = None) -> Finding:
    return Finding(False, 1, 3, len(names) if count is None else count, names)


def unknown(*lines: str, status: int = 1) -> Finding:
    return Finding(False, status, lines=lines)


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (OK, OK, Difference(0, 0)),
        (OK, failed("a"), Difference(0, 0)),
        (failed("a"), OK, Difference(1, 0, ("a",))),
        (failed("a"), failed("a"), Difference(0, 1, (), ("a",))),
        (failed("a", "b"), failed("a"), Difference(1, 1, ("b",), ("a",))),
        (failed("b"), failed("a"), Difference(1, 0, ("b",))),
        (
            failed("a", "a"),
            failed("a"),
            Difference(1, 1, ("a",), ("a",)),
        ),  # two packages may have the same test
        (failed("a", count=4), failed("a", count=2), Difference(3 - 1, 1 + 1, (), ("a",))),
        (failed(count=3), failed(count=3), Difference(0, 3)),
        (unknown("Error: x"), OK, Difference(None, 0)),
        (unknown("Error: x"), unknown("Error: x"), Difference(0, 1)),
        (unknown("Error: x", "Error: y"), unknown("Error: x"), Difference(1, 1, ("Error: y",))),
        (unknown(), unknown(), Difference(0, None)),
        (unknown(status=2), unknown(status=1), Difference(None, 0)),
    ],
)
def test_what_is_new_is_what_was_not_there_before(
    now: Finding, before: Finding, expected: Difference
) -> None:
    assert difference(now, before) == expected


def test_a_failure_that_a_second_run_does_not_have_is_no_new_one() -> None:
    before = failed("old")
    first = difference(failed("old", "a", "b"), before)
    assert still_there(first, failed("old", "a"), before) == (Difference(1, 1, ("a",), ("old",)), ("b",))
    assert still_there(first, failed("a"), before) == (
        Difference(1, 1, ("a",), ("old",)),
        ("b",),
    )  # these alone
    assert still_there(first, OK, before) == (Difference(0, 1, (), ("old",)), ("a", "b"))
    assert still_there(first, failed("c"), before)[0].is_worse is False
    # a run that broke shows nothing of them
    assert still_there(first, unknown("ERROR: not found: a.py::a", status=4), before) == (first, ())
    nameless = difference(unknown("Error: x"), OK)
    assert still_there(nameless, unknown("Error: x"), OK)[0].is_worse
    assert not still_there(nameless, OK, OK)[0].is_worse


def test_a_run_that_broke_is_worse_than_one_that_named_its_failures() -> None:
    assert difference(unknown("SyntaxError: x"), failed("old")).is_worse
    assert difference(unknown(status=2), failed("old")).is_worse
    assert difference(unknown(), Finding(False, 1, 3, 1)).is_worse


def test_a_run_of_tests_alone_counts_if_it_ran_as_many() -> None:
    assert has_run(OK, ("a", "b", "c", "c"))
    assert not has_run(Finding(True, 0, 0, 0), ("src/lib.rs - f",))
    assert has_run(Finding(True), ("a",))  # nobody counts them


def test_names_are_those_that_the_runner_can_run_alone() -> None:
    output = "FAILED t/a.py::test_x - assert 0\n1 failed, 2 passed in 0.1s\n"
    assert finding(False, 1, output, Outcome(2, 1, ("t.a::test_x",))).failures == ("t/a.py::test_x",)
    assert finding(False, 1, "1 failed in 0.1s\n", Outcome(2, 1, ("t.a::test_x",))).failures == (
        "t.a::test_x",
    )


@pytest.mark.parametrize(
    ("command", "failures", "expected"),
    [
        ("pytest -q", ("a.py::t",), "pytest -q a.py::t"),
        ("cargo test", ("src/lib.rs - f",), "cargo test"),
        (
            "python -m pytest -q -k 'x and y' tests",
            ("a.py::t[1 2]",),
            "python -m pytest -q -k 'x and y' 'a.py::t[1 2]'",
        ),
        ("cd a && pytest", ("a.py::t",), "cd a && pytest a.py::t"),
        ("cd a; pytest", ("a.py::t",), "cd a; pytest"),
        ("python -m unittest", ("test_a (t.A.test_a)",), "python -m unittest -k t.A.test_a"),
        ("python -m unittest", ("test_a (t.A) (i=1)",), "python -m unittest -k t.A.test_a"),
        ("python -m unittest", ("t (unittest.loader._FailedTest.t)", "odd"), "python -m unittest"),
        ("npx --no-install jest", ("a › is b",), "npx --no-install jest -t '^(?:a\\ is\\ b)$'"),
        ("npx vitest run", ("t/a.mjs > a > b",), "npx vitest run -t '^(?:a\\ b)$'"),
        ("bundle exec rspec", ("a b", "c"), "bundle exec rspec -e 'a b' -e c"),
        (
            "vendor/bin/phpunit",
            ("A::b", 'A::c with data set "d" (1)'),
            "vendor/bin/phpunit --filter '/^(?:A::b|A::c\\ with\\ data\\ set\\ \"d\")(?: \\(|$)/'",
        ),
        (
            "cmake --build b && ctest --test-dir b",
            ("x", "y"),
            "cmake --build b && ctest --test-dir b -R '^(x|y)$'",
        ),
        ("pytest -q", ("no name",), "pytest -q"),
        ("cargo test --quiet --no-fail-fast", ("a::b",), "cargo test --quiet --no-fail-fast -- --exact a::b"),
        ("cargo test -- --nocapture", ("a::b",), "cargo test -- --nocapture"),
        ("go test ./...", ("x/y TestA/b", "x/y TestC"), "go test ./... -run '^(TestA|TestC)$'"),
        ("npm test", ("a",), "npm test"),
        ("pytest 'a", ("a.py::t",), "pytest 'a"),
    ],
)
def test_a_known_runner_runs_them_alone(command: str, failures: tuple[str, ...], expected: str) -> None:
    assert limited_to(command, failures) == expected


@pytest.mark.parametrize(
    ("script", "command", "expected"),
    [
        ("jest", "npm test", "npm test -- -t '^(?:a\\ b)$'"),
        ("tsc && c8 mocha -R dot", "npm test -- --no-bail", "npm test -- --no-bail -g '^(?:a\\ b)$'"),
        ("NODE_ENV=test vitest run", "pnpm test", "pnpm test -t '^(?:a\\ b)$'"),
        ("jest && echo done", "npm test", "npm test"),
        ("node run.js", "npm test", "npm test"),
    ],
)
def test_a_package_script_runs_them_alone(tmp_path: Path, script: str, command: str, expected: str) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {"test": script}}))
    assert limited_to(command, ("a b",), script_runner(command, Project(tmp_path))) == expected


def test_a_junit_report_that_is_the_output_is_read() -> None:
    output = """> shop@1.0.0 test
<?xml version="1.0"?>
<testsuites>
<testsuite name="s" tests="2" failures="1" errors="0" skipped="0">
<testcase classname="s" name="bad"><failure>no</failure></testcase><testcase classname="s" name="ok"/></testsuite>
<testcase classname="test" name="outside"><failure/></testcase>
</testsuites>
done
"""
    found = finding(False, 1, output, Outcome())
    assert (found.passed, found.failed, found.failures) == (1, 2, ("s::bad", "test::outside"))
