"""Commits and hooks, only at the user's request. Runs in the child.

A commit contains only the given files in their reviewed versions; other staged changes stay staged. Signing
programs never run; hooks run only if the user approved exactly these. A file with a filter is committed only
if the filter is trusted.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tui_agent.files.git_folder import read_regular
from tui_agent.git.process import Result
from tui_agent.git.repository import (
    LONG_SECONDS,
    UNOPENED,
    Repository,
    find_repository,
    git,
    opened,
    persons_settings,
    withheld_filters,
)

_AROUND_A_COMMIT: Final = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    *("reference-transaction", "post-index-change"),
)
#: Larger hooks are identified by size and time.
_MOST: Final = 8 << 20


def hooks_folder(root: str) -> str:
    """Returns the repository's configured hooks folder, by default the user's; "" without a repository."""
    found = opened(root)
    if found is None:
        return ""
    settings = dict((*persons_settings(found), *found.entries))
    named = os.path.expanduser(settings.get("core.hookspath", ""))
    return os.path.join(found.work_tree, named) if named else os.path.join(found.common_dir, "hooks")


def find_hooks(root: str) -> dict[str, str]:
    folder = hooks_folder(root)
    places = {name: os.path.join(folder, name) for name in _AROUND_A_COMMIT} if folder else {}
    return {
        name: _content(place)
        for name, place in places.items()
        if os.path.isfile(place) and os.access(place, os.X_OK)
    }


def _content(place: str) -> str:
    try:
        return hashlib.md5(read_regular(place, _MOST), usedforsecurity=False).hexdigest()
    except OSError:
        status = os.stat(place)
        return f"{status.st_size} {status.st_mtime_ns}"


MOST_BYTES: Final = 40_000
#: Further files are only counted.
MOST_FILES: Final = 1000
#: Larger files are identified by size and time.
_MOST_READ: Final = 32 << 20
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", UNOPENED)


def commit_plan(root: str, first: Sequence[str]) -> dict[str, Any]:
    """{is_repository, files, more, hooks}: files available for a commit, and its hooks by name.

    Each file is {path, mark, seen}: git's two characters, and its `seen_of`; `first` in front, then staged
    ones.
    """
    repository = find_repository(root)
    if repository is None:
        return {"is_repository": False, "files": [], "more": 0, "hooks": {}}
    marks = dict(_changed(repository))
    wanted = [*(path for path in dict.fromkeys(first) if path in marks)]
    staged = [path for path, mark in marks.items() if mark[0] not in " ?"]
    order = list(dict.fromkeys((*wanted, *staged, *marks)))
    told = order[:MOST_FILES]
    seen = seen_of(root, told)
    return {
        "is_repository": True,
        "files": [{"path": path, "mark": marks[path], "seen": seen[path]} for path in told],
        "more": len(order) - len(told),
        "hooks": find_hooks(root),
    }


def commit_diff(root: str, paths: Sequence[str]) -> dict[str, Any]:
    told = b""
    if paths:
        told = git(root, "diff", *_PLAIN, "--relative", "HEAD", "--", *_literal(paths)).out
        told += "".join(f"new file: {path}\n" for path in _untracked(root, paths)).encode(errors="replace")
    return {"diff": told[:MOST_BYTES].decode(errors="replace"), "cut": len(told) > MOST_BYTES}


def seen_of(root: str, paths: Sequence[str]) -> dict[str, str]:
    return {path: _seen(os.path.join(root, path)) for path in paths}


def commit(root: str, message: str, files: Mapping[str, str], hooks: Mapping[str, str]) -> dict[str, str]:
    """{commit, error}: commits the reviewed versions; the index of other files stays. `hooks`: approved hooks
    with their hashes."""
    repository = find_repository(root)
    if repository is None:
        return {"commit": "", "error": "the folder is in no git repository"}
    if why := _why_not(repository, files, hooks):
        return {"commit": "", "error": why}
    how = ("--no-gpg-sign", "--quiet", "--cleanup=strip", "--allow-empty", "--file=-")
    feed = message.encode(errors="replace")
    os.makedirs(os.path.join(repository.common_dir, "logs"), exist_ok=True)
    new = _untracked(root, list(files))
    if new and not (added := git(root, "add", "--intent-to-add", "--", *_literal(new))).ok:
        return {"commit": "", "error": _why(added)}
    done = git(
        root,
        *("commit", *how, *(() if hooks else ("--no-verify",)), "--only", "--", *_literal(list(files))),
        feed=feed,
        hooks=hooks_folder(root) if hooks else "",
        seconds=LONG_SECONDS,
    )
    if not done.ok:
        if new:
            gone = b"".join(os.fsencode(path) + b"\0" for path in new)
            git(root, "update-index", "--force-remove", "-z", "--stdin", feed=gone)
        return {"commit": "", "error": _why(done)}
    return {"commit": git(root, "rev-parse", "HEAD").text, "error": ""}


def _why_not(repository: Repository, files: Mapping[str, str], hooks: Mapping[str, str]) -> str:
    """Returns the reason why a commit is not possible, or "". Not git's own check, which would open
    submodules."""
    root, paths = repository.root, list(files)
    moved = [path for path, seen in seen_of(root, paths).items() if seen != files[path]]
    if moved:
        return f"{moved[0]} has changed since it was shown"
    if hooks and dict(hooks) != find_hooks(root):
        return "the hooks have changed since they were shown"
    if os.path.exists(os.path.join(repository.git_dir, "MERGE_HEAD")):
        return "a merge is in progress: commit it with git"
    if not paths:
        return "no file is selected"
    if git(root, "rev-parse", "--verify", "--quiet", "HEAD").ok:
        same = git(root, "diff", *_PLAIN, "--quiet", "HEAD", "--", *_literal(paths)).ok
        if same and not _untracked(root, paths):
            return "nothing has changed"
    feed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = git(root, "check-attr", "-z", "--stdin", "filter", feed=feed).out.split(b"\0")
    names = {
        os.fsdecode(value): os.fsdecode(path) for path, value in zip(words[::3], words[2::3], strict=False)
    }
    for name, required in withheld_filters(root).items() if names else ():
        if required and name in names:
            return f"{names[name]} needs the filter {name}, which runs only in a workspace that is trusted"
    return ""


def _seen(place: str) -> str:
    try:
        status = os.lstat(place)
        if stat.S_ISLNK(status.st_mode):
            return _hash(os.fsencode(os.readlink(place)))
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_READ:
            return f"{status.st_size} {status.st_mtime_ns}"
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return _hash(file.read())
    except OSError:
        return ""


def _hash(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _changed(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yields changed and untracked paths with marks, without submodules and nested repositories."""
    how = ("--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", UNOPENED)
    told = git(repository.root, "status", *how, "--", ".")
    for record in map(os.fsdecode, told.out.split(b"\0")):
        kind, _, rest = record.partition(" ")
        mark, path = "??", rest
        if kind == "1":
            words = rest.split(" ", 7)
            mark, path = words[0].replace(".", " "), "" if words[1].startswith("S") else words[7]
        elif kind != "?":
            continue
        if (
            path.startswith(repository.prefix)
            and len(path) > len(repository.prefix)
            and not path.endswith("/")
        ):
            yield path[len(repository.prefix) :], mark


def _untracked(root: str, paths: Sequence[str]) -> list[str]:
    told = git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *_literal(paths))
    return [os.fsdecode(name) for name in told.out.split(b"\0") if name]


def _literal(paths: Sequence[str]) -> list[str]:
    return [f":(literal){path}" for path in paths]


def _why(told: Result) -> str:
    return told.err.decode(errors="replace").strip()[:500] or told.text[:500] or "git gave no reason"
