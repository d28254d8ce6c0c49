"""A folder as it is on disk, as a tree and a commit of its repository. Lives in the child.

Both are made with an index of their own in a temporary folder: the person's index, branch, stash and work tree are not
touched, and no ref points at what was made.
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

#: Files that git does not track and that are larger, in bytes, are data rather than source: they are left out.
LARGEST_UNTRACKED = 32 << 20


def tree_on_disk(repository: Repository, written: Sequence[str] = (), *, untracked: bool = False) -> str:
    """The tree of everything that is tracked below the root, as it is on disk, and of the written paths.

    With `untracked` also of files that git neither tracks nor ignores. "" where it cannot be made.
    """
    with temporary_folder() as folder:
        return _tree(repository, os.path.join(folder, "index"), written, untracked)


def commit_of(root: str, tree: str, message: str) -> str:
    """A commit of a tree after the last one, with no ref; "" where that failed."""
    head = git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    parent = ("-p", head.text) if head.ok else ()
    made = git(root, *AUTHOR, "commit-tree", tree, *parent, "-m", message)
    return made.text if made.ok else ""


def sweep() -> None:
    """Remove the temporary folders of those who were killed over a tree; without them git works as well."""
    with suppress(OSError):
        temporary.sweep()


def _tree(repository: Repository, index: str, written: Sequence[str], untracked: bool) -> str:
    theirs = os.path.join(repository.git_dir, "index")
    if os.path.isfile(theirs):
        shutil.copy2(theirs, index)  # by its time git tells which files may have changed since it was written
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


def _from_head(repository: Repository, index: str) -> bool:
    """Begin again from the last commit: an index in the middle of a merge is not a tree."""
    if os.path.exists(index):
        os.unlink(index)
    head = git(repository.root, "rev-parse", "--verify", "--quiet", "HEAD")
    return _with(repository, index, "read-tree", "HEAD" if head.ok else "--empty").ok


def _others(repository: Repository, index: str) -> list[str]:
    """What git neither tracks nor ignores; a repository that lies in there (it ends in `/`) is not ours to take, and
    what looks like a secret stays where it is."""
    told = _with(repository, index, "ls-files", "-z", "--others", "--exclude-standard")
    found = [os.fsdecode(path) for path in told.out.split(b"\0") if path and not path.endswith(b"/")]
    paths = Gate(Path(repository.root)).without_secrets(found)
    return [path for path in paths if _size(os.path.join(repository.root, path)) <= LARGEST_UNTRACKED]


def _add(repository: Repository, index: str, *pathspecs: str, update: bool = False) -> None:
    """Add them; one that cannot be read is left out, and the others are in."""
    if pathspecs:
        options = ("--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
        feed = b"\0".join(map(os.fsencode, pathspecs))
        _with(repository, index, "add", *(("--update",) if update else ()), *options, feed=feed)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0  # it went just now, and git will find nothing either


def _with(repository: Repository, index: str, *arguments: str, feed: bytes | None = None) -> Result:
    return git(repository.root, *arguments, feed=feed, index=index, seconds=LONG_SECONDS)
