"""The repository as the interface asks about it: private checkpoints, files in a commit, commits on request.

git itself runs in the child; here are only the questions.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent.errors import FileError
from tui_agent.processes.child import ChildProcess


class CommitPlan(Struct, frozen=True):
    """What a commit would hold: what is `staged`, or else these paths alone; `diff` may be `cut` at some length."""

    is_repository: bool = False
    staged: bool = False
    paths: tuple[str, ...] = ()
    diff: str = ""
    cut: bool = False


class Gone(Struct, frozen=True):
    """A file that is no longer at `path`: the hashes (MD5) that its content may have, its size in bytes, its inode (0:
    not known), and when it was there last, in seconds since the epoch."""

    path: str
    hashes: tuple[str, ...]
    size: int
    inode: int
    there_at: float


class GitClient:
    """Asks the child about the repository that a folder is in, if any."""

    def __init__(self, child: ChildProcess, root: Path) -> None:
        self._child = child
        self._root = root

    async def checkpoint(self, session: str, name: str, paths: Sequence[str]) -> str:
        """Keep the work tree as a private commit; its name, "" where that cannot be. Raises `ChildFailed`."""
        about = {"root": str(self._root), "session": session, "name": name, "paths": list(paths)}
        return await self._child.ask("git_checkpoint", about)

    async def forget_checkpoints(self, session: str, names: Sequence[str] | None = None) -> int:
        """Remove a session's private commits (all, or those named); how many went. Raises `ChildFailed`."""
        about = {"root": str(self._root), "session": session, "names": None if names is None else list(names)}
        return await self._child.ask("git_forget", about)

    async def file_at(self, revision: str, path: str) -> bytes | None:
        """A file as it is in a commit; None where it is not in there.

        Raises `FileError` where that commit is not kept any more, `ChildFailed`.
        """
        about = {"root": str(self._root), "revision": revision, "path": path}
        found = await self._child.ask("git_file", about)
        if found is False:
            raise FileError("the commit of that apply is not kept any more", "compare with another")
        return None if found is None else b64decode(found)

    async def renamed(self, gone: Sequence[Gone]) -> dict[str, str]:
        """Where files that are gone are now, by their old paths; the deleted are left out. Raises `ChildFailed`."""
        return await self._child.ask(
            "renamed", {"root": str(self._root), "gone": msgspec.to_builtins(list(gone))}
        )

    async def commit_plan(self, paths: Sequence[str]) -> CommitPlan:
        """What a commit would hold: what is staged, else those of the paths that changed. Raises `ChildFailed`."""
        found = await self._child.ask("git_commit_plan", {"root": str(self._root), "paths": list(paths)})
        return msgspec.convert(found, CommitPlan)

    async def commit(self, message: str, plan: CommitPlan) -> str:
        """Commit what the plan says; the commit's name. Raises `FileError` with git's reason, or `ChildFailed`."""
        about = {"root": str(self._root), "message": message, "paths": plan.paths, "staged": plan.staged}
        done = await self._child.ask("git_commit", about)
        if not done["commit"]:
            raise FileError(f"git did not commit ({done['error']})", "put that right, then commit again")
        return done["commit"]
