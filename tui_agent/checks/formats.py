"""Summaries and failures of known runners and linters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number

#: Names, and characters of one.
MOST_FAILURES, LONGEST_NAME = 500, 300


class Outcome(NamedTuple):
    """As stated by a runner.

    passed, failed: counts; None if not stated. failures: names in order, stable between runs, without
    line numbers, repeated for each failure.
    """

    passed: int | None = None
    failed: int | None = None
    failures: tuple[str, ...] = ()


#: A count, and seconds; longer numbers are neither.
_PIECES = {"<N>": r"(?<![\d.])\d{1,9}(?!\d)", "<S>": r"(?<![\d.])[\d.]{1,12}(?![\d.])"}
#: Number and word of `3 failed, 1 skipped`, in any order, between other words.
_ITEM = late(rf"({_PIECES['<N>']})[ \t]{{1,20}}(?:tests?[ \t]{{1,20}})?([a-z]{{2,20}})", re.IGNORECASE)
_FIELD = late(rf"((?:(?:un)?expected[ _]?)?[A-Za-z]{{3,20}})[:=][ \t]{{0,20}}({_PIECES['<N>']})")
_COUNTED: Mapping[str, str] = {
    word: kind
    for kind, words in {
        "passed": "passed passing pass passes ok successes succeeded",
        "failed": "failed failing fail failure failures error errors cancelled bad undefined ambiguous",
        "left": "skipped skip skips pending incomplete excluded omissions notrun inconclusive",
        "total": "total tests test run runs examples example specs spec completed",
    }.items()
    for word in words.split()
} | {"expectedfailures": "left", "unexpectedsuccesses": "failed"}
_PATH = r"([\w./@+-]{1,400})"
_LINE = late(r" \(line \d{1,9}\)$")
SPACES = late(r"\s{1,400}")


class RunnerFormat:
    """- summary: expression with a group `counts` of numbers and words, or groups `passed`, `failed`, `left`
      (omitted) or `total`. Each match is one run.
    - adds: sum the runs; by default the last one counts.
    - failures: expressions whose joined groups are the name, or whose group `list` has one name per line.
    - uncounted: the same for failures missing from the counts, such as unreadable files.
    - sign: text required in the output.
    - after: text that precedes the failures.
    - each: every match of `summary` is one failure.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        *failures: str,
        uncounted: str = "",
        adds: bool = False,
        sign: str = "",
        after: str = "",
        each: bool = False,
    ) -> None:
        self.name = name
        self._summary, *self._failures = (late(_marked(one), re.MULTILINE) for one in (summary, *failures))
        self._uncounted = late(_marked(uncounted), re.MULTILINE) if uncounted else None
        self._adds, self._sign, self._after, self._each = adds, sign, after, each

    def read(self, output: str) -> Outcome | None:
        """Returns None for another runner's output."""
        if self._sign and self._sign not in output:
            return None
        runs = list(self._summary.finditer(output))
        if not runs:
            return None
        if self._each:
            runs = list({run[0]: run for run in runs}.values())  # some runners print everything twice
            return Outcome(None, len(runs), names_of(runs))
        counted = [_numbers(run) for run in (runs if self._adds else runs[-1:])]
        passed = [one[0] for one in counted if one[0] is not None]
        failed = sum(one[1] for one in counted)
        begin = output.find(self._after)
        names = names_of(match for pattern in self._failures for match in pattern.finditer(output, begin))
        if len(names) > failed:  # some print a failure at once and again at the end
            names = tuple(dict.fromkeys(names))
        more = dict.fromkeys(names_of(self._uncounted.finditer(output)) if self._uncounted else ())
        names = (*names, *more)[:MOST_FAILURES]
        return Outcome(sum(passed) if passed else None, failed + len(more), names)


def _marked(pattern: str) -> str:
    for mark, piece in _PIECES.items():
        pattern = pattern.replace(mark, piece)
    return pattern


