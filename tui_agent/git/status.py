"""What git says of a work tree: its branch, its distance from upstream, a mark for each changed path. Child only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from tui_agent.files.names import is_text
from tui_agent.files.numbers import whole_number
from tui_agent.git.repository import UNOPENED, find_repository, git

#: A message of more would hold up the interface while it is read.
MAX_MARKS: Final = 5000
_NO_REPOSITORY: dict[str, Any] = {"is_repository": False, "branch": "", "ahead": 0, "behind": 0, "marks": {}}


def read_status(root: str) -> dict[str, Any]:
    """The first of what `status_and_deleted` gives."""
    return status_and_deleted(root)[0]


def status_and_deleted(root: str, untracked: Iterable[str] | None = None) -> tuple[dict[str, Any], list[str]]:
    """The status of the work tree below `root`, as the fields of `GitStatus`; the tracked files that are not on disk.

    Where it is known what is `untracked`, git does not look through the folders for it.
    Marks are git's two letters by path: staged, then not staged, with a space for unchanged; `??` is untracked.
    A detached head is named by its first seven digits. Of more than `MAX_MARKS` changed paths the first are told,
    tracked ones before untracked ones.
    """
    repository = find_repository(root)
    if repository is None:
        return _NO_REPOSITORY, []
    looked_for = f"--untracked-files={'all' if untracked is None else 'no'}"
    told = git(root, "status", "--porcelain=v2", "--branch", "-z", looked_for, UNOPENED, "--", ".")
    if not told.ok:
        return _NO_REPOSITORY, []
    records = [os.fsdecode(record) for record in told.out.split(b"\0")]
    marks = _marks(records, repository.prefix)
    for path in untracked or ():
        marks.setdefault(path, "??")
    deleted = [path for path, mark in marks.items() if _is_deleted(root, path, mark)]
    kept = dict(islice(marks.items(), MAX_MARKS))
    return {"is_repository": True, **_branch(records), "marks": kept}, deleted


def _is_deleted(root: str, path: str, mark: str) -> bool:
    """Of a file that two sides changed, the mark does not say whether it is there."""
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


def _marks(records: list[str], prefix: str) -> dict[str, str]:
    """Marks by path relative to the root. The fields before the path are fewer than its words may be."""
    marks: dict[str, str] = {}
    rest = iter(records)
    for record in rest:
        match record[:2]:
            case "1 ":
                mark, path = record[2:4], record.split(" ", 8)[8]
            case "2 ":
                mark, path = record[2:4], record.split(" ", 9)[9]
                next(rest, "")  # the name it had before
            case "u ":
                mark, path = record[2:4], record.split(" ", 10)[10]
            case "? ":
                mark, path = "??", record[2:]
            case _:
                continue
        if path.startswith(prefix) and is_text(path):
            marks[path[len(prefix) :]] = mark.replace(".", " ")
    return marks
