"""JUnit XML reports, parsed with limits because the project controls their content."""

from __future__ import annotations

from typing import NoReturn
from xml.parsers import expat

from tui_agent.checks.formats import LONGEST_NAME, MOST_FAILURES, Outcome
from tui_agent.files.numbers import whole_number

#: Limits: characters, depth, and elements of a report; the excess is ignored.
MOST_REPORT, MOST_DEEP, MOST_ELEMENTS = 4_000_000, 64, 250_000
#: Maximum plausible number of tests.
MOST_TESTS = 10_000_000


class _Refused(Exception):
    """The report contains a construct that no valid report needs."""


class _Reader:
    """Sums the counts of the outermost suites that state them, and collects names of failed cases."""

    def __init__(self) -> None:
        self.passed = self.failed = self.suites = 0
        self.failures: list[str] = []
        self._case = ""
        self._open: list[bool] = []
        self._elements = 0
        parser = expat.ParserCreate()
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.ExternalEntityRefHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        self._parser = parser

    def read(self, report: str) -> None:
        """Raises `expat.ExpatError`, and `_Refused` above the limits."""
        if len(report) > MOST_REPORT:
            raise _Refused
        self._parser.Parse(
            report.encode("utf-8", "replace"), True
        )  # In one call, because expat rescans long tags between chunks.

    def _refuse(self, *_: object) -> NoReturn:
        raise _Refused

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if len(self._open) == MOST_DEEP or self._elements > MOST_ELEMENTS:
            raise _Refused
        if name == "testcase":
            whole = (attributes.get("classname", ""), attributes.get("name", ""))
            self._case = "::".join(part for part in whole if part)[:LONGEST_NAME]
        elif name in ("failure", "error") and self._case:
            if len(self.failures) < MOST_FAILURES:
                self.failures.append(" ".join(self._case.split()))
            self._case = ""
        inside = bool(self._open) and self._open[-1]
        counts = name == "testsuite" and "tests" in attributes and not inside
        self._open.append(inside or counts)
        if name == "testsuite":
            self.suites += 1
        if counts:
            numbers = {key: whole_number(attributes.get(key), most=MOST_TESTS) for key in _NAMES}
            wrong = numbers["failures"] + numbers["errors"]
            self.failed += wrong
            self.passed += max(0, numbers["tests"] - wrong - numbers["skipped"])

    def _end(self, _: str) -> None:
        self._open.pop()


_NAMES = ("tests", "failures", "errors", "skipped")


def outcome_of_report(report: str) -> Outcome:
    """Counts of the suites, and the failed cases; empty if the text is not such a report.

    A DTD, an entity, or an excessive size makes it invalid; the output is then used instead.
    """
    reader = _Reader()
    try:
        reader.read(report)
    except (expat.ExpatError, _Refused):
        return Outcome()
    failed = max(reader.failed, len(reader.failures))  # node:test has cases outside of suites.
    return Outcome(reader.passed, failed, tuple(reader.failures)) if reader.suites else Outcome()