def _numbers(run: re.Match[str]) -> tuple[int | None, int]:
    groups = run.groupdict()
    numbers: dict[str, int] = {}
    said = groups.pop("counts", None) or ""
    pairs: Iterable[tuple[str, str]] = [
        *((word, number) for number, word in _ITEM.findall(said)),
        *_FIELD.findall(said),
        *((name, number) for name, number in groups.items() if number),
    ]
    for word, number in pairs:
        kind = _COUNTED.get(word.lower().replace(" ", "").replace("_", ""))
        if kind == "total":
            numbers[kind] = max(numbers.get(kind, 0), whole_number(number))
        elif kind or word == "left":
            numbers[kind or word] = numbers.get(kind or word, 0) + whole_number(number)
    failed = numbers.get("failed", 0)
    if "passed" in numbers:
        return numbers["passed"], failed
    if "total" in numbers:
        return max(0, numbers["total"] - failed - numbers.get("left", 0)), failed
    return (0 if failed or said else None) if "passed" in groups or said else None, failed


def names_of(found: Iterable[re.Match[str]]) -> tuple[str, ...]:
    """Returns at most `MOST_FAILURES` names, with repetitions."""
    names: list[str] = []
    for match in found:
        listed = (
            match["list"].splitlines()
            if "list" in match.re.groupindex
            else [" ".join(filter(None, match.groups()))]
        )
        cleaned = (_LINE.sub("", SPACES.sub(" ", name).strip()) for name in listed)
        names += [name[:LONGEST_NAME] for name in cleaned if name]
        if len(names) >= MOST_FAILURES:
            break
    return tuple(names[:MOST_FAILURES])


