"""Plain commands: known runners with known options, so that no CI file or recipe runs arbitrary code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tui_agent.checks.projects.files import Project, is_inside
from tui_agent.checks.projects.runners import RUNNERS, TESTED, KnownRunner
from tui_agent.files.lazy_regex import late


class PlainCommand(NamedTuple):
    """Run unchanged. kind: a project has one check per kind. files: globs of the files it applies to.
    narrowed: number of words that restrict its plainest form."""

    kind: str
    name: str
    command: str
    files: tuple[str, ...] = TESTED
    narrowed: int = 0


#: Prefixes of a runner: environment settings for tests, and wrappers.
_VARIABLE = late(
    r"(?:PYTHONPATH|DJANGO_SETTINGS_MODULE|NODE_ENV|RAILS_ENV|MIX_ENV|CI|APP_ENV|SETTINGS)=[\w./:-]{0,80}"
)
_PYTHONS = late(r"(?:python|python3|python3?\.\d{1,2}|py)")
#: A virtual environment's programs come first on a view's path.
_ENVIRONMENT = late(r"^(?:\./)?\.?v?env/bin/")
_WRAPPERS = {
    "uv run": "--frozen --locked --no-sync --all-extras --all-groups --dev --no-dev --isolated --active --group "
    "--extra --with --python -p --no-default-groups --quiet -q --all-packages --exact",
    "poetry run": "",
    "pdm run": "-n",
    "pipenv run": "",
    "hatch run": "",
    "rye run": "",
    "pixi run": "",
    "bundle exec": "",
    "coverage run": "--branch -p --parallel-mode --source --rcfile -a --append --include --omit --parallel",
    "xvfb-run": "-a --auto-servernum",
    "php": "-d",
}
_WRAPPER_VALUES = frozenset(
    ("--group", "--extra", "--with", "--python", "-p", "--source", "--rcfile", "--include", "--omit", "-d")
)
#: These select the environment.
_KEPT_WRAPPERS = {"poetry run", "pipenv run", "bundle exec"}
_SAFE = late(r"[\w ./:=@,+%\[\]()*^!<>|~\"'-]{0,400}", re.ASCII)
#: Outside the folder, as a word or an option's value.
_OUTSIDE = late(r"(?:^|[=:,])[/~]|(?:^|[/=:,])\.\.(?:/|$)")
_OPERATORS = late(r"[;|&<>`$\\\n\r(){}#]")
_MOST_LETTERS = 400
#: Words that do not restrict a command.
_EVERYTHING = [
    ".",
    "./...",
    "tests",
    "test",
    "tests/",
    "discover",
    "--check",
    "--workspace",
    "--all-features",
]


def plain(line: str, project: Project, folder: str = "") -> PlainCommand | None:
    """`folder`: working directory."""
    line = line.strip()
    if len(line) > _MOST_LETTERS or not line:
        return None
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    quoted = re.sub(r"'[^'$`\\]*'|\"[^\"$`\\]*\"", "", line.partition(" #")[0])
    if _OPERATORS.search(quoted) or not all(
        _SAFE.fullmatch(word) and not _OUTSIDE.search(word) for word in words
    ):
        return None
    variables: list[str] = []
    while words and _VARIABLE.fullmatch(words[0]):
        variables.append(words.pop(0))
    before, words = _unwrapped(words, project)
    if not words:
        return None
    found = _run(words, project, folder)
    if found is None:
        return None
    command = " ".join([*variables, *([before] if before else []), found.command])
    if folder and folder != ".":
        if not is_inside(folder) or not project.has_folder(folder):
            return None
        command = f"cd {shlex.quote(folder)} && {command}"
    return found._replace(command=command)


def _unwrapped(words: list[str], project: Project) -> tuple[str, list[str]]:
    kept = ""
    for _ in range(3):
        for begin, options in _WRAPPERS.items():
            first = begin.split()
            if words[: len(first)] != first:
                continue
            rest = words[len(first) :]
            measured = begin == "coverage run"
            while rest and rest[0].partition("=")[0] in options.split() and rest[0].startswith("-"):
                option = rest.pop(0)
                if option in _WRAPPER_VALUES and rest and not (measured and option == "-p"):
                    rest.pop(0)
            if begin in _KEPT_WRAPPERS and not has_environment(project):
                kept = begin
            words = ["python", *rest] if measured else rest
            break
        else:
            break
    return kept, words


def has_environment(project: Project) -> bool:
    """Whether the folder has a virtual environment, or a link to one."""
    return any((project.root / name).is_dir() for name in (".venv/bin", "venv/bin"))


def _run(words: list[str], project: Project, folder: str) -> PlainCommand | None:
    python = ""
    words = [_ENVIRONMENT.sub("", words[0]), *words[1:]]
    if _PYTHONS.fullmatch(words[0]):
        words = words[1:]
        while words and re.fullmatch(r"-(?:W\w*|X\w*|b+|I|B|u|O)", words[0]):
            words = words[1:]
        if words[:1] == ["-m"]:
            python, words = "python -m ", words[1:]
        elif words and words[0].removeprefix("./") in ("manage.py", "runtests.py", "tests/runtests.py"):
            python, words = "python ", [words[0].removeprefix("./"), *words[1:]]
        else:
            return None
        if words[:1] == ["coverage"]:
            return None
    elif words[0].removeprefix("./") == "manage.py":
        python, words = "python ", ["manage.py", *words[1:]]
    words = [words[0].removeprefix("./"), *words[1:]] if words else words
    if words[:1] == ["py.test"]:
        words[0] = "pytest"
    if words[:1] == ["phpunit"]:
        words[0] = "vendor/bin/phpunit"
    for runner in RUNNERS:
        begin = runner.begin.split()
        if words[: len(begin)] == begin or (
            runner.begin == "runtests.py" and words[:1] == ["tests/runtests.py"]
        ):
            if (runner.begin == "unittest") != (python == "python -m " and words[0] == "unittest"):
                return None
            told = _kept_words(runner, words[len(begin) :], project, folder)
            if told is None:
                return None
            start = runner.instead or " ".join(words[: len(begin)])
            if runner.begin.endswith((".py", ".py test")):
                python = "python "
            if runner.kind in ("ruff", "python format") and python:
                python = ""
            command = f"{python}{start}" + (f" {shlex.join(told)}" if told else "")
            narrowing = sum(word not in _EVERYTHING for word in told)
            return PlainCommand(runner.kind, runner.name, command, runner.files, narrowing)
    return None


def _kept_words(runner: KnownRunner, words: Sequence[str], project: Project, folder: str) -> list[str] | None:
    keep, drop, valued = runner.keep.split(), runner.drop.split(), runner.valued.split()
    told: list[str] = []
    if runner.needs and not any(word in runner.needs.split() for word in words):
        return None
    left: Iterator[str] = iter(words)
    for word in left:
        option, equals, _ = word.partition("=")
        is_kept, is_dropped = option in keep, option in drop
        if is_dropped or is_kept:
            value = next(left, None) if option in valued and not equals else None
            if is_kept and word not in runner.instead.split():
                told += [word] if value is None else [word, value]
        elif word.startswith("-") or not (runner.paths and _names_files(word, project, folder)):
            return None
        else:
            told.append(word)
    return told


def _names_files(word: str, project: Project, folder: str) -> bool:
    """Whether it is a path of the project, a Go package, or a module's dotted name."""
    path = word.partition("::")[0].removesuffix("/...").removeprefix("./")
    if path in ("", ".", "..."):
        return True
    whole = f"{folder}/{path}" if folder and folder != "." else path
    if not is_inside(path):
        return False
    if project.holds(whole):
        return True
    return bool(re.fullmatch(r"[A-Za-z_][\w.]*", path)) and project.holds(whole.replace(".", "/"))
