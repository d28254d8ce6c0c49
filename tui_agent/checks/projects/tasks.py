"""Commands of make, just, tox, nox, pyproject.toml, CI files and Taskfile.yml, without running them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tui_agent.checks.projects.files import MOST_READ, Project, sections, table, words
from tui_agent.checks.projects.node import node_scripts
from tui_agent.checks.projects.runners import PlainCommand, plain
from tui_agent.files.lazy_regex import late

#: CI files, and lines of one.
MOST_FILES, MOST_SCRIPT_LINES = 20, 5_000
_WORKFLOWS = (".github/workflows", ".forgejo/workflows", ".gitea/workflows")
_OTHERS = (
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".travis.yml",
    ".woodpecker.yml",
    ".cirrus.yml",
    "appveyor.yml",
)
#: Workflows that check pushes come first; publishing workflows are skipped.
_FIRST = late(r"\b(?:tests?|ci|check|checks|build|main|python|node|go|rust)\b")
_NEVER = late(r"publish|release|deploy|nightly|docs?\b|stale|codeql|dependabot|label|scorecard")
_KEY = late(r"^( *)(?:- +)?(['\"]?)([\w-]+)\2 *:(?: +(.*))?$")
_ITEM = late(r"^( *)- +(.*)$")
_SCRIPTS = frozenset(
    ("run", "script", "before_script", "command", "test_script", "commands", "bash", "powershell")
)
_FLOW = late(r"\s*('[^']*'|\"[^\"]*\"|[^,]+)")
_BLOCK = late(r"^[|>][+-]?\d?[+-]?\s*(?:#.*)?$")


TASKFILES = tuple(f"{name}{dist}.{ending}" for name in ("Taskfile", "taskfile") for dist in ("", ".dist")
                  for ending in ("yml", "yaml"))  # fmt: skip
_MOST_LINES = 2_000
_TASK_KEY = late(r"^(['\"]?)([\w][\w:./-]{0,80})\1 *:(?: +(.*))?$")
_USED = late(r"\{\{ *\.(\w+) *\}\}")
_LIST = late(r"^\[([^\[\]]*)\]$")


class ScriptLine(NamedTuple):
    text: str
    folder: str = ""


def ci_lines(project: Project) -> Iterator[ScriptLine]:
    """Leaves lines with operators other than `&&` unchanged."""
    names = [
        f"{folder}/{name}"
        for folder in _WORKFLOWS
        for name in project.matching(folder, "*.y*ml")
        if not _NEVER.search(name.lower())
    ]
    names.sort(key=lambda name: not _FIRST.search(name.rpartition("/")[2].lower().replace("_", "-")))
    for name in [*names, *_OTHERS][:MOST_FILES]:
        for line in _lines(project.lines(name)):
            yield from joined(line)


def joined(line: ScriptLine) -> Iterator[ScriptLine]:
    """Yields the commands between `&&`; `cd` changes the folder of later commands."""
    folder = line.folder
    for part in line.text.split("&&"):
        words = part.split()
        if len(words) == 2 and words[0] == "cd":
            folder = words[1].removesuffix("/") if folder in ("", ".") else f"{folder}/{words[1]}"
        elif words:
            yield ScriptLine(part.strip(), folder)


def _lines(text: str) -> Iterator[ScriptLine]:
    lines = text.splitlines()[:MOST_SCRIPT_LINES]
    at, default = 0, ""
    while at < len(lines):
        line = lines[at]
        at += 1
        key = _KEY.match(line)
        if key is None:
            continue
        indent, name, value = len(key[1]), key[3], (key[4] or "").strip()
        if name == "working-directory" and indent <= 6:
            default = unquoted(value) if "$" not in value else default
        if name not in _SCRIPTS:
            continue
        column = line.index(key[3])
        folder = _folder_of_step(lines, at - 1, column) or default
        if _BLOCK.match(value):
            block, at = _block(lines, at, column)
            script = " ".join(block) if value[0] == ">" else "\n".join(block)
            for one in continued(script):
                yield ScriptLine(one, folder)
        elif value.startswith("[") and value.endswith("]"):
            for one in _FLOW.findall(value[1:-1]):
                yield ScriptLine(unquoted(one.strip()), folder)
        elif value:
            yield ScriptLine(unquoted(value), folder)
        else:
            while at < len(lines) and (
                (item := _ITEM.match(lines[at])) or not lines[at].strip() or lines[at].lstrip()[0] == "#"
            ):
                at += 1
                if item is None:
                    continue
                if len(item[1]) < indent:
                    at -= 1
                    break
                if _BLOCK.match(item[2].strip()):
                    block, at = _block(lines, at, len(item[1]))
                    for one in continued("\n".join(block)):
                        yield ScriptLine(one, folder)
                else:
                    yield ScriptLine(unquoted(item[2].strip()), folder)


def _block(lines: list[str], at: int, indent: int) -> tuple[list[str], int]:
    block = []
    while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip(" ")) > indent):
        block.append(lines[at].strip())
        at += 1
    return block, at


def _folder_of_step(lines: list[str], at: int, column: int) -> str:
    for step in (-1, 1):
        here = at
        while 0 <= here < len(lines):
            line = lines[here]
            depth = len(line) - len(line.lstrip(" "))
            begins = line.lstrip().startswith("- ")
            if here != at and line.strip() and (depth < column - 2 or (step == 1 and depth < column)):
                break
            name, _, value = line.strip().removeprefix("- ").partition(":")
            if name == "working-directory" and depth + 2 * begins == column and "$" not in value:
                return unquoted(value.strip())
            if step == -1 and begins and depth == column - 2:
                break
            here += step
    return ""


def continued(script: str) -> Iterator[str]:
    """Joins continuations, without loops and conditionals."""
    depth = 0
    for line in re.sub(r"\\\n\s*", " ", script).splitlines():
        line = line.strip()
        if re.match(r"(?:if|for|while|case|until)\b", line):
            depth += 1
        if not depth and line and not line.startswith("#"):
            yield line
        if re.search(r"(?:^|;\s*)(?:fi|done|esac)$", line):
            depth = max(0, depth - 1)


def unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def as_recipes(text: str) -> str:
    """Returns a Taskfile's variables and tasks in Makefile syntax; `:` in a name becomes `/`."""
    lines = [line for line in text.splitlines()[:_MOST_LINES] if not line.lstrip().startswith("#")]
    said = list[str]()

    def used(variable: re.Match[str]) -> str:
        return "" if variable[1].startswith("CLI_ARGS") else f"$({variable[1]})"

    for key, _, inside in _keys(lines):
        if key == "vars":
            said += [f"{name} = {unquoted(value)}" for name, value, _ in _keys(inside) if value]
        elif key == "tasks":
            for name, value, body in _keys(inside):
                needs, commands = _task(value, body)
                said.append(f"{_named(name)}: {' '.join(needs)}")
                said += [f"\t{_USED.sub(used, command)}" for command in commands]
    return "\n".join(said)


