"""Output of known runners and linters: counts of tests, names of failures, and locations in sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from tui_agent.checks.formats import LINTERS, LONGEST_NAME, MOST_FAILURES, RUNNERS, SPACES, Outcome, names_of
from tui_agent.checks.reports import json_report
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number
from tui_agent.store.commands import Place

#: Characters, split between beginning and end.
MOST_READ = 1 << 20
#: pytest's, relative to the workspace; discarded in a view.
REPORT = ".tui-agent-report.xml"
#: pytest writes it and continues after failures, whatever the project's settings.
REPORTING = {"PYTEST_ADDOPTS": f"--junitxml={REPORT} --maxfail=0"}

_ANSI = late(r"\x1b(?:\[[0-9;:?]{0,60}[@-~]|\][^\n\x07\x1b]{0,2000}(?:\x07|\x1b\\)?|[()]\w)")
_LINE_START = late(r"\x1b\[[01]?G")
_GO_PACKAGE = late(
    r"^(?:[ \t]{0,80}--- (?P<how>PASS|FAIL): (?P<test>\S{1,300})"
    r"|(?P<end>ok|FAIL)[ \t]{1,8}(?P<package>\S{1,300})(?:\t[\d.]{1,20}s|\t\(cached\)"
    r"|[ \t](?P<built>\[(?:build|setup) failed\])))",
    re.MULTILINE,
)
_GO_JSON = late(
    r'"Action":"(pass|fail)","Package":"([^"\n]{1,300})"(?:,"Test":"([^"\n]{1,300})")?', re.MULTILINE
)
_GO_UNBUILT = late(
    r"^(?:\{[^\n]{0,300}\"Output\":\")?FAIL(?:[ \t]|\\t){1,8}(\S{1,300}) \[(?:build|setup) failed\]",
    re.MULTILINE,
)
_PROVED = late(r"^Files=\d{1,9}, Tests=(\d{1,9}),", re.MULTILINE)
_PROVED_FILE = late(
    r"^(\S{1,300})[ \t]{1,80}\(Wstat: [^\n]{0,80}Tests: \d{1,9} Failed: (\d{1,9})\)", re.MULTILINE
)
_PROVED_TEST = late(
    r"^# {2,12}Failed test (?:'([^\n]{1,300})'\n# {2,12})?(?:in|at) (\S{1,300}) line \d", re.MULTILINE
)
_TAP = late(
    r"^(?P<inside>[ \t]{1,80})?(?P<no>not )?ok\b[ \t]?\d{0,9}[ \t]{0,4}-?[ \t]{0,4}(?P<name>[^\n]{0,300})",
    re.MULTILINE,
)
#: A test's time, which differs between runs, and the beginning of its subtests.
_TAP_TIME = late(r"[ \t]{0,80}(?:# time=[\d.]{1,20}m?s)?(?:[ \t]{1,80}\{)?[ \t]{0,80}$")
_TAP_BRACE = late(r"^(?:not )?ok [^\n]{0,300}\{$", re.MULTILINE)
_TAP_PLAN = late(r"^(?:TAP version \d{1,3}|1\.\.\d{1,9}\b)", re.MULTILINE)
_TAP_DIRECTIVE = late(r"#[ \t]{0,4}(?:skip|todo)", re.IGNORECASE)
_WRONG = late(
    r"^[^\n]{0,200}?(?:[Ee]rror|ERROR|FAIL|FAILED|[Ff]ailed|[Pp]anic|[Ff]atal|Exception|[Aa]ssertion|not found"
    r"|No such file or directory)\b[^\n]{0,300}",
    re.MULTILINE,
)
#: Addresses, line numbers and times differ between equal runs.
_VARYING = late(
    r"0x[0-9a-fA-F]{1,40}|(?<=:)\d{1,20}(?=[:,)\s]|$)|(?<=line )\d{1,20}"
    r"|(?<![\d.])[\d.]{1,20}(?= ?(?:[mnµu]?s|sec|seconds?|min|minutes?)\b)"
)


def outcome_of(output: str) -> Outcome:
    """Returns the counts of the runner's own summary; empty for an unknown runner."""
    text = _plain(output)
    for read in (*(one.read for one in RUNNERS), _go, _prove, _json, *(one.read for one in LINTERS), _tap):
        if (found := read(text)) is not None:
            return found
    return Outcome()


def wrong_lines(output: str) -> tuple[str, ...]:
    """Returns error lines without positions and times, to compare runs of an unknown program."""
    lines = (match[0].strip() for match in _WRONG.finditer(_plain(output)))
    return tuple(
        _VARYING.sub("#", line)[:LONGEST_NAME] for line, _ in zip(lines, range(MOST_FAILURES), strict=False)
    )


def _ends(output: str) -> str:
    return output if len(output) <= 2 * MOST_READ else f"{output[:MOST_READ]}\n{output[-MOST_READ:]}"


