"""Detects a project's checks from its files, without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tui_agent.checks.projects.files import APART, Project
from tui_agent.checks.projects.languages import other_checks, python_checks
from tui_agent.checks.projects.node import node_checks
from tui_agent.checks.projects.plain_commands import PlainCommand, plain
from tui_agent.checks.projects.scripts import ci_lines
from tui_agent.checks.projects.tasks import LINTS, TESTS, plain_of, rules, task_lines
from tui_agent.settings.schema import CheckCommand

MOST_FOUND = 20
#: Files that make a folder a project of its own.
_MANIFESTS = ("package.json", "pyproject.toml", "setup.py", "manage.py", "Cargo.toml", "go.mod", "pom.xml",
              "build.gradle", "build.gradle.kts", "mix.exs", "Gemfile", "composer.json", "CMakeLists.txt")  # fmt: skip
#: The check that runs all hooks, if no hook is a separate check.
HOOKS = "pre-commit"


def concerns(check: CheckCommand, paths: Iterable[str]) -> bool:
    """Whether a file is matched by a glob of its `files`, and by none with a `!`."""
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
    if not any(kind.endswith(" tests") for kind in given):
        yield from [*_opaque(project)] or (_of_folders(project) if top else ())


def _declared_commands(project: Project) -> tuple[list[PlainCommand], set[str]]:
    """Returns plain commands from CI files, recipes and tasks, and the kinds of checks that a recipe runs in
    its own way."""
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
            # More than plain commands, with a known runner that works in a view.
            if name in TESTS and target.more and target.named and not target.away:
                kinds = target.named | {one.kind for one in target.plain}
                if not covered & kinds and not {one.kind for one in ci} & kinds:
                    covered |= kinds
                    said.append(PlainCommand("make tests", recipes.program, f"{recipes.program} {name}"))
    found = [*ci, *said, *plain_of(task_lines(project), project)]
    return [one for one in found if one.kind not in covered], covered


def _of_folders(project: Project) -> Iterator[PlainCommand]:
    """Yields the checks of folders such as `backend` and `frontend`."""
    for folder in project.matching(".", "[!._]*"):
        inside = Project(project.root / folder)
        named = re.fullmatch(r"[\w.-]{1,60}", folder) and folder not in APART
        if not named or not project.has_folder(folder) or not inside.has(*_MANIFESTS):
            continue
        for check in _found(inside, top=False):
            wanted = [f"{folder}/{glob}" for glob in check.files if not glob.startswith("!")] or [
                f"{folder}/*"
            ]
            files = (*wanted, *(glob for glob in check.files if glob.startswith("!")))
            kind, name = f"{folder} {check.kind}", f"{folder} {check.name}"
            yield PlainCommand(kind, name, f"cd {folder} && {check.command}", files)


def _opaque(project: Project) -> Iterator[PlainCommand]:
    for recipes in rules(project):
        for name in TESTS:
            if name in recipes and not recipes.target(name).away:
                yield PlainCommand("make tests", recipes.program, f"{recipes.program} {name}")
                return
