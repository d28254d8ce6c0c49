"""Commands of make, just, tox, nox and pyproject.toml scripts, without running them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tui_agent.checks.projects.files import MOST_READ, Project, table, words
from tui_agent.checks.projects.node import node_scripts
from tui_agent.checks.projects.plain_commands import PlainCommand, plain
from tui_agent.checks.projects.scripts import TASKFILES, ScriptLine, as_recipes, joined
from tui_agent.files.lazy_regex import late

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
TESTS = ("test", "tests", "check", "unittest", "test-unit", "unit")
LINTS = ("lint", "typecheck", "type-check", "types", "mypy", "static", "style")
#: Depth of dependencies, rules of a file, its lines.
MOST_DEEP, MOST_RULES, MOST_LINES = 6, 300, 200
MOST_WORDS = 100

_RULE = late(r"^([\w./ -]{1,200}?)::?(?!=)([^=#]*)(?:#.*)?$")
_RECIPE = late(r"^@?([A-Za-z][\w-]*)((?: +[*+$]?[\w-]+(?:=\S*)?)*)\s*:(?!=)\s*([^#]*)")
_VARIABLE = late(r"^(?:export )?([A-Za-z_]\w*)\s*(?:::?|\?)?=\s*(.*)$")
_USE = late(r"\$[({]([A-Za-z_]\w*)[)}]")
_MAKE = late(r"^(?:\$[({]MAKE[)}]|make|just|task)(?: -s| --no-print-directory)*((?: +[A-Za-z][\w./-]*)+)$")
#: Need a network, a service or another machine, which views lack.
_AWAY = late(
    r"\b(?:pip3? install|uv (?:sync|pip)|poetry install|pdm install|npm (?:ci|install|i)\b|pnpm (?:i|install)\b"
    r"|yarn install|docker|podman|docker-compose|curl|wget|apt(?:-get)?|brew|sudo|bundle install|composer install"
    r"|mix deps|go (?:get|install)|git (?:clone|submodule|pull|push)|virtualenv|-m venv|kubectl|ssh|scp|twine)\b"
)
_NOTHING = late(r"^(?:@?echo\b|mkdir\b|:$|printf\b|set -)")
#: A package script is a check of its own.
_OF_PACKAGE = late(r"^(?:npm|pnpm|yarn)(?: run)? (?:-s |--silent )?([\w:.-]{1,60})$")
_NAMED = {
    "python tests": re.compile(r"\b(?:pytest|py\.test|unittest|manage\.py test|tox|nox|nosetests|setup\.py test)\b"),
    "node tests": re.compile(r"\b(?:(?:npm|yarn|pnpm) (?:run )?test|mocha|jest|vitest|node --test)\b"),
    "go tests": re.compile(r"\b(?:go test|gotestsum)\b"),
    "rust tests": re.compile(r"\bcargo (?:test|nextest)\b"),
    "ruby tests": re.compile(r"\b(?:rspec|rake|minitest)\b"),
    "php tests": re.compile(r"\bphpunit\b"),
    "elixir tests": re.compile(r"\bmix test\b"),
    "cmake tests": re.compile(r"\bctest\b"),
    "java tests": re.compile(r"\b(?:mvnw?|gradlew?)\b"),
}  # fmt: skip
#: tox: a wildcard, a list or an option.
_BRACES = late(r"\{\[?[^{}]*\]?\}")


class RecipeTarget(NamedTuple):
    """Plain commands, kinds of checks run in other ways, whether it does more, and whether it needs resources
    that views lack."""

    plain: tuple[PlainCommand, ...] = ()
    named: frozenset[str] = frozenset()
    more: bool = False
    away: bool = False


class RecipeFile:
    """A Makefile, a justfile or a Taskfile."""

    def __init__(self, project: Project, program: str, text: str) -> None:
        self._project = project
        self.program = program
        self._rules: dict[str, tuple[list[str], list[str]]] = {}
        self._variables: dict[str, str] = {}
        self._scripts = node_scripts(project)
        self._read(text)

    def __contains__(self, name: str) -> bool:
        return name in self._rules and any(self._rules[name])

    def _read(self, text: str) -> None:
        body: list[str] = []
        head = _RECIPE if self.program == "just" else _RULE
        for line in re.sub(r"\\\n", " ", text).splitlines():
            if line[:1] in ("\t", " ") and line.strip():
                if len(body) < MOST_LINES:
                    body.append(line.strip())
            elif variable := _VARIABLE.match(line):
                self._variables.setdefault(variable[1], variable[2].partition("#")[0].strip())
            elif (rule := head.match(line)) and len(self._rules) < MOST_RULES:
                needs = rule[3 if self.program == "just" else 2].split()
                body = []
                names = rule[1].split()
                for name in names:
                    known = self._rules.get(name)
                    if known is None:
                        self._rules[name] = ([*needs], body)
                    else:
                        known[0].extend(needs)
                        body = known[1]

    def target(self, name: str) -> RecipeTarget:
        """Returns the commands of a target and its dependencies."""
        found: list[PlainCommand] = []
        named: set[str] = set()
        more = away = False
        for line in self._lines(name, set(), 0):
            if _AWAY.search(line):
                away = True
                continue
            script = _OF_PACKAGE.match(line)
            if _NOTHING.match(line) or (script and script[1] in self._scripts):
                continue
            parts = [plain(part.text, self._project, part.folder) for part in joined(ScriptLine(line))]
            if parts and all(parts):
                found += [part for part in parts if part is not None]
            else:
                named |= {kind for kind, pattern in _NAMED.items() if pattern.search(line)}
                more = True
        return RecipeTarget(tuple(found), frozenset(named), more, away)

    def _lines(self, name: str, seen: set[str], deep: int) -> Iterator[str]:
        if name in seen or deep > MOST_DEEP or name not in self._rules:
            return
        seen.add(name)
        needs, body = self._rules[name]
        for need in needs:
            yield from self._lines(need, seen, deep + 1)
        for line in body:
            line = line.lstrip("@-+ ")
            if again := _MAKE.match(line):
                for other in again[1].split():
                    yield from self._lines(other, seen, deep + 1)
            else:
                yield self._expanded(line)

    def _expanded(self, line: str) -> str:
        if self.program == "just":
            return re.sub(r"\{\{ *[\w-]+ *\}\}", "", line).strip()
        for _ in range(3):
            grown = _USE.sub(lambda use: self._variables.get(use[1], _DEFAULTS.get(use[1], use[0])), line)
            if grown == line or len(grown) > 2_000:
                break
            line = grown
        return line


_DEFAULTS = {"PYTHON": "python", "ARGS": "", "TESTFLAGS": "", "PYTEST_ARGS": "", "TEST_ARGS": "", "args": ""}


def rules(project: Project) -> Iterator[RecipeFile]:
    for names, program in ((MAKEFILES, "make"), (JUSTFILES, "just"), (TASKFILES, "task")):
        for name in names:
            if text := project.lines(name):
                text = as_recipes(text) if program == "task" else text
                yield RecipeFile(project, program, text)
                break


# ── tox, nox, scripts of pyproject.toml ──────────────────────────────────────────────────────────────────

_ENVIRONMENT = late(r"^(?:testenv(?::(?:[\w{},.-]*(?:py|test|lint|typ|mypy|style|flake|check)[\w{},.-]*))?)$")
_SCRIPT = late(
    r"^(?:unit-?)?(?:tests?|lint|types?|typing|type-?check|mypy|check|cov|style|ruff|pytest)(?:[:_-]\w+)?$"
)


_HOOK = late(r"^ {0,40}-? {0,40}(id|entry): {0,40}['\"]?([^'\"#\n]+)", re.MULTILINE)
#: Commands of known pre-commit hooks for the whole folder.
_HOOKS = {
    "ruff": "ruff check .",
    "ruff-check": "ruff check .",
    "ruff-format": "ruff format --check .",
    "black": "black --check .",
    "isort": "isort --check .",
    "flake8": "flake8",
    "pyright": "pyright",
    "golangci-lint": "golangci-lint run",
    "cargo-clippy": "cargo clippy",
    "clippy": "cargo clippy",
    "rubocop": "rubocop",
}


def hooks(project: Project) -> set[str]:
    return {value.strip() for key, value in _hook_entries(project) if key == "id"}


def _hook_entries(project: Project) -> list[tuple[str, str]]:
    text = project.lines(".pre-commit-config.yaml")
    return _HOOK.findall(text) if text else []  # compiled only if the file exists


def task_lines(project: Project) -> Iterator[str]:
    """Tests and linters of tox, nox, hatch, poe, pdm, rye, taskipy and pipenv."""
    yield from _tox(project)
    for key, value in _hook_entries(project):
        yield _HOOKS.get(value.strip(), "") if key == "id" else value.strip()
    python = project.toml("pyproject.toml")
    tools = table(python.get("tool"))
    yield from _nox(project.lines("noxfile.py"))
    for environment in table(table(tools.get("hatch")).get("envs")).values():
        yield from _named_scripts(table(environment).get("scripts"))
    for names in (
        ("poe", "tasks"),
        ("pdm", "scripts"),
        ("rye", "scripts"),
        ("taskipy", "tasks"),
        ("pixi", "tasks"),
    ):
        value: object = tools
        for name in names:
            value = table(value).get(name)
        yield from _named_scripts(value)
    yield from _named_scripts(project.toml("Pipfile").get("scripts"))


def _named_scripts(scripts: object) -> Iterator[str]:
    for name, value in table(scripts).items():
        if not _SCRIPT.match(name):
            continue
        if isinstance(value, dict):
            value = value.get("cmd") or value.get("shell")
        for line in words(value):
            yield _without_braces(line)


def _tox(project: Project) -> Iterator[str]:
    python = table(table(project.toml("pyproject.toml").get("tool")).get("tox"))
    legacy = python.get("legacy_tox_ini")
    found = project.sections("tox.ini")
    if isinstance(legacy, str):
        found = {**found, **sections_of(legacy)}
    for name in sorted(found, key=lambda name: name != "testenv"):
        if _ENVIRONMENT.match(name):
            folder = found[name].get("changedir") or found[name].get("change_dir") or ""
            there = f"cd {_without_braces(folder)} && " if folder else ""
            for line in found[name].get("commands", "").replace("\\\n", " ").splitlines():
                yield there + _without_braces(
                    line.partition(": ")[2] if re.match(r"[\w,{}-]+: ", line) else line
                )
    for native in (python, project.toml("tox.toml")):
        environments = [table(native.get("env_run_base")), *map(table, table(native.get("env")).values())]
        for environment in environments:
            commands = environment.get("commands")
            for command in commands if isinstance(commands, list) else []:
                if isinstance(command, list):
                    said = [word for word in words(command) if not _BRACES.search(word)]
                    more = [one for one in command if isinstance(one, dict)]
                    said += [word for one in more for word in words(one.get("default"))]
                    yield shlex.join(said)


def sections_of(text: str) -> dict[str, dict[str, str]]:
    inner = Project.__new__(Project)
    inner.texts = {"": text[:MOST_READ]}
    return inner.sections("")


def _without_braces(line: str) -> str:
    """Returns the line without placeholders of tox, hatch or poe, except for defaults of user arguments."""
    line = re.sub(r"\{(?:pos)?args:([^{}]*)\}", r"\1", line.lstrip("-! "))
    line = re.sub(r"\{(?:pos)?args\}|\$@|\"\$@\"", "", line)
    line = re.sub(r"\{envpython\}|\{env_python\}", "python", line)
    line = re.sub(r"\{(?:toxinidir|tox_root|root)\}/?", "", line)
    return re.sub(r" ?--?[\w-]+[= ]\{[^{}]*\}\S*", "", line).strip()


def _nox(text: str) -> Iterator[str]:
    """Yields each fully literal `session.run("…", "…")`, without user arguments."""
    for call in re.finditer(r"\bsession\.run(?:_always)?\(", text):
        at, said = call.end(), list[str]()
        while at < len(text) and len(said) < MOST_WORDS:
            if space := re.compile(r"[\s,]+").match(text, at):
                at = space.end()
            elif word := re.compile(r"'([^'\\\n]*)'|\"([^\"\\\n]*)\"").match(text, at):
                said.append(word[1] if word[1] is not None else word[2])
                at = word.end()
            elif (more := re.compile(r"\*(?:session\.)?\w+|\*\([^()\n]*\)").match(text, at)) or (
                more := re.compile(r"\w+=[^,()\n]*(?:\([^()\n]*\))?").match(text, at)
            ):
                at = more.end()
            else:
                break
        if text[at : at + 1] == ")" and said:
            yield shlex.join(said)


def plain_of(lines: Sequence[str] | Iterator[str], project: Project) -> list[PlainCommand]:
    return [
        found
        for line in lines
        for part in joined(ScriptLine(line))
        if (found := plain(part.text, project, part.folder)) is not None
    ]
