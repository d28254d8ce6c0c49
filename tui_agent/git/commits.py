"""Commits and hooks at the user's request, and private checkpoints of the folder. Runs in the child.

A commit contains only the given files in their reviewed versions; other staged changes stay staged. Signing
programs never run; hooks run only if the user approved exactly these. A file with a filter is committed only
if the filter is trusted.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tui_agent.files.gate import Gate
from tui_agent.files.git_folder import read_regular
from tui_agent.files.private import temporary_folder
from tui_agent.files.text import md5
from tui_agent.git.process import Result, listed
from tui_agent.git.repository import (
    AUTHOR,
    LONG_SECONDS,
    UNOPENED,
    Repository,
    find_repository,
    git,
    ignored,
    opened,
    persons_settings,
    status_entries,
    submodules,
    withheld_filters,
)

_AROUND_A_COMMIT: Final = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    *("reference-transaction", "post-index-change"),
)
_MOST: Final = 8 << 20


def hooks_folder(root: str) -> str:
    """Returns the repository's configured hooks folder, otherwise the user's; "" without a repository."""
    found = opened(root)
    if found is None:
        return ""
    settings = dict((*persons_settings(found), *found.entries))
    named = os.path.expanduser(settings.get("core.hookspath", ""))
    return os.path.join(found.work_tree, named) if named else os.path.join(found.common_dir, "hooks")


def find_hooks(root: str) -> dict[str, str]:
    folder = hooks_folder(root)
    found = {}
    for name in _AROUND_A_COMMIT if folder else ():
        place = os.path.join(folder, name)
        if os.path.isfile(place) and os.access(place, os.X_OK):
            try:
                found[name] = md5(read_regular(place, _MOST))
            except OSError:
                status = os.stat(place)
                found[name] = f"{status.st_size} {status.st_mtime_ns}"
    return found


MOST_BYTES: Final = 40_000
MOST_FILES: Final = 1000
_MOST_READ: Final = 32 << 20
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", UNOPENED)


def commit_plan(root: str, first: Sequence[str]) -> dict[str, Any]:
    """{is_repository, files, more, hooks}: files available for a commit, and its hooks by name.

    Each file is {path, mark, seen}: git's two characters, and its `seen_of`; `first` in front, then
    staged ones.
    """
    repository = find_repository(root)
    if repository is None:
        return {"is_repository": False, "files": [], "more": 0, "hooks": {}}
    how = ("--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", UNOPENED)
    told = git(root, "status", *how, "--", ".")
    marks = {
        path: mark
        for kind, mark, path in status_entries(repository, told)
        if kind in "1?" and path and not path.endswith("/")
    }
    wanted = [*(path for path in dict.fromkeys(first) if path in marks)]
    staged = [path for path, mark in marks.items() if mark[0] not in " ?"]
    order = list(dict.fromkeys((*wanted, *staged, *marks)))
    shown = order[:MOST_FILES]
    seen = seen_of(root, shown)
    return {
        "is_repository": True,
        "files": [{"path": path, "mark": marks[path], "seen": seen[path]} for path in shown],
        "more": len(order) - len(shown),
        "hooks": find_hooks(root),
    }


def commit_diff(root: str, paths: Sequence[str]) -> dict[str, Any]:
    """{diff, cut}"""
    told = b""
    if paths:
        told = git(root, "diff", *_PLAIN, "--relative", "HEAD", "--", *_literal(paths)).out
        told += "".join(f"new file: {path}\n" for path in _untracked(root, paths)).encode(errors="replace")
    return {"diff": told[:MOST_BYTES].decode(errors="replace"), "cut": len(told) > MOST_BYTES}


def seen_of(root: str, paths: Sequence[str]) -> dict[str, str]:
    """Identifies each file's content; "" if it cannot be read."""
    seen = dict.fromkeys(paths, "")
    for path in seen:
        place = os.path.join(root, path)
        with suppress(OSError):
            status = os.lstat(place)
            if stat.S_ISLNK(status.st_mode):
                seen[path] = md5(os.fsencode(os.readlink(place)))
            elif stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_READ:
                how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with open(os.open(place, how), "rb") as file:
                    seen[path] = md5(file.read())
            else:
                seen[path] = f"{status.st_size} {status.st_mtime_ns}"
    return seen


def commit(root: str, message: str, files: Mapping[str, str], hooks: Mapping[str, str]) -> dict[str, str]:
    """{commit, error}: commits the reviewed versions; the index of other files stays. `hooks`: approved
    hooks with their hashes.
    """
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
            git(root, "update-index", "--force-remove", "-z", "--stdin", feed=listed(new))
        return {"commit": "", "error": _why(done)}
    return {"commit": git(root, "rev-parse", "HEAD").text, "error": ""}


def _why_not(repository: Repository, files: Mapping[str, str], hooks: Mapping[str, str]) -> str:
    """Returns why a commit is not possible, or "". Not git's own check, which would open submodules."""
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
    words = git(root, "check-attr", "-z", "--stdin", "filter", feed=listed(paths)).out.split(b"\0")
    names = {
        os.fsdecode(value): os.fsdecode(path) for path, value in zip(words[::3], words[2::3], strict=False)
    }
    for name, required in withheld_filters(root).items() if names else ():
        if required and name in names:
            return f"{names[name]} needs the filter {name}, which runs only in a workspace that is trusted"
    return ""


