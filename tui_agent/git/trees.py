"""Trees and commits of a folder's current state on disk. Runs in the child.

Uses a temporary index: the user's index, branch, stash and work tree are not modified, and no ref is
created.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.files import temporary
from tui_agent.files.gate import Gate
from tui_agent.git.process import Result, temporary_folder
from tui_agent.git.repository import AUTHOR, LONG_SECONDS, Repository, git, without_submodules

#: Larger untracked files, in bytes, are omitted as data.
LARGEST_UNTRACKED = 32 << 20


def tree_on_disk(repository: Repository, written: Sequence[str] = (), *, untracked: bool = False) -> str:
    """The tree of all tracked files below the root as on disk, and of the written paths.

    `untracked` includes files that are not ignored. Returns "" on failure.
    """
    with temporary_folder() as folder:
        index = os.path.join(folder, "index")
        theirs = os.path.join(repository.git_dir, "index")
        if os.path.isfile(theirs):
            shutil.copy2(theirs, index)  # its mtime limits the files that git has to compare
        for fresh in (False, True):
            if fresh and not _from_head(repository, index):
                return ""
            _add(repository, index, ".", *without_submodules(repository.root, index), update=True)
            if untracked:
                _add(repository, index, *(f":(literal){path}" for path in _others(repository, index)))
            feed = b"".join(os.fsencode(path) + b"\0" for path in written)
            _with(repository, index, "update-index", "--add", "--remove", "-z", "--stdin", feed=feed)
            told = _with(repository, index, "write-tree", "--missing-ok")
            if told.ok:
                return told.text
        return ""


def commit_of(root: str, tree: str, message: str) -> str:
    """A commit of a tree on top of HEAD without a ref; "" on failure."""
    head = git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    parent = ("-p", head.text) if head.ok else ()
    made = git(root, *AUTHOR, "commit-tree", tree, *parent, "-m", message)
    return made.text if made.ok else ""


def sweep() -> None:
    """Removes temporary folders of killed processes."""
    with suppress(OSError):
        temporary.sweep()


def _from_head(repository: Repository, index: str) -> bool:
    """Starts again from HEAD, because an index with conflicts cannot be written as a tree."""
    if os.path.exists(index):
        os.unlink(index)
    head = git(repository.root, "rev-parse", "--verify", "--quiet", "HEAD")
    return _with(repository, index, "read-tree", "HEAD" if head.ok else "--empty").ok


def _others(repository: Repository, index: str) -> list[str]:
    """Untracked paths that are not ignored, without nested repositories (ending in `/`), secrets and large
    files."""
    told = _with(repository, index, "ls-files", "-z", "--others", "--exclude-standard")
    found = [os.fsdecode(path) for path in told.out.split(b"\0") if path and not path.endswith(b"/")]
    paths = Gate(Path(repository.root)).without_secrets(found)
    return [path for path in paths if _size(os.path.join(repository.root, path)) <= LARGEST_UNTRACKED]


def _add(repository: Repository, index: str, *pathspecs: str, update: bool = False) -> None:
    if pathspecs:
        options = ("--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
        feed = b"\0".join(map(os.fsencode, pathspecs))
        _with(repository, index, "add", *(("--update",) if update else ()), *options, feed=feed)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _with(repository: Repository, index: str, *arguments: str, feed: bytes | None = None) -> Result:
    return git(repository.root, *arguments, feed=feed, index=index, seconds=LONG_SECONDS)
