"""What the output of known runners says: how many passed and failed, and where."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tui_agent.files.late_expressions import late
from tui_agent.files.numbers import whole_number
from tui_agent.store.checks import Place

#: How many failing places are told.
MOST_PLACES = 50
#: The file in which pytest says what it found, from the workspace's root; in a view it is thrown away.
REPORT = ".tui-agent-report.xml"
#: What makes runners write it.
REPORTING = {"PYTEST_ADDOPTS": f"--junitxml={REPORT}"}


class Counts(NamedTuple):
    """What the runner says itself; None where it says nothing that is known."""

    passed: int | None = None
    failed: int | None = None


#: A count, and seconds; more digits are neither.
_N, _SECONDS = r"(?<!\d)\d{1,9}(?!\d)", r"(?<![\d.])[\d.]{1,12}(?![\d.])"
#: Summaries of known runners, each with groups `passed` and `failed` where it has them; the last match counts.
#: No part of one matches across lines by a repeated class: each is tried at the beginning of each line.
_SUMMARIES = tuple(
    late(pattern.replace("N)", f"{_N})").replace("SECONDS", _SECONDS), re.MULTILINE)
    for pattern in (
        r"^(?:={1,200} )?(?:(?P<failed>N) failed)?(?:, )?(?:(?P<passed>N) passed)?[^\n]{0,300}? in SECONDSs",  # pytest
        r"^test result: \w{1,20}\. (?P<passed>N) passed; (?P<failed>N) failed",  # cargo
        r"^Tests:[ \t]{1,20}(?:(?P<failed>N) failed, )?(?:\d{1,9} \w{1,20}, ){0,5}(?P<passed>N) passed",  # jest
        r"^[ \t]{0,20}Tests[ \t]{1,20}(?:(?P<failed>N) failed \| )?(?P<passed>N) passed",  # vitest
        r"^(?:#|ℹ) pass (?P<passed>N)(?:\n(?:#|ℹ) fail (?P<failed>N))?",  # node --test
        r"^[ \t]{0,20}(?P<passed>N) passing(?:[^\n]{0,80}\n[ \t]{0,20}(?P<failed>N) failing)?",  # mocha
        r"^Found (?P<failed>N) errors?",  # ruff, mypy, tsc
        r"^✖ (?P<failed>N) problems?",  # eslint
    )
)
_UNITTEST = late(rf"^Ran ({_N}) tests? in {_SECONDS}s\n\n(?:OK|FAILED \(([^)\n]{{0,200}})\))", re.MULTILINE)
_UNITTEST_WRONG = late(rf"(?:failures|errors)=({_N})")
_PYTEST_ONLY_FAILED = late(rf"({_N}) (failed|error)s?\b")
_PYTEST_ERRORS = late(rf"({_N}) errors? in {_SECONDS}s")
_GO = late(r"^--- (FAIL|PASS)", re.MULTILINE)
_PLACES = late(
    r"^[ \t]{0,80}(?:(?:File \"|at |-->|❯ )[ \t]{0,20})?"
    r"(?P<path>[\w.@+-][\w./@+-]{0,400}\.\w{1,20})(?::|\", line |\()(?P<line>\d{1,9})(?!\d)",
    re.MULTILINE,
)


def counts(output: str) -> Counts:
    """How many passed and failed, as the runner's own summary says; None where it has none that is known."""
    if found := _UNITTEST.search(output):
        failed = sum(whole_number(number) for number in _UNITTEST_WRONG.findall(found[2] or ""))
        return Counts(max(0, whole_number(found[1]) - failed), failed)
    for pattern in _SUMMARIES:
        found_all = list(pattern.finditer(output))
        if not found_all:
            continue
        last = found_all[-1]
        groups = last.groupdict()
        failed = whole_number(groups.get("failed"))
        if not groups.get("passed") and not failed:
            only = _PYTEST_ONLY_FAILED.findall(last[0])
            if not only:
                continue
            failed = sum(whole_number(number) for number, _ in only)
        errors = _PYTEST_ERRORS.search(last[0])
        if errors and " failed" in last[0]:
            failed += whole_number(errors[1])
        return Counts(whole_number(groups.get("passed")) if "passed" in groups else None, failed)
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
            found[Place(path, whole_number(match["line"]))] = None
            if len(found) == MOST_PLACES:
                break
    return list(found)
