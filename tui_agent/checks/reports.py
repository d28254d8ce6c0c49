"""Reports of test runners and linters: JSON and JUnit XML.

Both are parsed with limits because the project controls their content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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
    value = _decoded(text[: max(text.rfind("}"), text.rfind("]")) + 1])
    if value is None:
        lines = (
            line for line in text.splitlines()[:MOST_LINES] if line.startswith("{") and line.endswith("}")
        )
        value = [one for one in map(_decoded, lines) if one is not None]
    return _of_runner(_table(value)) or _of_linter(value)


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _tables(value: object) -> list[Mapping[str, object]]:
    return [*map(_table, _list(value))]


def _at(value: object, *keys: str) -> object:
    for key in keys:
        value = _table(value).get(key)
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _line(value: object) -> int:
    return _count(value) or 0


def _of_runner(report: Mapping[str, object]) -> JsonReport | None:
    failed: list[ReportedFailure] = []
    if "numFailedTests" in report:  # jest and vitest: a failed file without tests counts as one failure
        for file in _tables(report.get("testResults")):
            path, tests = _text(file.get("name")), _tables(file.get("assertionResults"))
            wrong = [test for test in tests if test.get("status") == "failed"]
            failed += [
                ReportedFailure(_text(test.get("fullName")), path, _line(_at(test, "location", "line")))
                for test in wrong
            ]
            if file.get("status") == "failed" and not wrong:
                failed.append(ReportedFailure(f"{path} failed to run", path))
        return JsonReport(_count(report.get("numPassedTests")), tuple(failed))
    stats = _table(report.get("stats"))
    if "passes" in stats:  # mocha
        failed += [
            ReportedFailure(_text(one.get("fullTitle")), _text(one.get("file")))
            for one in _tables(report.get("failures"))
        ]
        return JsonReport(_count(stats["passes"]), tuple(failed))
    if "examples" in report and "summary_line" in report:  # rspec
        examples = _tables(report["examples"])
        failed += [
            ReportedFailure(
                _text(one.get("full_description")), _text(one.get("file_path")), _line(one.get("line_number"))
            )
            for one in examples
            if one.get("status") == "failed"
        ]
        outside = _line(_at(report, "summary", "errors_outside_of_examples_count"))
        failed += [ReportedFailure("an error outside of examples")] * min(outside, MOST_LINES)
        return JsonReport(sum(one.get("status") == "passed" for one in examples), tuple(failed))
    return None


def _of_linter(value: object) -> JsonReport | None:
    report, items = _table(value), _tables(value)
    if "generalDiagnostics" in report:  # Pyright, which counts lines from 0
        failed = [
            _complaint(_text(one.get("file")), one, "message", _line(_at(one, "range", "start", "line")) + 1)
            for one in _tables(report["generalDiagnostics"])
            if one.get("severity") == "error"
        ]
    elif "Issues" in report and "Report" in report:  # golangci-lint
        failed = [
            _complaint(_text(_at(one, "Pos", "Filename")), one, "Text", _line(_at(one, "Pos", "Line")))
            for one in _tables(report["Issues"])
        ]
    elif "messages" in report and "statistics" in report:
        failed = _problems(_tables(report["messages"]))
    elif "totals" in report and isinstance(report.get("files"), dict | list):  # PHPStan
        failed = [
            _complaint(path, one, "message", _line(one.get("line")))
            for path, file in _table(report["files"]).items()
            for one in _tables(_at(file, "messages"))
        ]
        failed += [ReportedFailure(_text(one)) for one in _list(report.get("errors"))]
    elif not any(_KEYS & one.keys() for one in items):
        return None
    elif "filePath" in items[0]:  # ESLint
        failed = _problems(
            {**one, "path": file.get("filePath")}
            for file in items
            for one in _tables(file.get("messages"))
            if one.get("severity") == 2
        )
    else:
        failed = _problems(items)
    return JsonReport(None, tuple(failed))


_KEYS = {"filePath", "message-id", "messageId", "noqa_row", "severity"}


def _complaint(path: str, item: Mapping[str, object], words: str, line: int) -> ReportedFailure:
    return ReportedFailure(f"{path} {_text(item.get(words))}", path, line)


def _first(item: Mapping[str, object], *keys: str) -> str:
    return next((_text(item[key]) for key in keys if item.get(key)), "")


def _problems(items: Iterable[Mapping[str, object]]) -> list[ReportedFailure]:
    """Leaves out notes, and items without a path."""
    found = []
    for item in items:
        place = _table(item.get("location"))
        path = _first(item, "path", "filename", "file") or _text(place.get("path"))
        if not path or item.get("severity") in ("note", "information"):
            continue
        code = _first(item, "ruleId", "message-id", "messageId", "code", "check_name")
        begin = item.get("line") or place.get("row") or _at(place, "lines", "begin")
        line = _line(begin or _at(place, "positions", "begin", "line"))
        words = " ".join(filter(None, (path, code, _first(item, "message", "description"))))
        found.append(ReportedFailure(words, path, line))
    return found


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

    A DTD, an entity, or an excessive size makes it invalid.
    """
    reader = _Reader()
    try:
        reader.read(report)
    except (expat.ExpatError, _Refused):
        return Outcome()
    failed = max(reader.failed, len(reader.failures))  # node:test has cases outside suites
    return Outcome(reader.passed, failed, tuple(reader.failures)) if reader.suites else Outcome()
