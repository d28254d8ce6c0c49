"""Converts watcher events to changes of relevant files. Runs in the child."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from tui_agent.files.names import is_text
from tui_agent.files.staging import is_temporary
from tui_agent.git.repository import (
    Repository,
    git,
    git_without_repository,
    ignored,
    ignored_without_repository,
)
from tui_agent.workspace.git_listing import WITHOUT_CONTROL
from tui_agent.workspace.walk import CONTROL_FOLDERS, as_texts
from tui_agent.workspace.watch_plan import GIT_SIGNS, IGNORE_FILE, WatchPlan

Kind = Literal["added", "changed", "deleted"]
ADDED: Final = 1
DELETED: Final = 3


class RelevantChanges(Struct):
    """`changes` are of files (or, if deleted, of folders too). `git`: the status may differ.

    `relist`: ignore rules changed or git failed. `replan`: a new folder among individually watched ones.
    """

    changes: dict[str, Kind] = {}
    git: bool = False
    relist: bool = False
    replan: bool = False


def read_changes(
    root: str, repository: Repository | None, plan: WatchPlan, raw: Iterable[tuple[int, str]]
) -> RelevantChanges:
    """Interprets (kind, absolute path) pairs from the watcher."""
    seen = RelevantChanges()
    kinds: dict[str, set[int]] = {}
    for kind, absolute in raw:
        if not _is_control(root, absolute, plan, seen) and is_text(absolute):
            kinds.setdefault(os.path.relpath(absolute, root), set()).add(kind)
    new_folders = [path for path, told in kinds.items() if _one(root, path, told, seen)]
    for folder in new_folders:
        seen.replan = seen.replan or os.path.dirname(os.path.join(root, folder)) in plan.single
        # Lists the files of a new folder, because the watcher does not report them
        asked = ("ls-files", "-z", "--others", "--exclude-standard")
        below = ("--", f":(literal){folder}/")
        if repository is None:
            told, is_there = git_without_repository(root, *asked, *WITHOUT_CONTROL, *below), os.path.isfile
        else:
            told, is_there = git(root, *asked, "--cached", *below), os.path.lexists
        found = as_texts(told.out).paths
        seen.relist = seen.relist or not told.ok or any(path.endswith("/") for path in found)
        seen.changes.update({path: "added" for path in found if is_there(os.path.join(root, path))})
    _drop_ignored(root, repository, seen)
    return seen


def _is_control(root: str, absolute: str, plan: WatchPlan, seen: RelevantChanges) -> bool:
    """Processes events in version control folders. Returns True if the event is not a file change."""
    folder, name = os.path.split(absolute)
    if folder in plan.git_folders:
        seen.git = seen.git or name in GIT_SIGNS
        seen.relist = seen.relist or name == "exclude"
        return True
    if absolute == root or not absolute.startswith(root.rstrip("/") + "/"):
        return True
    parts = os.path.relpath(absolute, root).split("/")
    if CONTROL_FOLDERS.isdisjoint(parts):
        return False
    if name == ".git":
        seen.git = seen.relist = seen.replan = True
    return True


def _one(root: str, path: str, told: set[int], seen: RelevantChanges) -> bool:
    """Records a path's change, except for our temporary files. Returns True for a new folder."""
    if is_temporary(os.path.basename(path)):
        return False
    if os.path.basename(path) == IGNORE_FILE:
        seen.relist = seen.replan = True
    try:
        mode = os.lstat(os.path.join(root, path)).st_mode
    except OSError:
        seen.changes[path] = "deleted"
        return False
    if stat.S_ISDIR(mode):
        return ADDED in told
    if stat.S_ISREG(mode) or (stat.S_ISLNK(mode) and not os.path.isdir(os.path.join(root, path))):
        seen.changes[path] = "added" if ADDED in told else "changed"
    return False


def _drop_ignored(root: str, repository: Repository | None, seen: RelevantChanges) -> None:
    present = [path for path, kind in seen.changes.items() if kind != "deleted"]
    if not present:
        return
    left_out = ignored(repository, present) if repository else ignored_without_repository(root, present)
    if left_out is None:
        seen.relist = True
        seen.changes = {path: kind for path, kind in seen.changes.items() if kind != "added"}
        return
    for path in left_out:
        seen.changes.pop(path, None)
