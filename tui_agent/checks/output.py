"""What the output of known runners says: how many passed and failed, and where."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tui_agent.files.late_expressions import late
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


#: Summaries of known runners, each with groups `passed` and `failed` where it has them; the last match counts.
_SUMMARIES = tuple(
    late(pattern, re.MULTILINE)
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
_UNITTEST = late(r"^Ran (\d+) tests? in [\d.]+s\n\n(?:OK|FAILED \(([^)]*)\))", re.MULTILINE)
_PYTEST_ONLY_FAILED = late(r"(\d+) (failed|error)s?\b")
_GO = late(r"^--- (FAIL|PASS)", re.MULTILINE)
_PLACES = late(
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
