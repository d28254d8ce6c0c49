"""Private commits of the work tree as it is, and files as they were in one. Lives in the child.

It holds what git tracks below the root, as it is on disk, and the paths that were written, but nothing that git
ignores. The person's index, branch, stash and work tree are not touched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui_agent.git.repository import Repository, find_repository, git, ignored
from tui_agent.git.trees import commit_of, tree_on_disk

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
    tree = tree_on_disk(repository, written)
    return _keep(root, tree, f"{REFS}/{session}/{name}", name) if tree else ""


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


def is_kept(root: str, revision: str) -> bool:
    """Whether a commit is there: one that nothing names any more is taken away by git some day."""
    return not revision.startswith("-") and git(root, "cat-file", "-e", f"{revision}^{{commit}}").ok


def _keep(root: str, tree: str, ref: str, name: str) -> str:
    made = commit_of(root, tree, f"tui-agent checkpoint {name}")
    if not made:
        return ""
    kept = git(root, "-c", "core.logAllRefUpdates=false", "update-ref", "--no-deref", ref, made)
    return made if kept.ok else ""


def _told_one_by_one(repository: Repository, paths: Sequence[str]) -> set[str]:
    """Where git cannot tell about all at once (one lies in a submodule), those that it cannot tell about are left."""
    return {path for path in paths if ignored(repository, [path]) != set()}
