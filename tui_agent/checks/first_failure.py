"""Commands without options that end a run at its first failure, which would hide others behind an old one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tui_agent.checks.projects.files import Project
from tui_agent.checks.projects.node import going_on_option
from tui_agent.checks.projects.workspaces import in_all_packages
from tui_agent.files.lazy_regex import LazyRegex, late


class _Stopping(NamedTuple):
    """First words, options that end a run early, and an option that it needs to go on."""

    program: LazyRegex
    options: str
    added: str = ""


def _program(words: str) -> LazyRegex:
    return late(rf"(?<![\w.-])(?:{words})(?![\w./-])(?P<rest>(?:'[^'\n]*'|\"[^\"\n]*\"|[^|&;\n'\"])*)")


_FAIL_FAST = r"--?fail-?fast(?:=\S+)?"
_RUNNERS: Sequence[_Stopping] = (
    _Stopping(
        _program(r"pytest|py\.test"),
        r"-(?P<before>[qvsl]*)x(?P<behind>[\w=]*)"  # letters in front of the `x` are options without a value
        r"|--exitfirst|--maxfail(?:=| +)\d+|--sw(?:-skip)?|--stepwise(?:-skip)?",
    ),
    _Stopping(_program(r"unittest|nose2|(?:bin/)?rails test"), rf"-f|{_FAIL_FAST}"),
    _Stopping(_program(r"manage\.py test|(?:tests/)?runtests\.py|jasmine|ava|deno test"), _FAIL_FAST),
    _Stopping(_program("jest|vitest|mocha|tap|bun test"), r"-b|--bail(?:(?:=| +)\d+)?"),
    _Stopping(_program("playwright test"), r"-x|--max-failures(?:=| +)\d+"),
    _Stopping(_program("go test|gotestsum"), r"--?failfast"),
    _Stopping(_program(r"cargo(?: \+\S{1,40})? test"), _FAIL_FAST, "--no-fail-fast"),
    _Stopping(
        _program(r"cargo(?: \+\S{1,40})? nextest run"),
        rf"{_FAIL_FAST}|--max-fail(?:=| +)[\w:]+",
        "--no-fail-fast",
    ),
    _Stopping(_program("rspec"), _FAIL_FAST),
    _Stopping(_program("phpunit|paratest|pest"), r"--stop-on-[a-z]+|--bail"),
    _Stopping(_program("ctest"), "--stop-on-failure"),
    _Stopping(_program("mix test"), r"--max-failures(?:=| +)\d+"),
    _Stopping(_program(r"mvnw?"), "-ff|--fail-fast", "--fail-at-end"),
    _Stopping(_program(r"gradlew?"), "--fail-fast", "--continue"),
    _Stopping(_program("lerna run"), "--bail", "--no-bail"),
    _Stopping(_program("turbo (?:run )?test"), "--continue=(?:never|dependencies-successful)", "--continue"),
)
#: Options with the effect of the added one.
_GOES_ON = late(
    r"(?<!\S)(?:--no-fail-fast|-fae|--fail-at-end|-fn|--fail-never|--continue(?:=always)?|--no-bail)(?!\S)"
)
#: Runners' statements of an early end.
_ENDED_EARLY = late(
    r"^!{3,} stopping after \d{1,9} failures? !{3,}$|ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL|Cancelling due to test failure"
    r"|^\s*Bailing out after|^Bail out!",
    re.MULTILINE,
)


def going_on(command: str, project: Project) -> str:
    """Returns the command that goes on after a failure; unchanged if its runner is unknown. Blocking."""
    if in_all := in_all_packages(command, project):
        return in_all
    for runner in _RUNNERS:
        command = runner.program.sub(lambda found, runner=runner: _going_on(found, runner), command)
    option = going_on_option(command, project)
    return f"{command} {option}" if option else command


def _going_on(found: re.Match[str], runner: _Stopping) -> str:
    def left(part: re.Match[str]) -> str:
        if part["quoted"]:
            return part[0]
        other = "".join(filter(None, (part.groupdict().get("before"), part.groupdict().get("behind"))))
        return f" -{other}" if other else ""

    at = found.start("rest") - found.start()
    begin, rest = found[0][:at], found[0][at:]
    rest = re.sub(rf"(?P<quoted>'[^'\n]*'|\"[^\"\n]*\")|[ \t]+(?:{runner.options})(?!\S)", left, rest)
    if runner.added and not _GOES_ON.search(rest):
        rest = f" {runner.added}{rest}"
    return f"{begin}{rest}"


def ended_early(output: str) -> bool:
    return bool(_ENDED_EARLY.search(output))
