"""Private commits of the current work tree, and files in commits. Runs in the child.

A checkpoint contains tracked files below the root as they are on disk, and written paths, but no ignored
files. The user's index, branch, stash and work tree are not modified.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui_agent.git.repository import find_repository, git, ignored
from tui_agent.git.trees import commit_of, tree_on_disk

REFS = "refs/tui-agent"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def make_checkpoint(root: str, session: str, name: str, paths: Sequence[str]) -> str:
    """Commits the work tree to a ref of the session. Returns the commit id, or "" if not possible."""
    repository = find_repository(root)
    if repository is None or not _NAME.fullmatch(session) or not _NAME.fullmatch(name):
        return ""
    hidden = ignored(repository, paths) if paths else set()
    if hidden is None:
        hidden = {path for path in paths if ignored(repository, [path]) != set()}
    written = [path for path in paths if path not in hidden]
    tree = tree_on_disk(repository, written)
    return _keep(root, tree, f"{REFS}/{session}/{name}", name) if tree else ""


def forget_checkpoints(root: str, session: str, names: Sequence[str] | None = None) -> int:
    """Deletes a session's checkpoints, all or by name. Returns their number."""
    if not _NAME.fullmatch(session):
        return 0
    told = git(root, "for-each-ref", "--format=%(refname)", f"{REFS}/{session}/")
    wanted = None if names is None else {f"{REFS}/{session}/{name}" for name in names}
    refs = [ref for ref in told.text.split("\n") if ref and (wanted is None or ref in wanted)]
    return sum(git(root, "update-ref", "--no-deref", "-d", ref).ok for ref in refs)


def file_at(root: str, revision: str, path: str) -> bytes | None:
    """The blob of a file in a commit; None if missing."""
    repository = find_repository(root)
    if repository is None or revision.startswith("-"):
        return None
    told = git(root, "cat-file", "blob", f"{revision}:{repository.prefix}{path}")
    return told.out if told.ok else None


def is_kept(root: str, revision: str) -> bool:
    """Whether a commit exists; git eventually removes unreachable commits."""
    return not revision.startswith("-") and git(root, "cat-file", "-e", f"{revision}^{{commit}}").ok


def _keep(root: str, tree: str, ref: str, name: str) -> str:
    made = commit_of(root, tree, f"tui-agent checkpoint {name}")
    if not made:
        return ""
    kept = git(root, "-c", "core.logAllRefUpdates=false", "update-ref", "--no-deref", ref, made)
    return made if kept.ok else ""