def _named(name: str) -> str:
    return unquoted(name.strip()).replace(":", "/")


def _task(value: str, body: Sequence[str]) -> tuple[list[str], list[str]]:
    if value:
        return [], [unquoted(value)]
    if body and body[0].lstrip().startswith("- "):
        return [], list(_commands("", body))
    needs, commands, folder = list[str](), list[str](), ""
    for key, said, inside in _keys(body):
        if key == "deps":
            needs = [_named(re.sub(r"^task: *", "", one.partition("\n")[0])) for one in _items(said, inside)]
        elif key in ("cmds", "cmd"):
            commands += _commands(said, inside)
        elif key == "dir":
            folder = unquoted(said)
    return needs, [f"cd {folder} && {command}" for command in commands] if folder else commands


def _commands(value: str, inside: Sequence[str]) -> Iterator[str]:
    if _BLOCK.match(value):
        yield from continued("\n".join(inside))
        return
    if value and not _LIST.match(value):
        yield unquoted(value)
        return
    for item in _items(value, inside):
        first, _, rest = item.partition("\n")
        if _BLOCK.match(first.strip()):
            yield from continued(rest)
        elif (key := _TASK_KEY.match(first)) and key[2] in ("cmd", "task"):
            yield f"task {_named(key[3] or '')}" if key[2] == "task" else unquoted((key[3] or "").strip())
        elif key is None:
            yield unquoted(first.strip())