def _plain(output: str) -> str:
    output = _ANSI.sub("", _LINE_START.sub("\r", _ends(output))).replace("\r\n", "\n")
    if "\r" in output:
        output = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in output.split("\n"))
    return output


def _go(text: str) -> Outcome | None:
    """Go prints the package after its tests. A subtest counts as its parent."""
    if '"Action":"' in text and (found := _GO_JSON.findall(text)):
        tests = [(how, package, test) for how, package, test in found if test and "/" not in test]
        wrong = [f"{package} {test}".strip() for how, package, test in found if how == "fail" and test]
        built = [f"{name} [build failed]" for name in dict.fromkeys(_GO_UNBUILT.findall(text))]
        wrong = [*_innermost(wrong), *built]
        return Outcome(
            sum(how == "pass" for how, *_ in tests),
            sum(how == "fail" for how, *_ in tests) + len(built),
            tuple(wrong[:MOST_FAILURES]),
        )
    passed = failed = 0
    named: list[str] = []
    waiting: list[str] = []
    any_line = False
    for match in _GO_PACKAGE.finditer(text):
        any_line = True
        if test := match["test"]:
            top = "/" not in test
            passed += top and match["how"] == "PASS"
            if match["how"] == "FAIL":
                failed += top
                waiting.append(test)
            continue
        package = match["package"]
        if match["built"] or (match["end"] == "FAIL" and not waiting):
            failed += 1
            waiting.append("[build failed]" if match["built"] else "[failed]")
        named += [f"{package} {test}" for test in _innermost(waiting)]
        waiting = []
    if not any_line:
        return None
    verbose = "--- PASS: " in text
    return Outcome(passed if verbose else None, failed, tuple([*named, *waiting][:MOST_FAILURES]))


def _innermost(tests: Sequence[str]) -> list[str]:
    around = {test[:at] for test in tests for at, sign in enumerate(test) if sign == "/"}
    return [test for test in tests if test not in around]


def _prove(text: str) -> Outcome | None:
    total = _PROVED.search(text)
    if total is None:
        return None
    files = [(match[1], whole_number(match[2])) for match in _PROVED_FILE.finditer(text)]
    died = [name for name, wrong in files if not wrong]
    wrong = sum(wrong for _, wrong in files)
    names = [*names_of(_PROVED_TEST.finditer(text)), *died]
    return Outcome(max(0, whole_number(total[1]) - wrong), wrong + len(died), tuple(names[:MOST_FAILURES]))


def _json(text: str) -> Outcome | None:
    found = json_report(text)
    if found is None:
        return None
    names = tuple(" ".join(one.name.split())[:LONGEST_NAME] for one in found.failed[:MOST_FAILURES])
    return Outcome(found.passed, len(found.failed), names)


def _tap(text: str) -> Outcome | None:
    """Subtests in braces count, instead of the test around them."""
    passed, names = 0, []
    in_braces = bool(_TAP_BRACE.search(text))
    for match in _TAP.finditer(text):
        name = _TAP_TIME.sub("", match["name"])
        if _TAP_DIRECTIVE.search(name) or (
            match["name"].rstrip().endswith("{") if in_braces else match["inside"]
        ):
            continue
        if match["no"]:
            names.append(SPACES.sub(" ", name).strip() or "not ok")
        else:
            passed += 1
    if not names and not (passed and _TAP_PLAN.search(text)):
        return None
    return Outcome(passed, len(names), tuple(names[:MOST_FAILURES]))


def named(failures: Sequence[str], most: int) -> Iterator[str]:
    """Yields the first distinct failures, and the number of others."""
    different = list(dict.fromkeys(failures))
    yield from different[:most]
    if len(different) > most:
        yield f"and {len(different) - most:,} more"


#: Locations, and paths looked up.
MOST_PLACES, MOST_LOOKED_FOR = 50, 2_000
_CSI = late(r"\x1b\[[0-9;:?]{0,60}[@-~]")
#: Path and line as tools write them; each path is scanned once: `a.py:3`, `a.ts(3,5)`, `a.java:[3,5]`,
#: `"a.py", line 3`, `a.php on line 3`, `a.cs:line 3`, `a_test.dart 3:5`, `a.js: Unexpected token (3:5)`.
_LOCATED = late(
    r"(?<![\w./@+~\\-])(?P<path>[\w./@+~-]{1,400}|(?<=\")[^\"\n:]{1,400}(?=\"))"
    r"(?:"
    r":(?:line )?(?P<colon>\d{1,9})(?!\d)"
    r"|[\"']?,? (?:on |at )?lines? (?P<word>\d{1,9})"
    r"|: (?:(?P<shell>\d{1,9}):|line (?P<named>\d{1,9})[:,])"
    r"|\((?P<round>\d{1,9})(?:,\d{1,9})?\)"
    r"|:\[(?P<square>\d{1,9}),\d{1,9}\]"
    r"|[ \t]{1,80}(?P<apart>\d{1,9}):\d{1,9}(?!\d)"
    r"|: [^\n:()]{1,80} \((?P<behind>\d{1,9}):\d{1,9}\)"
    r")"
)
#: The method before a Java, Kotlin or Scala file; its package gives the folders.
_METHOD = late(r"(?<![\w.$])(?P<package>(?:[a-z_]\w{0,80}\.){1,20})[\w$.<>]{1,200}\($")
_ALONE = late(r"^(?P<path>[\w./@+~-]{1,400})$")
_POSITION = late(r"^[ \t]{1,8}(?P<line>\d{1,9}):\d{1,9}[ \t]{1,8}(?:error|warning|✖|⚠|✘)")


