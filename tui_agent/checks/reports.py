"""Reports of test runners and linters: JSON and JUnit XML.

Both are parsed with limits because the project controls their content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn
from xml.parsers import expat

import msgspec

from tui_agent.checks.formats import LONGEST_NAME, MOST_FAILURES, Outcome
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number

#: Characters of a report, and its lines if each is a value.
MOST_JSON, MOST_LINES = 8_000_000, 20_000
_START = late(r"^(?:\{\s{0,20}\"|\[\s{0,20}[{\]])", re.MULTILINE)


class ReportedFailure(NamedTuple):
    name: str
    path: str = ""
    line: int = 0


class JsonReport(NamedTuple):
    passed: int | None
    failed: tuple[ReportedFailure, ...]


def json_report(output: str) -> JsonReport | None:
    """Blocking."""
    start = _START.search(output)
    if start is None or len(output) > MOST_JSON:
        return None
    text = output[start.start() :]
    end = max(text.rfind("}"), text.rfind("]")) + 1
    try:
        values: list[object] = [msgspec.json.decode(text[:end])]
    except (msgspec.DecodeError, RecursionError):
        values = [list(_objects(text.splitlines()[:MOST_LINES]))]
    for value in values:
        for read in (_tests, _mocha, _rspec, _diagnostics, _problems):
            if (found := read(value)) is not None:
                return found
    return None


def _objects(lines: Iterable[str]) -> Iterator[object]:
    for line in lines:
        if line.startswith("{") and line.endswith("}"):
            try:
                yield msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                continue


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _line(value: object) -> int:
    return _count(value) or 0


def _tests(value: object) -> JsonReport | None:
    """jest and vitest: a failed file without tests counts as one failure."""
    report = _table(value)
    if "numFailedTests" not in report:
        return None
    failed = []
    for file in map(_table, _list(report.get("testResults"))):
        path, tests = _text(file.get("name")), [*map(_table, _list(file.get("assertionResults")))]
        wrong = [test for test in tests if test.get("status") == "failed"]
        failed += [
            ReportedFailure(
                _text(test.get("fullName")), path, _line(_table(test.get("location")).get("line"))
            )
            for test in wrong
        ]
        if file.get("status") == "failed" and not wrong:
            failed.append(ReportedFailure(f"{path} failed to run", path))
    return JsonReport(_count(report.get("numPassedTests")), tuple(failed))


def _mocha(value: object) -> JsonReport | None:
    stats = _table(_table(value).get("stats"))
    if "passes" not in stats:
        return None
    failures = map(_table, _list(_table(value).get("failures")))
    failed = tuple(ReportedFailure(_text(one.get("fullTitle")), _text(one.get("file"))) for one in failures)
    return JsonReport(_count(stats["passes"]), failed)


def _rspec(value: object) -> JsonReport | None:
    report = _table(value)
    if "examples" not in report or "summary_line" not in report:
        return None
    examples = [*map(_table, _list(report.get("examples")))]
    outside = _count(_table(report.get("summary")).get("errors_outside_of_examples_count")) or 0
    failed = [
        ReportedFailure(
            _text(one.get("full_description")), _text(one.get("file_path")), _line(one.get("line_number"))
        )
        for one in examples
        if one.get("status") == "failed"
    ]
    failed += [ReportedFailure("an error outside of examples")] * min(outside, MOST_LINES)
    return JsonReport(sum(one.get("status") == "passed" for one in examples), tuple(failed))


def _diagnostics(value: object) -> JsonReport | None:
    report = _table(value)
    if "generalDiagnostics" in report:
        return _of_problems(report["generalDiagnostics"], _pyright)
    if "Issues" in report and "Report" in report:
        return _of_problems(report["Issues"], _golangci)
    if "messages" in report and "statistics" in report:
        return _of_problems(report["messages"], _problem)
    files = report.get("files")
    if "totals" in report and isinstance(files, dict | list):
        failed = [
            ReportedFailure(f"{path} {_text(one.get('message'))}", path, _line(one.get("line")))
            for path, file in _table(files).items()
            for one in map(_table, _list(_table(file).get("messages")))
        ]
        failed += [ReportedFailure(_text(one)) for one in _list(report.get("errors"))]
        return JsonReport(None, tuple(failed))
    return None


def _problems(value: object) -> JsonReport | None:
    if not (items := _list(value)) or not any(_KEYS & _table(one).keys() for one in items):
        return None
    if "filePath" in _table(items[0]):
        return _of_problems(
            [
                {**_table(one), "path": _table(file).get("filePath")}
                for file in items
                for one in _list(_table(file).get("messages"))
                if _table(one).get("severity") == 2
            ],
            _problem,
        )
    return _of_problems(items, _problem)


_KEYS = {"filePath", "message-id", "messageId", "noqa_row", "severity"}


def _of_problems(items: object, read: Callable[[Mapping[str, object]], ReportedFailure | None]) -> JsonReport:
    found = (read(_table(one)) for one in _list(items))
    return JsonReport(None, tuple(one for one in found if one is not None))


def _pyright(item: Mapping[str, object]) -> ReportedFailure | None:
    if item.get("severity") != "error":
        return None
    path, start = _text(item.get("file")), _table(_table(item.get("range")).get("start"))
    return ReportedFailure(f"{path} {_text(item.get('message'))}", path, _line(start.get("line")) + 1)


def _golangci(item: Mapping[str, object]) -> ReportedFailure | None:
    place = _table(item.get("Pos"))
    path = _text(place.get("Filename"))
    return ReportedFailure(f"{path} {_text(item.get('Text'))}", path, _line(place.get("Line")))


def _first(item: Mapping[str, object], *keys: str) -> str:
    return next((_text(item[key]) for key in keys if item.get(key)), "")


def _problem(item: Mapping[str, object]) -> ReportedFailure | None:
    if item.get("severity") in ("note", "information"):
        return None
    place = _table(item.get("location"))
    begin = _table(_table(place.get("positions")).get("begin")).get("line")
    path = _first(item, "path", "filename", "file") or _text(place.get("path"))
    code = _first(item, "ruleId", "message-id", "messageId", "code", "check_name")
    begin = item.get("line") or place.get("row") or _table(place.get("lines")).get("begin") or begin
    line, message = _line(begin), _first(item, "message", "description")
    words = " ".join(filter(None, (path, code, message)))
    return ReportedFailure(words, path, line) if path else None


#: Characters, depth, elements; the excess is ignored.
MOST_REPORT, MOST_DEEP, MOST_ELEMENTS = 4_000_000, 64, 250_000
MOST_TESTS = 10_000_000


class _Refused(Exception):
    """A construct that no valid report needs."""


class _Reader:
    """Sums the counts of the outermost suites that state them, and collects failed cases."""

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
        parser.EndElementHandler = lambda _: self._open.pop()
        self._parser = parser

    def read(self, report: str) -> None:
        """Raises `expat.ExpatError`, and `_Refused` above the limits."""
        if len(report) > MOST_REPORT:
            raise _Refused
        self._parser.Parse(
            report.encode("utf-8", "replace"), True
        )  # in one call: expat rescans long tags between chunks

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


_NAMES = ("tests", "failures", "errors", "skipped")


def outcome_of_report(report: str) -> Outcome:
    """Returns the counts of the suites, and the failed cases; empty for other text.

    A DTD, an entity, or an excessive size makes it invalid; the output is then used instead.
    """
    reader = _Reader()
    try:
        reader.read(report)
    except (expat.ExpatError, _Refused):
        return Outcome()
    failed = max(reader.failed, len(reader.failures))  # node:test has cases outside suites
    return Outcome(reader.passed, failed, tuple(reader.failures)) if reader.suites else Outcome()