def _items(value: str, inside: Sequence[str]) -> list[str]:
    if flow := _LIST.match(value):
        return [unquoted(one.strip()) for one in flow[1].split(",") if one.strip()]
    items = list[str]()
    indent = _indent(inside[0]) if inside else 0
    for line in inside:
        if _indent(line) == indent and line.lstrip().startswith("- "):
            items.append(line.strip()[2:].strip())
        elif items:
            items[-1] += f"\n{line.strip()}"
    return items


def _keys(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    if not lines:
        return
    indent, at = _indent(lines[0]), 0
    while at < len(lines):
        line = lines[at]
        at += 1
        key = _TASK_KEY.match(line.strip()) if _indent(line) == indent else None
        if key is None:
            continue
        begin = at
        while at < len(lines) and (_indent(lines[at]) > indent or lines[at].startswith(" " * indent + "- ")):
            at += 1
        yield key[2], (key[3] or "").partition(" #")[0].strip(), list(lines[begin:at])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
TESTS = ("test", "tests", "check", "unittest", "test-unit", "unit")
LINTS = ("lint", "typecheck", "type-check", "types", "mypy", "static", "style")
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
_BRACES = late(r"\{\[?[^{}]*\]?\}")


class RecipeTarget(NamedTuple):
    """Plain commands, kinds of checks run in other ways, whether it does more, and whether it needs
    resources that views lack.
    """

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

    def __contains__(self, name: str) -> bool:
        return name in self._rules and any(self._rules[name])

    def target(self, name: str) -> RecipeTarget:
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
            elif self.program == "just":
                yield re.sub(r"\{\{ *[\w-]+ *\}\}", "", line).strip()
            else:
                for _ in range(3):
                    grown = _USE.sub(
                        lambda use: self._variables.get(use[1], _DEFAULTS.get(use[1], use[0])), line
                    )
                    if grown == line or len(grown) > 2_000:
                        break
                    line = grown
                yield line


_DEFAULTS = {"PYTHON": "python", "ARGS": "", "TESTFLAGS": "", "PYTEST_ARGS": "", "TEST_ARGS": "", "args": ""}


def rules(project: Project) -> Iterator[RecipeFile]:
    for names, program in ((MAKEFILES, "make"), (JUSTFILES, "just"), (TASKFILES, "task")):
        for name in names:
            if text := project.lines(name):
                text = as_recipes(text) if program == "task" else text
                yield RecipeFile(project, program, text)
                break


_ENVIRONMENT = late(r"^(?:testenv(?::(?:[\w{},.-]*(?:py|test|lint|typ|mypy|style|flake|check)[\w{},.-]*))?)$")
_SCRIPT = late(
    r"^(?:unit-?)?(?:tests?|lint|types?|typing|type-?check|mypy|check|cov|style|ruff|pytest)(?:[:_-]\w+)?$"
)


_HOOK = late(r"^ {0,40}-? {0,40}(id|entry): {0,40}['\"]?([^'\"#\n]+)", re.MULTILINE)
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
    return _HOOK.findall(text) if text else []


def task_lines(project: Project) -> Iterator[str]:
    """Yields tests and linters of tox, nox, hatch, poe, pdm, rye, taskipy and pipenv."""
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
        found = {**found, **sections(legacy[:MOST_READ])}
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


def _without_braces(line: str) -> str:
    """Removes placeholders of tox, hatch or poe, except for defaults of user arguments."""
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