def _untracked(root: str, paths: Sequence[str]) -> list[str]:
    told = git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *_literal(paths))
    return [os.fsdecode(name) for name in told.names]


def _literal(paths: Sequence[str]) -> list[str]:
    return [f":(literal){path}" for path in paths]


def _why(told: Result) -> str:
    return told.err.decode(errors="replace").strip()[:500] or told.text[:500] or "git gave no reason"


#: Larger untracked files are omitted as data.
LARGEST_UNTRACKED = 32 << 20
#: How often untracked files are listed while some of them vanish, and git's exit status for that.
MOST_LISTINGS, _NO_SUCH_PATH = 5, 128


def tree_on_disk(repository: Repository, written: Sequence[str] = (), *, untracked: bool = False) -> str:
    """Returns the tree of all tracked files below the root as on disk, and of the written paths; "" on
    failure. `untracked` adds files that are not ignored.
    """
    with temporary_folder() as folder:
        index = os.path.join(folder, "index")
        theirs = os.path.join(repository.git_dir, "index")
        if os.path.isfile(theirs):
            shutil.copy2(theirs, index)  # its mtime limits the files that git compares
        for fresh in (False, True):
            if fresh:  # from HEAD: an index with conflicts cannot be written
                if os.path.exists(index):
                    os.unlink(index)
                head = git(repository.root, "rev-parse", "--verify", "--quiet", "HEAD")
                if not _with(repository, index, "read-tree", "HEAD" if head.ok else "--empty").ok:
                    return ""
            # git would open submodules and use their configuration.
            inner = (f":(exclude,literal){path}" for path in submodules(repository.root, index))
            _add(repository, index, ".", *inner, update=True)
            if untracked:
                _add_untracked(repository, index)
            adding = ("update-index", "--add", "--remove", "-z", "--stdin")
            _with(repository, index, *adding, feed=listed(written))
            told = _with(repository, index, "write-tree", "--missing-ok")
            if told.ok:
                return told.text
        return ""


def commit_of(root: str, tree: str, message: str) -> str:
    """Returns a commit of a tree on top of HEAD without a ref; "" on failure."""
    head = git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    parent = ("-p", head.text) if head.ok else ()
    made = git(root, *AUTHOR, "commit-tree", tree, *parent, "-m", message)
    return made.text if made.ok else ""


def _add_untracked(repository: Repository, index: str) -> None:
    """git adds none of the files if one vanishes between its listing and its addition."""
    for _ in range(MOST_LISTINGS):
        others = _with(repository, index, "ls-files", "-z", "--others", "--exclude-standard").names
        found = [os.fsdecode(path) for path in others if not path.endswith(b"/")]
        small = []
        for path in Gate(Path(repository.root)).without_secrets(found):
            with suppress(OSError):
                if os.lstat(os.path.join(repository.root, path)).st_size <= LARGEST_UNTRACKED:
                    small.append(path)
        if not small or _add(repository, index, *_literal(small)).status != _NO_SUCH_PATH:
            return


def _add(repository: Repository, index: str, *pathspecs: str, update: bool = False) -> Result:
    options = ("--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    feed = b"\0".join(map(os.fsencode, pathspecs))
    return _with(repository, index, "add", *(("--update",) if update else ()), *options, feed=feed)


def _with(repository: Repository, index: str, *arguments: str, feed: bytes | None = None) -> Result:
    return git(repository.root, *arguments, feed=feed, index=index, seconds=LONG_SECONDS)


REFS = "refs/tui-agent"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def make_checkpoint(root: str, session: str, name: str, paths: Sequence[str]) -> str:
    """Commits the work tree to a ref of the session. Returns the commit id, or ""."""
    repository = find_repository(root)
    if repository is None or not _NAME.fullmatch(session) or not _NAME.fullmatch(name):
        return ""
    hidden = ignored(repository, paths) if paths else set()
    if hidden is None:
        hidden = {path for path in paths if ignored(repository, [path]) != set()}
    written = [path for path in paths if path not in hidden]
    tree = tree_on_disk(repository, written)
    made = commit_of(root, tree, f"tui-agent checkpoint {name}") if tree else ""
    if not made:
        return ""
    ref = f"{REFS}/{session}/{name}"
    kept = git(root, "-c", "core.logAllRefUpdates=false", "update-ref", "--no-deref", ref, made)
    return made if kept.ok else ""


def forget_checkpoints(root: str, session: str, names: Sequence[str] | None = None) -> int:
    """Returns the number of deleted checkpoints (`names` None: all)."""
    if not _NAME.fullmatch(session):
        return 0
    told = git(root, "for-each-ref", "--format=%(refname)", f"{REFS}/{session}/")
    wanted = None if names is None else {f"{REFS}/{session}/{name}" for name in names}
    refs = [ref for ref in told.text.split("\n") if ref and (wanted is None or ref in wanted)]
    return sum(git(root, "update-ref", "--no-deref", "-d", ref).ok for ref in refs)


def file_at(root: str, revision: str, path: str) -> bytes | None:
    repository = find_repository(root)
    if repository is None or revision.startswith("-"):
        return None
    told = git(root, "cat-file", "blob", f"{revision}:{repository.prefix}{path}")
    return told.out if told.ok else None


def is_kept(root: str, revision: str) -> bool:
    """Whether a commit exists; git removes unreachable ones."""
    return not revision.startswith("-") and git(root, "cat-file", "-e", f"{revision}^{{commit}}").ok
