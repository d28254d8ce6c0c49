"""Taskfile.yml as Makefile rules. YAML is read by indentation, without anchors and includes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tui_agent.checks.projects.scripts import continued, unquoted
from tui_agent.files.lazy_regex import late

NAMES = tuple(f"{name}{dist}.{ending}" for name in ("Taskfile", "taskfile") for dist in ("", ".dist")
              for ending in ("yml", "yaml"))  # fmt: skip
MOST_LINES = 2_000
_KEY = late(r"^(['\"]?)([\w][\w:./-]{0,80})\1 *:(?: +(.*))?$")
_USED = late(r"\{\{ *\.(\w+) *\}\}")
_BLOCK = late(r"^[|>][+-]?\d?[+-]?$")
_FLOW = late(r"^\[([^\[\]]*)\]$")


def as_recipes(text: str) -> str:
    """Variables and tasks in Makefile syntax; `:` in a name becomes `/`."""
    lines = [line for line in text.splitlines()[:MOST_LINES] if not line.lstrip().startswith("#")]
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
    if value and not _FLOW.match(value):
        yield unquoted(value)
        return
    for item in _items(value, inside):
        first, _, rest = item.partition("\n")
        if _BLOCK.match(first.strip()):
            yield from continued(rest)
        elif (key := _KEY.match(first)) and key[2] in ("cmd", "task"):
            yield f"task {_named(key[3] or '')}" if key[2] == "task" else unquoted((key[3] or "").strip())
        elif key is None:
            yield unquoted(first.strip())


def _items(value: str, inside: Sequence[str]) -> list[str]:
    if flow := _FLOW.match(value):
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
        key = _KEY.match(line.strip()) if _indent(line) == indent else None
        if key is None:
            continue
        begin = at
        while at < len(lines) and (_indent(lines[at]) > indent or lines[at].startswith(" " * indent + "- ")):
            at += 1
        yield key[2], (key[3] or "").partition(" #")[0].strip(), list(lines[begin:at])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
