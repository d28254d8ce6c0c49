"""Work tree status: branch, distance from upstream, marks of changed paths. Runs in the child."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from tui_agent.files.names import is_text
from tui_agent.files.numbers import whole_number
from tui_agent.git.repository import UNOPENED, find_repository, git

#: A larger message would block the interface.
MAX_MARKS: Final = 5000
_NO_REPOSITORY: dict[str, Any] = {"is_repository": False, "branch": "", "ahead": 0, "behind": 0, "marks": {}}


def read_status(root: str) -> dict[str, Any]:
    return status_and_deleted(root)[0]


def status_and_deleted(root: str, untracked: Iterable[str] | None = None) -> tuple[dict[str, Any], list[str]]:
    """The status of the work tree below `root`, as fields of `GitStatus`, and the tracked files missing on
    disk.

    With `untracked` given, git does not scan for untracked files. Marks are git's two characters by path:
    staged and unstaged, a space for unchanged; `??` is untracked. A detached head is named by its first
    seven digits. At most `MAX_MARKS` paths are included, tracked ones first.
    """
    repository = find_repository(root)
    if repository is None:
        return _NO_REPOSITORY, []
    looked_for = f"--untracked-files={'all' if untracked is None else 'no'}"
    told = git(root, "status", "--porcelain=v2", "--branch", "-z", looked_for, UNOPENED, "--", ".")
    if not told.ok:
        return _NO_REPOSITORY, []
    records = [os.fsdecode(record) for record in told.out.split(b"\0")]
    # Marks by path relative to the root. Splits are limited, because paths may contain spaces
    marks: dict[str, str] = {}
    rest = iter(records)
    for record in rest:
        match record[:2]:
            case "1 ":
                mark, path = record[2:4], record.split(" ", 8)[8]
            case "2 ":
                mark, path = record[2:4], record.split(" ", 9)[9]
                next(rest, "")
            case "u ":
                mark, path = record[2:4], record.split(" ", 10)[10]
            case "? ":
                mark, path = "??", record[2:]
            case _:
                continue
        if path.startswith(repository.prefix) and is_text(path):
            marks[path[len(repository.prefix) :]] = mark.replace(".", " ")
    for path in untracked or ():
        marks.setdefault(path, "??")
    deleted = [path for path, mark in marks.items() if _is_deleted(root, path, mark)]
    kept = dict(islice(marks.items(), MAX_MARKS))
    return {"is_repository": True, **_branch(records), "marks": kept}, deleted


def _is_deleted(root: str, path: str, mark: str) -> bool:
    """Whether a file is deleted; an unmerged mark does not say, so the disk is checked."""
    unmerged = "U" in mark or mark == "DD"
    return not os.path.lexists(os.path.join(root, path)) if unmerged else mark[1] == "D"


def _branch(records: list[str]) -> dict[str, Any]:
    facts = dict(record[2:].split(" ", 1) for record in records if record.startswith("# "))
    branch = facts.get("branch.head", "")
    if branch == "(detached)":
        branch = facts.get("branch.oid", "")[:7]
    distance = re.fullmatch(r"\+(\d+) -(\d+)", facts.get("branch.ab", "+0 -0"))
    ahead, behind = (whole_number(distance[1]), whole_number(distance[2])) if distance else (0, 0)
    return {"branch": branch, "ahead": ahead, "behind": behind}
