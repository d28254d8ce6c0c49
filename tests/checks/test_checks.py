"""Which checks a project has, and what the output of known runners says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_agent.checks.detection import concerns, found_in
from tui_agent.checks.formats import Outcome
from tui_agent.checks.output import outcome_of, places
from tui_agent.checks.reports import MOST_REPORT, outcome_of_report
from tui_agent.session.checks import _hash
from tui_agent.settings.schema import CheckCommand as Check
from tui_agent.store.commands import Place

PROJECTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "nothing": ({"README.md": ""}, []),
    "pytest in pyproject": (
        {"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n"},
        ["pytest", "ruff"],
    ),
    "pytest by a conftest": ({"tests/conftest.py": ""}, ["pytest"]),
    "unittest": ({"tests/test_a.py": "import unittest\n"}, ["unittest"]),
    "functions for pytest": ({"test_a.py": "def test_it():\n    pass\n"}, ["pytest"]),
    "npm": ({"package.json": '{"scripts": {"test": "jest"}}', "tsconfig.json": "{}"}, ["test", "tsc"]),
    "npm without a test": (
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'},
        [],
    ),
    "cargo and go": ({"Cargo.toml": "", "go.mod": ""}, ["cargo", "go"]),
    "make": ({"Makefile": "all:\n\ntest: all\n\ttrue\n"}, ["make"]),
    "make beside pytest": ({"Makefile": "test:\n", "pytest.ini": ""}, ["pytest"]),
    "mypy in setup.cfg": ({"setup.cfg": "[mypy]\nstrict = true\n"}, ["mypy"]),
    "5,000 digits": ({"pyproject.toml": f"[tool.ruff]\na = {'9' * 5000}\n", "package.json": "9" * 5000}, []),
    "deep files": (
        {"package.json": '{"a":' * 500 + "1" + "}" * 500, "pyproject.toml": f"a{'.a' * 5000}=1"},
        [],
    ),
    "broken files": ({"package.json": "[" * 100_000, "pyproject.toml": "[["}, []),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_checks_are_found_by_the_files_of_a_project(name: str, tmp_path: Path) -> None:
    files, expected = PROJECTS[name]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert [check.name for check in found_in(tmp_path)] == expected


def test_a_pipe_with_the_name_of_a_project_file_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "setup.cfg", "tox.ini", "package.json", "Makefile", "test_a.py"):
        os.mkfifo(tmp_path / name)
    assert [check.name for check in found_in(tmp_path)] == ["unittest"]
    assert _hash(tmp_path / "Makefile") == ""


def test_the_package_manager_is_that_of_the_lock_file(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"scripts": {"test": "vitest"}}')
    (tmp_path / "pnpm-lock.yaml").write_text("")
    assert found_in(tmp_path)[0].command == "pnpm test"


def test_failing_lines_are_places_in_files_that_are_there() -> None:
    output = (
        "tests/test_a.py:12: AssertionError\n"
        '  File "shop/api.py", line 3, in total\n'
        "src/a.ts(4,5): error TS1\n"
        "./b.go:7:2: undefined\n"
        "nowhere.py:1: nothing\n"
        "tests/test_a.py:12: again\n"
    )
    there = {"tests/test_a.py", "shop/api.py", "src/a.ts", "b.go"}
    assert places(output, lambda path: path if path in there else "") == [
        Place("tests/test_a.py", 12),
        Place("shop/api.py", 3),
        Place("src/a.ts", 4),
        Place("b.go", 7),
    ]


def test_a_check_concerns_the_files_that_it_names() -> None:
    assert concerns(Check("a", "a"), ["x"])
    assert concerns(Check("a", "a", files=("*.py",)), ["deep/x.py"])
    assert concerns(Check("a", "a", files=("src/*.ts",)), ["src/a.ts"])
    assert not concerns(Check("a", "a", files=("*.py",)), ["x.rs"])


def test_a_junit_report_is_counted() -> None:
    cases = (
        '<testcase classname="a.T" name="x"><failure/></testcase><testcase classname="a.T" name="y"/>'
        '<testcase name="z[1]"><error/><failure/></testcase>'
    )
    inner = f'<testsuite name="a" errors="1" failures="2" skipped="1" tests="9">{cases}</testsuite>'
    report = f"<testsuites>{inner}</testsuites>"
    assert outcome_of_report(report) == Outcome(5, 3, ("a.T::x", "z[1]"))
    assert outcome_of_report("") == Outcome()


LONG = "9" * 5000


@pytest.mark.parametrize(
    "output",
    [
        f"{LONG} passed in 1.0s\n",
        f"1 failed, {LONG} passed in 1.0s\n",
        f"Ran {LONG} tests in 1.0s\n\nOK\n",
        f"Ran 5 tests in 1.0s\n\nFAILED (failures={LONG})\n",
        f"test result: ok. {LONG} passed; {LONG} failed\n",
        f"Tests:  {LONG} passed\n",
        f"Found {LONG} errors\n",
        f"a.py:{LONG}: no line\n",
    ],
)
def test_5000_digits_are_no_count_and_no_line(output: str) -> None:
    for count in outcome_of(output)[:2]:
        assert (count or 0) < 10**9
    assert places(output, str) == []


def suite(inside: str = "", tests: str = "2") -> str:
    return f'<testsuites><testsuite tests="{tests}" failures="1">{inside}</testsuite></testsuites>'


#: Each holds a suite that would count if the report were believed.
REFUSED_REPORTS = {
    "an entity": "<!DOCTYPE a [<!ENTITY b 'c'>]>" + suite("&b;"),
    "an entity of entities": "<!DOCTYPE a [<!ENTITY b 'cc'><!ENTITY d '&b;&b;'>]>" + suite("&d;"),
    "an entity of a file": "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>" + suite("&b;"),
    "a description": "<!DOCTYPE a SYSTEM 'http://127.0.0.1/a.dtd'>" + suite(),
    "too deep": suite("<a>" * 1000 + "</a>" * 1000),
    "too large": suite("x" * (MOST_REPORT + 1)),
    "cut off": suite()[:-5],
    "no XML": '<testsuite tests="9" ' * 1000,
    "a bracket in a value": '<testsuite name="<testsuite tests="9">',
}


@pytest.mark.parametrize("name", REFUSED_REPORTS)
def test_a_report_that_is_not_plain_xml_within_bounds_counts_for_nothing(name: str) -> None:
    assert outcome_of_report(suite()) == Outcome(1, 1)
    assert outcome_of_report(REFUSED_REPORTS[name]) == Outcome()


def test_numbers_of_a_report_are_bounded_and_suites_inside_suites_count_once() -> None:
    assert outcome_of_report(suite(tests="9" * 5000)) == Outcome(0, 1)
    assert outcome_of_report(suite(tests="-5")) == Outcome(0, 1)
    assert outcome_of_report(suite('<testsuite tests="2" failures="1"/>')) == Outcome(1, 1)
    assert outcome_of_report(
        '<testsuite><testsuite tests="4"/><testsuite tests="1"/></testsuite>'
    ) == Outcome(5, 0)
    assert outcome_of_report("<other/>") == Outcome()
