"""Commits that the person asked for, and what would go into one. Lives in the child.

What is staged is what is committed; where nothing is, the paths that were given. Hooks and signing programs are not
run, and the dialog that asks says so. A file that needs a filter is committed only where the filter may run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tui_agent.git.process import Result
from tui_agent.git.repository import (
    LONG_SECONDS,
    UNOPENED,
    Repository,
    find_repository,
    git,
    withheld_filters,
)

#: More of a diff says no more about what a commit is about.
MOST_BYTES = 40_000
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", UNOPENED)


def commit_plan(root: str, paths: Sequence[str]) -> dict[str, Any]:
    """{is_repository, staged, paths, diff, cut}: what a commit would hold; its diff up to some length."""
    repository = find_repository(root)
    if repository is None:
        return {"is_repository": False, "staged": False, "paths": [], "diff": "", "cut": False}
    staged = _names(git(root, "diff", *_PLAIN, "--cached", "--name-only", "-z", "--relative"))
    chosen = staged or _changed(root, paths)
    how = ("--cached",) if staged else ()
    told = _diff(root, how, chosen) if chosen else b""
    return {
        "is_repository": True,
        "staged": bool(staged),
        "paths": chosen,
        "diff": told[:MOST_BYTES].decode(errors="replace"),
        "cut": len(told) > MOST_BYTES,
    }


def commit(root: str, message: str, paths: Sequence[str], staged: bool) -> dict[str, str]:
    """{commit, error}: the commit of what is staged, or of these paths alone; the index of others stays as it is."""
    repository = find_repository(root)
    if repository is None:
        return {"commit": "", "error": "the folder is in no git repository"}
    if why := _why_not(repository, paths, staged):
        return {"commit": "", "error": why}
    how = ("--no-verify", "--no-gpg-sign", "--quiet", "--cleanup=strip", "--allow-empty", "--file=-")
    feed = message.encode(errors="replace")
    os.makedirs(os.path.join(repository.common_dir, "logs"), exist_ok=True)
    if not staged:
        new = _untracked(root, paths)
        if new and not (added := git(root, "add", "--intent-to-add", "--", *_literal(new))).ok:
            return {"commit": "", "error": _why(added)}
    only = () if staged else ("--only", "--", *_literal(paths))
    done = git(root, "commit", *how, *only, feed=feed, seconds=LONG_SECONDS)
    if not done.ok:
        return {"commit": "", "error": _why(done)}
    return {"commit": git(root, "rev-parse", "HEAD").text, "error": ""}


def _why_not(repository: Repository, paths: Sequence[str], staged: bool) -> str:
    """Why there can be no such commit. git itself would look into submodules to say that nothing changed."""
    root = repository.root
    against = ("--cached",) if staged else ("HEAD", "--", *_literal(paths))
    if git(root, "rev-parse", "--verify", "--quiet", "HEAD").ok:
        merging = os.path.exists(os.path.join(repository.git_dir, "MERGE_HEAD"))
        same = git(root, "diff", *_PLAIN, "--quiet", *against).ok
        if same and not merging and (staged or not _untracked(root, paths)):
            return "nothing has changed"
    names = {} if staged else _filtered(root, paths)
    for name, required in withheld_filters(root).items() if names else ():
        if required and name in names:
            return f"{names[name]} needs the filter {name}, which runs only in a workspace that is trusted"
    return ""


def _filtered(root: str, paths: Sequence[str]) -> dict[str, str]:
    """The filters that attributes name for these paths, each with one of them."""
    feed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = git(root, "check-attr", "-z", "--stdin", "filter", feed=feed).out.split(b"\0")
    return {
        os.fsdecode(value): os.fsdecode(path) for path, value in zip(words[::3], words[2::3], strict=False)
    }


def _changed(root: str, paths: Sequence[str]) -> list[str]:
    """Those of the paths that differ from the last commit, or are not tracked, and are not ignored."""
    if not paths:
        return []
    told = git(
        root,
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        UNOPENED,
        "--",
        *_literal(paths),
    )
    prefix = git(root, "rev-parse", "--show-prefix").text
    found = [os.fsdecode(record[3:]) for record in told.out.split(b"\0") if len(record) > 3]
    return [path[len(prefix) :] for path in found if path.startswith(prefix)]


def _untracked(root: str, paths: Sequence[str]) -> list[str]:
    told = git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *_literal(paths))
    return _names(told)


def _diff(root: str, how: Sequence[str], paths: Sequence[str]) -> bytes:
    """The diff against the last commit; of a file that is not tracked yet only its name is known."""
    against = () if how else ("HEAD",)
    told = git(root, "diff", *_PLAIN, "--relative", *how, *against, "--", *_literal(paths))
    new = [] if how else _untracked(root, paths)
    return told.out + "".join(f"new file: {path}\n" for path in new).encode(errors="replace")


def _names(told: Result) -> list[str]:
    return [os.fsdecode(name) for name in told.out.split(b"\0") if name]


def _literal(paths: Sequence[str]) -> list[str]:
    """Paths that mean themselves, whatever signs they hold."""
    return [f":(literal){path}" for path in paths]


def _why(told: Result) -> str:
    return told.err.decode(errors="replace").strip()[:500] or told.text[:500] or "git gave no reason"
