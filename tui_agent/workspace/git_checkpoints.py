"""Private commits of the work tree as it is, and files as they were in one. Lives in the child.

A checkpoint is made with an index of its own in a temporary folder: the person's index, branch, stash and work tree
are not touched. It holds what git tracks below the root, as it is on disk, and the paths that were written, but
nothing that git ignores.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence

from tui_agent.workspace.git import AUTHOR, Repository, Result, find_repository, git, ignored

#: Under this lie the checkpoints of each session.
REFS = "refs/tui-agent"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def make_checkpoint(root: str, session: str, name: str, paths: Sequence[str]) -> str:
    """Keep the work tree as a commit under the session's refs; the commit's name, "" where that is not possible."""
    repository = find_repository(root)
    if repository is None or not _NAME.fullmatch(session) or not _NAME.fullmatch(name):
        return ""
    hidden = ignored(repository, paths) if paths else set()
    if hidden is None:
        hidden = _told_one_by_one(repository, paths)
    written = [path for path in paths if path not in hidden]
    with tempfile.TemporaryDirectory(prefix="tui-agent-index-") as folder:
        tree = _tree(repository, os.path.join(folder, "index"), written)
    return _commit(root, tree, f"{REFS}/{session}/{name}", name) if tree else ""


def forget_checkpoints(root: str, session: str, names: Sequence[str] | None = None) -> int:
    """Remove a session's checkpoints (all, or those named); how many went."""
    if not _NAME.fullmatch(session):
        return 0
    told = git(root, "for-each-ref", "--format=%(refname)", f"{REFS}/{session}/")
    wanted = None if names is None else {f"{REFS}/{session}/{name}" for name in names}
    refs = [ref for ref in told.text.split("\n") if ref and (wanted is None or ref in wanted)]
    return sum(git(root, "update-ref", "--no-deref", "-d", ref).ok for ref in refs)


def file_at(root: str, revision: str, path: str) -> bytes | None:
    """The content of a file in a commit, as git keeps it; None where it is not in there."""
    repository = find_repository(root)
    if repository is None or revision.startswith("-"):
        return None
    told = git(root, "cat-file", "blob", f"{revision}:{repository.prefix}{path}")
    return told.out if told.ok else None


def _tree(repository: Repository, index: str, written: Sequence[str]) -> str:
    """The tree of everything that is tracked, as it is on disk, and of the written paths."""
    theirs = git(repository.root, "rev-parse", "--git-path", "index").text
    theirs = os.path.join(repository.root, theirs)
    if os.path.isfile(theirs):
        shutil.copyfile(theirs, index)
    for fresh in (False, True):
        if fresh and not _from_head(repository, index):
            return ""
        _with(repository, index, "add", "--update", "--", ".")
        feed = b"".join(os.fsencode(path) + b"\0" for path in written)
        _with(repository, index, "update-index", "--add", "--remove", "-z", "--stdin", feed=feed)
        told = _with(repository, index, "write-tree")
        if told.ok:
            return told.text
    return ""


def _from_head(repository: Repository, index: str) -> bool:
    """Begin anew from the last commit: an index in the middle of a merge is no tree."""
    if os.path.exists(index):
        os.unlink(index)
    head = git(repository.root, "rev-parse", "--verify", "--quiet", "HEAD")
    return _with(repository, index, "read-tree", "HEAD" if head.ok else "--empty").ok


def _with(repository: Repository, index: str, *arguments: str, feed: bytes | None = None) -> Result:
    return git(repository.root, *arguments, feed=feed, index=index)


def _commit(root: str, tree: str, ref: str, name: str) -> str:
    head = git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    parent = ("-p", head.text) if head.ok else ()
    made = git(root, *AUTHOR, "commit-tree", tree, *parent, "-m", f"tui-agent checkpoint {name}")
    if not made.ok:
        return ""
    kept = git(root, "-c", "core.logAllRefUpdates=false", "update-ref", "--no-deref", ref, made.text)
    return made.text if kept.ok else ""


def _told_one_by_one(repository: Repository, paths: Sequence[str]) -> set[str]:
    """Where git cannot tell about all at once (one lies in a submodule), those that it cannot tell about are left."""
    return {path for path in paths if ignored(repository, [path]) != set()}
