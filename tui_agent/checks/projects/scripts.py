"""Script lines of CI files. YAML is read by indentation, without anchors and tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    """Separated by `&&`; `cd` changes the folder of the following commands."""
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
