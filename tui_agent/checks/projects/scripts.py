"""Script lines of CI files, and Taskfile.yml as Makefile rules. YAML is read by indentation, without anchors, tags and
includes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tui_agent.checks.projects.files import Project
from tui_agent.files.lazy_regex import late

#: CI files, and lines of one.
MOST_FILES, MOST_LINES = 20, 5_000
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
#: Workflows that check pushes come first; publishing ones are skipped.
_FIRST = late(r"\b(?:tests?|ci|check|checks|build|main|python|node|go|rust)\b")
_NEVER = late(r"publish|release|deploy|nightly|docs?\b|stale|codeql|dependabot|label|scorecard")
_KEY = late(r"^( *)(?:- +)?(['\"]?)([\w-]+)\2 *:(?: +(.*))?$")
_ITEM = late(r"^( *)- +(.*)$")
_SCRIPTS = frozenset(
    ("run", "script", "before_script", "command", "test_script", "commands", "bash", "powershell")
)
#: An item of a list in one line.
_FLOW = late(r"\s*('[^']*'|\"[^\"]*\"|[^,]+)")
_BLOCK = late(r"^[|>][+-]?\d?[+-]?\s*(?:#.*)?$")


TASKFILES = tuple(f"{name}{dist}.{ending}" for name in ("Taskfile", "taskfile") for dist in ("", ".dist")
                  for ending in ("yml", "yaml"))  # fmt: skip
#: Lines of a Taskfile.
_MOST_LINES = 2_000
_TASK_KEY = late(r"^(['\"]?)([\w][\w:./-]{0,80})\1 *:(?: +(.*))?$")
_USED = late(r"\{\{ *\.(\w+) *\}\}")
_LIST = late(r"^\[([^\[\]]*)\]$")


class ScriptLine(NamedTuple):
    text: str
    folder: str = ""


def ci_lines(project: Project) -> Iterator[ScriptLine]:
    """Lines with operators other than `&&` are unchanged."""
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
    """Yields the commands between `&&`; `cd` changes the folder of the following ones."""
    folder = line.folder
    for part in line.text.split("&&"):
        words = part.split()
        if len(words) == 2 and words[0] == "cd":
            folder = words[1].removesuffix("/") if folder in ("", ".") else f"{folder}/{words[1]}"
        elif words:
            yield ScriptLine(part.strip(), folder)


def _lines(text: str) -> Iterator[ScriptLine]:
    lines = text.splitlines()[:MOST_LINES]
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
    """`working-directory` of a step's key, in the same column."""
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
    """Continuations joined, without loops and conditionals."""
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
    for key, _, inside in _keys(lines):
        if key == "vars":
            said += [f"{name} = {unquoted(value)}" for name, value, _ in _keys(inside) if value]
        elif key == "tasks":
            for name, value, body in _keys(inside):
                needs, commands = _task(value, body)
                said.append(f"{_named(name)}: {' '.join(needs)}")
                said += [f"\t{_USED.sub(_variable, command)}" for command in commands]
    return "\n".join(said)


def _variable(use: re.Match[str]) -> str:
    return "" if use[1].startswith("CLI_ARGS") else f"$({use[1]})"


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