def places(output: str, find: Callable[[str], str]) -> list[Place]:
    """Returns distinct locations in the project's files, in order.

    `find` maps a path in the output to a workspace-relative path, or "".
    """
    looked_for = 0

    @lru_cache(maxsize=MOST_LOOKED_FOR)
    def file_of(path: str) -> str:
        nonlocal looked_for
        looked_for += 1
        return find(path) if looked_for <= MOST_LOOKED_FOR else ""

    found: dict[Place, None] = {}
    for path, line in _located(output):
        if file := file_of(path):
            found[Place(file, line)] = None
            if len(found) == MOST_PLACES:
                break
    return list(found)


def _located(output: str) -> Iterator[tuple[str, int]]:
    if report := json_report(output):
        yield from ((_cleaned(one.path), one.line) for one in report.failed if one.path and one.line)
    above = ""
    for text in _CSI.sub("", _ends(output)).split("\n"):
        text = text.rstrip()
        if above and (position := _POSITION.match(text)):
            yield above, whole_number(position["line"])
            continue
        if alone := _ALONE.match(text):
            above = _cleaned(alone["path"])
        elif not text:
            above = ""
        for match in _LOCATED.finditer(text):
            line = next(match[key] for key in _LINES if match[key])
            start = match.start()
            package = (
                _METHOD.search(text[max(0, start - 300) : start]) if text[start - 1 : start] == "(" else None
            )
            path = _cleaned(match["path"])
            if package and "/" not in path:
                path = f"{package['package'].replace('.', '/')}{path}"
            if path:
                yield path, whole_number(line)


_SAID = late(
    r"^[ \t>|]*(?:E +)?(?P<said>(?:assert\b|[Ee]xpected\b|expect\(|[\w.:]{0,80}(?:Error|Exception|Failure|Failed)\b"
    r"|[Aa]ssertion\b|panic:|error(?:\[\w+\])?:).{0,400})"
)
_PYTESTS = late(r"^E +\S")
_BEFORE, _BEHIND = 12, 6
#: Characters of name and assertion; places that get one.
_LONGEST, _MOST_SAID = 240, 8


def said_at(output: str, places: Sequence[Place], names: Sequence[str]) -> tuple[str, ...]:
    """Returns, for each place, the name of its test, if one of `names`, and the assertion printed beside it:
    `test_a: assert 1 == 2`, or "".
    """
    lines = _CSI.sub("", output[-MOST_READ:]).split("\n")
    short = {
        re.split(r"::|[\s(/]", name.rstrip(")"))[-1] if "::" in name else name.split(" ")[0] for name in names
    }
    return tuple(_said(lines, place, short) for place in places[:_MOST_SAID])


def _said(lines: Sequence[str], place: Place, names: Collection[str]) -> str:
    file = place.path.rsplit("/", 1)[-1]
    there = re.compile(rf"{re.escape(file)}\W{{1,3}}(?:line )?{place.line}\b(?P<rest>.*)")
    hit = ((at, there.search(line)) for at, line in enumerate(lines) if file in line)
    at, found = next((one for one in hit if one[1]), (-1, None))
    if found is None:
        return ""
    above, below = lines[max(0, at - _BEFORE) : at][::-1], lines[at + 1 : at + 1 + _BEHIND]
    near = [
        *filter(_PYTESTS.match, above),
        *takewhile(str.strip, below),
        *takewhile(str.strip, above),
    ]
    rest = found["rest"].lstrip(" :,()")
    hits = (hit["said"] for line in near if (hit := _SAID.match(line)))
    said = rest if " " in rest and not rest.startswith("in ") else next(hits, "")
    around = " ".join(lines[max(0, at - 40) : at + _BEHIND])
    named = {name: around.rfind(name) for name in names if name}
    name = max(named, key=lambda one: named[one], default="")
    words = [name if name and named[name] >= 0 else "", said.strip()]
    return ": ".join(word for word in words if word)[:_LONGEST]


_STEPS = late(r"^(?:\.{1,2}/){1,100}")
_LINES = ("colon", "word", "shell", "named", "round", "square", "apart", "behind")


def _cleaned(path: str) -> str:
    path = f"/{path[5:].lstrip('/')}" if path.startswith("file:/") else path
    path = re.sub(r"^/{2,10}", "/", path)
    return _STEPS.sub("", path)
