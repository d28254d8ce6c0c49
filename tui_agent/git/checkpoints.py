"""Trees and private commits of a folder's state on disk, and files in commits. Runs in the child.

Trees use a temporary index, and no ref is created. A checkpoint contains tracked files below the root as on
disk, and written paths, but no ignored files. The user's index, branch, stash and work tree stay.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.files import private
from tui_agent.files.gate import Gate
from tui_agent.git.process import Result, temporary_folder
from tui_agent.git.repository import (
    AUTHOR,
    LONG_SECONDS,
    Repository,
    find_repository,
    git,
    ignored,
    without_submodules,
)

#: Larger untracked files are omitted as data.
LARGEST_UNTRACKED = 32 << 20


def tree_on_disk(repository: Repository, written: Sequence[str] = (), *, untracked: bool = False) -> str:
    """Returns the tree of all tracked files below the root as on disk, and of the written paths; "" on
    failure. `untracked` adds files that are not ignored."""
    with temporary_folder() as folder:
        index = os.path.join(folder, "index")
        theirs = os.path.join(repository.git_dir, "index")
        if os.path.isfile(theirs):
            shutil.copy2(theirs, index)  # its mtime limits the files that git compares
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
    """Returns a commit of a tree on top of HEAD without a ref; "" on failure."""
    head = git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    parent = ("-p", head.text) if head.ok else ()
    made = git(root, *AUTHOR, "commit-tree", tree, *parent, "-m", message)
    return made.text if made.ok else ""


def sweep() -> None:
    with suppress(OSError):
        private.sweep()


def _from_head(repository: Repository, index: str) -> bool:
    """Starts again from HEAD: an index with conflicts cannot be written."""
    if os.path.exists(index):
        os.unlink(index)
    head = git(repository.root, "rev-parse", "--verify", "--quiet", "HEAD")
    return _with(repository, index, "read-tree", "HEAD" if head.ok else "--empty").ok


def _others(repository: Repository, index: str) -> list[str]:
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
    """Returns their number."""
    if not _NAME.fullmatch(session):
        return 0
    told = git(root, "for-each-ref", "--format=%(refname)", f"{REFS}/{session}/")
    wanted = None if names is None else {f"{REFS}/{session}/{name}" for name in names}
    refs = [ref for ref in told.text.split("\n") if ref and (wanted is None or ref in wanted)]
    return sum(git(root, "update-ref", "--no-deref", "-d", ref).ok for ref in refs)


def file_at(root: str, revision: str, path: str) -> bytes | None:
    """None if missing."""
    repository = find_repository(root)
    if repository is None or revision.startswith("-"):
        return None
    told = git(root, "cat-file", "blob", f"{revision}:{repository.prefix}{path}")
    return told.out if told.ok else None


def is_kept(root: str, revision: str) -> bool:
    """Whether a commit exists; git removes unreachable ones."""
    return not revision.startswith("-") and git(root, "cat-file", "-e", f"{revision}^{{commit}}").ok
