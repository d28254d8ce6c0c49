"""New failures of a check: with a change, minus those without it."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from tui_agent.checks.formats import Outcome
from tui_agent.checks.output import outcome_of, wrong_lines
from tui_agent.checks.reports import outcome_of_report
from tui_agent.files.lazy_regex import late


class Finding(Struct, frozen=True):
    """Results of one run of a check.

    - status: exit status.
    - passed, failed: counts; None if unknown.
    - failures: names, repeated for each failure.
    - lines: normalized error lines, to compare runs of an unknown runner.
    """

    ok: bool
    status: int = 0
    passed: int | None = None
    failed: int | None = None
    failures: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


class Difference(Struct, frozen=True):
    """Failures caused by a change, and earlier ones; None if they cannot be counted."""

    new: int | None = 0
    old: int | None = 0
    new_names: tuple[str, ...] = ()
    old_names: tuple[str, ...] = ()

    @property
    def is_worse(self) -> bool:
        return self.new != 0


def finding(ok: bool, status: int, output: str, report: Outcome) -> Finding:
    """Returns the results by the runner's report, by default by its output. Blocking."""
    printed = outcome_of(output)
    if printed.failed is None and (begin := output.find("<testsuite")) >= 0:  # The report is the output.
        printed = outcome_of_report(output[begin : output.rfind(">") + 1])
    passed, failed = (report if report.failed is not None else printed)[:2]
    # Only names from the output can be used to rerun those tests.
    names = printed.failures if len(printed.failures) >= len(report.failures) else report.failures
    lines = wrong_lines(output) if not ok and not names else ()
    return Finding(ok, status, passed, failed, names, lines)


def difference(now: Finding, before: Finding) -> Difference:
    """Returns the failures of `now` that are not in `before`."""
    if now.ok:
        return Difference()
    if before.ok:
        return Difference(now.failed or len(now.failures) or None, 0, now.failures)
    if (before.failures or before.failed) and not now.failures and not now.failed:
        return Difference(None, None)  # broke early, or failed in an uncounted way
    if now.failures or before.failures:
        new, old = _apart(now.failures, before.failures)
        more = _unnamed(now) - _unnamed(before)
        return Difference(len(new) + max(0, more), len(old) + min(_unnamed(now), _unnamed(before)), new, old)
    if now.lines != before.lines or now.status != before.status:
        new, old = _apart(now.lines, before.lines)
        if now.failed is not None and before.failed is not None and now.failed > before.failed:
            return Difference(now.failed - before.failed, before.failed, new)
        if new or now.status != before.status:
            return Difference(len(new) or None, len(old), new)
    return Difference(0, now.failed or len(now.lines) or None)


def _apart(now: tuple[str, ...], before: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Multiset difference and intersection."""
    left = Counter(before)
    new, old = [], []
    for name in now:
        if left[name] > 0:
            left[name] -= 1
            old.append(name)
        else:
            new.append(name)
    return tuple(new), tuple(old)


def _unnamed(found: Finding) -> int:
    return max(0, (found.failed or 0) - len(found.failures))


def still_there(first: Difference, now: Finding, before: Finding) -> tuple[Difference, tuple[str, ...]]:
    """Returns the difference after a second run, and the flaky failures: new in the first run, absent in the
    second."""
    again = difference(now, before)
    if not first.new_names:
        return again, ()
    new, gone = (
        tuple(name for name in first.new_names if name in again.new_names),
        tuple(name for name in first.new_names if name not in again.new_names),
    )
    if now.ok:
        return Difference(0, first.old, (), first.old_names), gone
    if not now.ok and not now.failures:
        return first, ()  # that run broke, so it proves nothing
    if not again.new_names:
        return again if again.new else Difference(0, first.old, (), first.old_names), gone
    return Difference(len(new), first.old, new, first.old_names), gone


_WITH_VALUE = frozenset(
    ("-k", "-m", "-n", "-p", "-c", "-o", "-W", "-r", "--tb", "--maxfail", "--rootdir", "--cov")
)
#: With more failures, the whole check is repeated.
MOST_ALONE = 20


def has_run(found: Finding, names: tuple[str, ...]) -> bool:
    """Whether a run of only these tests ran as many, if its runner counts them."""
    return found.passed is None or found.passed + (found.failed or 0) >= len(set(names))


def limited_to(command: str, failures: tuple[str, ...], script_runner: str = "") -> str:
    """The command (the last one joined by `&&`) limited to these failures; unchanged if its runner is unknown
    or does not support it. script_runner: the runner of the package script in the command."""
    before, joined, last = command.rpartition(" && ")
    if not failures or len(failures) > MOST_ALONE or any(sign in last for sign in "|&;<>$`\n(){}*?"):
        return command
    try:
        words = shlex.split(last)
    except ValueError:
        return command
    if options := _selecting(script_runner, failures):
        alone = [*words, *["--"][: words[0] == "npm" and "--" not in words], *options]
    else:
        at = next((at for at, word in enumerate(words[:4]) if _program(word) in _KNOWN), len(words))
        alone = [*words[:at], *_alone(words[at:], failures)]
    return f"{before}{joined}{shlex.join(alone)}" if alone != words else command


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def _alone(program: list[str], failures: tuple[str, ...]) -> list[str]:
    runner = _program(program[0]) if program else ""
    if runner == "pytest" and all("::" in name for name in failures):
        options = [
            word
            for at, word in enumerate(program[1:])
            if word.startswith("-") or (at and program[at] in _WITH_VALUE)
        ]
        return ["pytest", *options, *failures]
    tests_of_code = all(name.replace("::", "").isidentifier() for name in failures)  # Not doctests.
    if program[:2] == ["cargo", "test"] and "--" not in program and tests_of_code:
        going_on = [word for word in program if word != "--no-fail-fast"]
        return [*going_on, "--no-fail-fast", "--", "--exact", *failures]
    if program[:2] == ["go", "test"] and not any(word.startswith("-run") for word in program):
        tests = [name.rpartition(" ")[2].partition("/")[0] for name in failures]
        if all(name.isidentifier() for name in tests):
            return [*program, "-run", f"^({'|'.join(dict.fromkeys(tests))})$"]
    return [*program, *_selecting(runner, failures)]


def _selecting(runner: str, failures: tuple[str, ...]) -> list[str]:
    """Options that select these failures, or none."""
    match runner:
        case "jest":
            return ["-t", _whole(name.replace(" › ", " ") for name in failures)]
        case "vitest":
            return ["-t", _whole(name.partition(" > ")[2].replace(" > ", " ") or name for name in failures)]
        case "mocha":
            return ["-g", _whole(failures)]
        case "ctest":
            return ["-R", _whole(failures).replace("?:", "")]
        case "rspec":
            return [word for name in failures for word in ("-e", name)]
        case "phpunit":
            tests = (re.escape(name.partition(" (")[0]) for name in failures)
            return ["--filter", f"/^(?:{'|'.join(tests)})(?: \\(|$)/"]
        case "unittest":
            found = [_UNITTEST.match(name) for name in failures]
            names = [f"{one[2].removesuffix(f'.{one[1]}')}.{one[1]}" for one in found if one]
            return [word for name in names for word in ("-k", name)] if len(names) == len(found) else []
    return []


def _whole(names: Iterable[str]) -> str:
    return f"^(?:{'|'.join(map(re.escape, names))})$"


_KNOWN = frozenset(
    ("pytest", "cargo", "go", "jest", "vitest", "mocha", "ctest", "rspec", "phpunit", "unittest")
)
_UNITTEST = late(r"^(\w{1,200}) \(([\w.]{1,300})\)")
