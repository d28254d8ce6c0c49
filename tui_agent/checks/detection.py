"""Detects a project's checks from its files, without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tui_agent.checks.projects.files import APART, Project
from tui_agent.checks.projects.languages import other_checks, python_checks
from tui_agent.checks.projects.node import going_on_option, node_checks
from tui_agent.checks.projects.runners import PlainCommand, plain
from tui_agent.checks.projects.tasks import LINTS, TESTS, ci_lines, plain_of, rules, task_lines
from tui_agent.checks.projects.workspaces import in_all_packages
from tui_agent.files.lazy_regex import LazyRegex, late
from tui_agent.settings.schema import CheckCommand

MOST_FOUND = 20
_MANIFESTS = ("package.json", "pyproject.toml", "setup.py", "manage.py", "Cargo.toml", "go.mod", "pom.xml",
              "build.gradle", "build.gradle.kts", "mix.exs", "Gemfile", "composer.json", "CMakeLists.txt")  # fmt: skip
HOOKS = "pre-commit"


def concerns(check: CheckCommand, paths: Iterable[str]) -> bool:
    """Whether a file is matched by a glob of `files`, and by none with a `!`."""
    wanted = [glob for glob in check.files if not glob.startswith("!")]
    unwanted = [glob[1:] for glob in check.files if glob.startswith("!")]
    return not check.files or any(
        (not wanted or _fits(path, wanted)) and not _fits(path, unwanted) for path in paths
    )


def _fits(path: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(path, glob) or fnmatchcase(f"/{path}", f"*/{glob}") for glob in globs)


def found_in(root: Path) -> list[CheckCommand]:
    """Tests first. Blocking."""
    found: dict[str, CheckCommand] = {}
    for check in sorted(_found(Project(root)), key=lambda one: not one.kind.endswith(" tests")):
        name, count = check.name, 2
        while name in found:
            name, count = f"{check.name} {count}", count + 1
        if not any(check.command == other.command for other in found.values()):
            found[name] = CheckCommand(name, check.command, files=check.files)
    return list(found.values())[:MOST_FOUND]


def _found(project: Project, *, top: bool = True) -> Iterator[PlainCommand]:
    """A top folder without tests has the checks of the folders in it."""
    said, covered = _declared_commands(project)
    kinds = {check.kind for check in said} | covered
    configured = [*python_checks(project, kinds), *node_checks(project), *other_checks(project)]
    given = set[str]()
    for check in [*said, *configured]:
        if check.kind not in given | covered and check.kind != HOOKS:
            given.add(check.kind)
            same_kind = (one for one in (*said, check) if one.kind == check.kind)
            yield min(same_kind, key=lambda one: one.narrowed)
    if project.has(".pre-commit-config.yaml") and all(kind.endswith(" tests") for kind in given):
        yield PlainCommand(HOOKS, "pre-commit", "pre-commit run --all-files", ())
    if any(kind.endswith(" tests") for kind in given):
        return
    for recipes in rules(project):
        for name in TESTS:
            if name in recipes and not recipes.target(name).away:
                yield PlainCommand("make tests", recipes.program, f"{recipes.program} {name}")
                return
    for folder in project.matching(".", "[!._]*") if top else ():
        inside = Project(project.root / folder)
        is_named = re.fullmatch(r"[\w.-]{1,60}", folder) and folder not in APART
        if not is_named or not project.has_folder(folder) or not inside.has(*_MANIFESTS):
            continue
        for check in _found(inside, top=False):
            wanted = [f"{folder}/{glob}" for glob in check.files if not glob.startswith("!")]
            unwanted = [glob for glob in check.files if glob.startswith("!")]
            files = (*(wanted or [f"{folder}/*"]), *unwanted)
            kind, name = f"{folder} {check.kind}", f"{folder} {check.name}"
            yield PlainCommand(kind, name, f"cd {folder} && {check.command}", files)


def _declared_commands(project: Project) -> tuple[list[PlainCommand], set[str]]:
    """Returns plain commands from CI files, recipes and tasks, and the kinds of checks that a recipe runs in
    its own way.
    """
    ci = [
        found for line in ci_lines(project) if (found := plain(line.text, project, line.folder)) is not None
    ]
    said, covered = list[PlainCommand](), set[str]()
    for recipes in rules(project):
        for name in (*TESTS, *LINTS):
            if name not in recipes:
                continue
            target = recipes.target(name)
            said += target.plain
            if name in TESTS and target.more and target.named and not target.away:
                kinds = target.named | {one.kind for one in target.plain}
                if not covered & kinds and not {one.kind for one in ci} & kinds:
                    covered |= kinds
                    said.append(PlainCommand("make tests", recipes.program, f"{recipes.program} {name}"))
    found = [*ci, *said, *plain_of(task_lines(project), project)]
    return [one for one in found if one.kind not in covered], covered


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
        r"-(?P<before>[qvsl]*)x(?P<behind>[\w=]*)"  # options without a value may precede the `x`
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
_GOES_ON = late(
    r"(?<!\S)(?:--no-fail-fast|-fae|--fail-at-end|-fn|--fail-never|--continue(?:=always)?|--no-bail)(?!\S)"
)
_ENDED_EARLY = late(
    r"^!{3,} stopping after \d{1,9} failures? !{3,}$|ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL|Cancelling due to test failure"
    r"|^\s*Bailing out after|^Bail out!",
    re.MULTILINE,
)


def going_on(command: str, project: Project) -> str:
    """Makes a command go on after a failure, if its runner is known. Blocking."""
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