_PYTEST_FAILURE = (
    r"^(?:FAILED|ERROR|(?:\[[^\]\n]{0,200}\] )?(?:\([^)\n]{0,200}\) )?SUBFAIL(?:ED)?(?:[(\[][^\n]{0,200}?[)\]])?) "
    r"([^\s:\[][^\n\[]{0,400}?(?:\[[^\n]{0,300}?\](?= - |$))?)(?: - [^\n]*)?$"
)
#: The first matching summary counts. Every expression is anchored at a line start, and none repeats a class
#: that matches across lines, so reading takes linear time.
RUNNERS: Sequence[RunnerFormat] = (
    RunnerFormat(
        "pytest",
        r"^(?:={1,200} )?(?P<counts><N> [a-z]{1,20}(?:, <N> (?:subtests )?[a-z]{1,20}){0,8}|no tests ran) in <S>s\b",
        _PYTEST_FAILURE,
    ),
    RunnerFormat(
        "unittest",
        r"^Ran (?P<total><N>) tests? in <S>s(?: using <N> process(?:es)?)?\n\n(?:OK|FAILED|NO TESTS RAN)"
        r"(?: \((?P<counts>[^)\n]{0,200})\))?",
        r"^(?:FAIL|ERROR): ([^\n]{1,300})$",
        r"^(?:Failure|Error) in (?!test )([^\n]{1,300})$",  # green
    ),
    RunnerFormat(
        "zope.testrunner",
        r"^(?:  Ran|Total:) (?P<total><N>) tests?(?: with|,) (?P<counts><N> failures?, <N> errors?[^\n]{0,100})",
        r"^(?:Failure|Error) in test ([^\n]{1,300})$",
        r"^Module: (\S{1,300})$",
    ),
    RunnerFormat(
        "robot",
        r"^(?P<counts><N> tests?, <N> passed, <N> failed(?:, <N> skipped)?)$",
        r"^(\S[^\n|]{0,200}?)[ \t]{1,200}\| FAIL \|\n(?!\d{1,9} tests?, )",
        r"^FAIL: ([^\n]{1,300})$",
    ),
    RunnerFormat(
        "behave",
        r"^(?P<passed><N>) scenarios? passed, (?P<failed><N>) failed(?P<counts>(?:, <N> [a-z]{1,20}){0,6})",
        r"^[ \t]{1,4}(\S{1,300}):<N>[ \t]{2}([^\n]{1,300})$",
        after="ing scenarios:",
    ),
    RunnerFormat(
        "cucumber",
        r"^<N> scenarios? \((?P<counts>[^)\n]{1,200})\)$",
        r"^<N>\) (Scenario[^\n#]{1,300}) # ([^\s:]{1,300}):<N>$",
        r"^cucumber (\S{1,300}):<N> # ([^\n]{1,300})$",
    ),
    RunnerFormat("pytest -qq", _PYTEST_FAILURE, sign=".py::", each=True),
    RunnerFormat(
        "cargo nextest",
        r"^[ \t]{0,20}Summary \[[^\]\n]{1,30}\][ \t]{1,20}(?:<N>/)?<N> tests? run: (?P<counts>[^\n]{1,200})",
        r"^[ \t]{0,20}(?:TRY \d{1,3} )?(?!PASS|SKIP|SLOW|LEAK )[A-Z-]{3,12}[ \t]{1,20}\[[^\]\n]{1,30}\][ \t]{1,20}"
        r"(?:\([^)\n]{1,30}\) )?([^\n]{1,300})$",
        adds=True,
        after=" Summary [",
    ),
    RunnerFormat(
        "cargo",
        r"^test result: \w{1,20}\. (?P<passed><N>) passed; (?P<failed><N>) failed; <N> ignored;",
        r"^failures:\n(?P<list>(?:    \S[^\n]{0,400}\n){1,500})",
        adds=True,
    ),
    RunnerFormat(
        "vitest",
        r"^[ \t]{0,20}Tests[ \t]{1,20}(?:no tests|(?P<counts><N> (?:failed|passed|skipped|todo)[^\n(]{0,100}) \(<N>\))"
        r"(?:\n[ \t]{0,20}Errors[ \t]{1,20}(?P<errors><N>) errors?)?",
        r"^[ \t]{0,20}FAIL[ \t]{1,20}([^\n>]{1,200} > [^\n]{1,300})$",
        uncounted=r"^[ \t]{0,20}FAIL[ \t]{1,20}([^\n>\[]{1,300}) \[ [^\n\]]{1,300} \]$",
        adds=True,
    ),
    RunnerFormat(
        "jest",
        r"^[ \t]{0,20}Tests:[ \t]{1,20}(?P<counts>(?:<N> [a-z]{1,20}, ){0,6}<N> total)$",
        r"^  ● (?!Console$|Test suite failed to run$)([^\n]{1,300})$",
        uncounted=r"^ ?FAIL[ \t]{1,4}(\S[^\n]{0,300}?)(?: \([\d.]{1,20} m?s\))?\n"
        r"(?:[ \t]{0,4}\n)?  ● (Test suite failed to run)$",
        adds=True,
    ),
    RunnerFormat(
        "node:test",
        r"^([#ℹ]) tests <N>\n(?:\1 suites <N>\n)?\1 pass (?P<passed><N>)\n\1 fail (?P<failed><N>)"
        r"(?:\n\1 cancelled (?P<cancelled><N>))?",
        r"^[ \t]{0,80}not ok <N> -? ?(?![^\n]{0,300}# (?:SKIP|TODO))([^\n]{1,300})\n"
        r"[ \t]{1,80}---\n(?!(?:[ \t]{1,80}(?:duration_ms|type|location): [^\n]{0,300}\n){0,3}"
        r"[ \t]{1,80}failureType: 'subtestsFailed')",
        r"^not ok <N> ([^-#\n][^\n]{0,300})$",  # Mocha's format.
        r"^test at (\S{1,300}):<N>:<N>\n✖ ([^\n]{1,300}?)(?: \([\d.]{1,20}m?s\))?$",
        adds=True,
    ),
    RunnerFormat(
        "mocha",
        r"^[ \t]{0,20}(?P<counts><N> passing \([^)\n]{1,20}\)(?:\n[ \t]{0,20}<N> (?:pending|failing)){0,2})",
        r"^  <N>\) ([^\n]{1,300}?(?:\n {5,40}[^\n]{1,300}?){0,12}?):(?=\n(?:\n| {5}))",
        adds=True,
    ),
    RunnerFormat(
        "playwright",
        r"^[ \t]{1,4}(?P<counts>"
        r"(?:<N> (?:failed|flaky|skipped|interrupted)\n(?:[ \t]{4,8}[^\n]{0,300}\n){0,100}[ \t]{1,4}){0,4}"
        r"<N> passed \([^)\n]{1,20}\))",
        r"^[ \t]{1,4}<N>\) (\[[^\]\n]{1,60}\] › )?([^\s:]{1,300}):\d{1,9}:\d{1,9}( › [^\n]{1,300}?)[ ─]{0,200}$",
        sign=" › ",
    ),
    RunnerFormat(
        "phpunit",
        r"^(?:OK \((?P<passed><N>) tests?, |Tests: (?P<total><N>), (?=Assertions)(?P<counts>[^\n]{1,200}))",
        r"^There (?:was|were) <N> (?:risky|incomplete|skipped) [^\n]{1,30}:\n"
        r"(?:(?!--$|There w|[A-Z]{2,10}!$|OK|Tests: )[^\n]{0,1000}\n){0,5000}|^<N>\) (\S{1,200}::[^\n]{1,300})$",
        r"^ ✘ ([^\n]{1,300})$",
    ),
    RunnerFormat(
        "rspec",
        r"^(?P<counts><N> examples?, <N> failures?[^\n]{0,100})$",
        r"^rspec \S{1,300}[ \t]{1,20}# ([^\n]{1,300})$",
        adds=True,
    ),
    RunnerFormat(
        "minitest",
        r"^(?P<counts><N> (?:runs|tests), <N> assertions, [^\n]{1,200})$",
        r"^(?:[ \t]{1,4}<N>\) )?(?:Failure|Error):\n([^\n]{1,400}?)(?: \[[^\]\n]{1,300}\])?:$",
        r"^(?:Failure|Error): (test[^\n]{1,300})$",
    ),
    RunnerFormat(
        "bats",
        r"^(?P<counts><N> tests?, <N> failures?[^\n]{0,100})$",
        r"^ ✗ ([^\n]{1,300})$",
        sign="\n ✗ ",
        adds=True,
    ),
    RunnerFormat(
        "mix",
        r"^(?:<N> (?:doctests?|properties|property), ){0,2}(?P<counts><N> tests?, <N> failures?[^\n]{0,100})$",
        r"^[ \t]{2,4}<N>\) ([^\n]{1,300})$",
        adds=True,
    ),
    RunnerFormat(
        "ctest",
        r"^\d{1,3}% tests passed, (?P<failed><N>) tests? failed out of (?P<total><N>)",
        r"^[ \t]{1,20}<N> - (\S[^\n(]{0,300}?) \((?!Disabled\)|Skipped\))",
        adds=True,
    ),
    RunnerFormat(
        "gotestsum",
        r"^DONE (?:<N> runs, )?(?P<total><N>) tests?(?P<counts>(?:, <N> [a-z]{1,20}){0,4}) in <S>s$",
        r"^=== FAIL: (\S{1,300} \S{1,300}) \(",
    ),
    RunnerFormat(
        "googletest",
        r"^\[==========\] (?P<total><N>) tests? from[^\n]{1,60} ran\.[^\n]{0,60}\n"
        r"(?:\[  PASSED  \] (?P<passed><N>) tests?\.)?"
        r"(?:\n\[  SKIPPED \] [^\n]{0,200}){0,100}(?:\n\[  FAILED  \] (?P<failed><N>) tests?)?",
        r"^\[  FAILED  \] ([\w/]{1,200}\.[\w/]{1,200})(?:, where [^\n]{0,300})?$",
        adds=True,
    ),
    RunnerFormat(
        "catch2",
        r"^test cases:[ \t]{1,20}(?P<total><N>) \|(?P<counts>[^\n]{1,200})$",
        sign="assertions:",
    ),
    RunnerFormat(
        "maven",
        r"^(?:\[\w{1,8}\][ \t]{1,4})?"
        r"(?P<counts>Tests run: <N>, Failures: <N>, Errors: <N>(?:, (?:Skipped|Flakes): <N>){0,2})[ \t]{0,4}$",
        r"^\[ERROR\][ \t]{2,8}([\w$.]{1,200}\.[\w$]{1,200}(?:\{[^}\n]{0,200}\}\[\d{1,9}\])?)(?=[:(»]| »)",
        r"^\[ERROR\] ([\w$.]{1,300})\n\[ERROR\][ \t]{1,8}Run 1:",
        r"^[ \t]{2,8}(\w{1,200}\([\w$.]{1,200}\))(?=:)",
        adds=True,
    ),
    RunnerFormat(
        "gradle",
        r"^(?P<counts><N> tests? completed, <N> failed[^\n]{0,60})$",
        r"^(?:Gradle Test [^\n>]{1,100} > ){0,2}([^\n>]{1,200} > [^\n]{1,300}) FAILED$",
        adds=True,
    ),
    RunnerFormat(
        "jasmine",
        r"^(?P<counts><N> specs?, <N> failures?[^\n]{0,100})$",
        r"^Pending:\n(?:(?!\d{1,9} specs?, )[^\n]{0,1000}\n){0,5000}|^<N>\) ([^\n]{1,300})$",
    ),
    RunnerFormat(
        "dotnet",
        r"^(?:Failed|Passed|Skipped)![ \t]{1,4}- Failed:[ \t]{0,20}(?P<failed><N>), Passed:[ \t]{0,20}(?P<passed><N>),",
        r"^[ \t]{1,8}Failed (\S[^\n]{0,300}?) \[[^\]\n]{1,30}\]$",
        adds=True,
    ),
    RunnerFormat(
        "dotnet 9",
        r"^(?:Test summary: |[ \t]{1,4})(?P<counts>total: <N>,?\s{1,4}failed: <N>,?\s{1,4}succeeded: <N>)",
        r"^[ \t]{2,12}(\S[^\n]{0,300}?) \([\d.]{1,12}m?s\): ",
        r"^failed (\S[^\n]{0,300}?) \([^)\n]{1,30}\)$",
        adds=True,
    ),
    RunnerFormat(
        "vstest",
        r"^Total tests: (?P<total><N>)\n(?P<counts>(?:[ \t]{1,20}[A-Z][a-z]{3,10}: <N>\n?){1,4})",
        r"^[ \t]{1,8}Failed (\S[^\n]{0,300}?) \[[^\]\n]{1,30}\]$",
    ),
    RunnerFormat(
        "swift",
        r"^[ \t]{0,8}Executed (?P<total><N>) tests?, with (?:<N> tests? skipped and )?(?P<failed><N>) failures?",
        r"error: -?\[?([\w.]{1,200}[ .]\w{1,200})\]? :",
    ),
    RunnerFormat(
        "deno",
        r"^(?:ok|FAILED) \| (?P<counts><N> passed(?: \([^)\n]{1,40}\))? \| <N> failed[^\n(]{0,100})",
        r"^([^\n.]{1,300}) \.\.\. FAILED(?: \([^)\n]{1,30}\))?$",
        adds=True,
    ),
    RunnerFormat(
        "bun",
        r"^[ \t]{0,4}(?P<passed><N>) pass\n(?:[ \t]{0,4}<N> (?:skip|todo)\n){0,2}[ \t]{0,4}(?P<failed><N>) fail$",
        r"^(?:\(fail\)|✗) ([^\n]{1,300}?)(?: \[[\d.]{1,20}m?s\])?$",
        adds=True,
    ),
    RunnerFormat(
        "ava",
        r"^[ \t]{1,8}(?P<counts><N> tests? (?:failed|passed)"
        r"(?:\n[ \t]{1,8}<N> tests? (?:failed|passed|skipped|todo)){0,3})$",
        r"^[ \t]{1,8}✘ \[fail\]: ([^\n]{1,300})$",
    ),
)
_ABOVE_PLACE = (
    r"^((?:error(?:\[[\w-]{1,80}\])?:|ERROR|[A-Z]{1,5}\d{2,5}) [^\n]{1,300})\n[ \t]{1,8}--> "
    rf"{_PATH}:"
)
LINTERS: Sequence[RunnerFormat] = (
    RunnerFormat(
        "rustc",
        r"^error: could not compile [^\n]{1,200} due to (?:(?P<failed><N>) )?previous errors?",
        _ABOVE_PLACE,
        rf"^{_PATH}:\d{{1,9}}:\d{{1,9}}: (error(?:\[\w{{1,20}}\])?: [^\n]{{1,300}})",
    ),
    RunnerFormat(
        "eslint",
        r"^✖ <N> problems? \((?P<failed><N>) errors?",
        r"^[ \t]{1,8}\d{1,9}:\d{1,9}[ \t]{1,8}error([ \t][^\n]{1,300})$",
    ),
    RunnerFormat(
        "oxlint",
        r"^Found <N> warnings? and (?P<failed><N>) errors?\.$",
        r"^[ \t]{1,4}[x×] (\S[^\n]{1,300})$",
    ),
    RunnerFormat(
        "pyright",
        r"^(?P<failed><N>) errors?, <N> warnings?, <N> (?:informations?|notes?)",
        rf"^[ \t]{{0,4}}{_PATH}:\d{{1,9}}:\d{{1,9}} - (error: [^\n]{{1,300}})",
    ),
    RunnerFormat(
        "mypy, ruff, tsc",
        r"^(?:Found (?P<failed><N>) (?:errors?|diagnostics?)|[ \t]{1,4}INFO (?P<errors><N>) errors?)\b",
        rf"^{_PATH}(?::\d{{1,9}}){{1,2}}: "
        rf"(error(?:\[[\w-]{{1,80}}\]|:) [^\n]{{1,300}}|[A-Z]{{1,5}}\d{{2,5}} [^\n]{{1,300}})",
        rf"^{_PATH}:\d{{1,9}}:\d{{1,9}} - error (TS\d{{1,9}}: [^\n]{{1,300}})",
        _ABOVE_PLACE,
        rf"^{_PATH}(?::\d{{1,9}}:\d{{1,9}})? "
        r"((?:lint|assist|parse|format|organizeImports)(?:/\S{1,200})?) [^\n]{0,200}━$",
    ),
    RunnerFormat(
        "formatters",
        rf"^(?:[Ww]ould reformat:? {_PATH}|unformatted: [^\n]{{1,100}}\n[ \t]{{1,8}}--> {_PATH}:"
        rf"|{_PATH}:\d{{1,9}}:\d{{1,9}}: unformatted:|\[warn\] (?=\S{{1,400}}$){_PATH}|Diff in {_PATH}(?= at line |:))",
        each=True,
    ),
    RunnerFormat("rubocop", r"^<N> files? inspected, (?:(?P<failed><N>)|no) offenses? detected", adds=True),
    RunnerFormat("all well", r"^(?:Success: no issues found|All checks passed!)"),
    RunnerFormat(
        "tsc",
        r"^(?:(\S[^\n(]{0,400})\(\d{1,9},\d{1,9}\): )?error ([A-Z]{2,8}\d{1,9}: [^\n]{1,300})",
        each=True,
    ),
    RunnerFormat(
        "flake8, pylint",
        rf"^{_PATH}:\d{{1,9}}(?::\d{{1,9}})?: (\[?[A-Z]{{1,4}}\d{{2,5}}[\](:]?[^\n]{{1,300}})",
        each=True,
    ),
    RunnerFormat(
        "eslint by line",
        rf"^{_PATH}: line \d{{1,9}}, col \d{{1,9}}, (Error - [^\n]{{1,300}})"
        rf"|^{_PATH}:\d{{1,9}}:\d{{1,9}}: ([^\n]{{1,300}} \[Error[^\]\n]{{0,100}}\])$",
        each=True,
    ),
    RunnerFormat(
        "maven, without tests", rf"^\[ERROR\] {_PATH}:\[\d{{1,9}},\d{{1,9}}\] ([^\n]{{1,300}})", each=True
    ),
    RunnerFormat("kotlinc", rf"^e: (?:file://)?{_PATH}:\d{{1,9}}:\d{{1,9}}:? ([^\n]{{1,300}})", each=True),
    RunnerFormat(
        "javac",
        r"^(?P<failed><N>) errors?$",
        r"^(?::\w{1,80})?([\w./@+-]{1,400}\.java):\d{1,9}: (error: [^\n]{1,300})",
        sign=".java:",
    ),
    RunnerFormat("go build, go vet", r"^(?:vet: )?(\S{1,300}\.go):<N>:<N>: ([^\n]{1,300})$", each=True),
    RunnerFormat(
        "compilers",
        rf"^(?:{_PATH}:\d{{1,9}}(?::\d{{1,9}})?: ((?:fatal )?error:? [^\n]{{1,300}})"
        r"|(?:\S{1,200}ld: )?(\S{1,300}?):\(\.text[^)\n]{0,40}\): (undefined reference [^\n]{1,300}))",
        each=True,
    ),
)
