"""The repository as the interface asks about it: private checkpoints, files in a commit, commits on request.

git itself runs in the child; here are only the questions.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import FileError
from tui_agent.processes.child import ChildProcess


class ChangedFile(Struct, frozen=True):
    """A file that a commit can hold: git's two letters for it, and the hash of its content ("": it is not there).

    `applied` says that it holds what was applied here and is in no commit yet.
    """

    path: str
    mark: str
    seen: str
    applied: bool = False


class CommitPlan(Struct, frozen=True):
    """What a commit can hold, and the hooks that it can run: each by name, with the hash of its content.

    `more` files than these changed.
    """

    is_repository: bool = False
    files: tuple[ChangedFile, ...] = ()
    more: int = 0
    hooks: Mapping[str, str] = {}

    def of(self, paths: Collection[str], *, hooks: bool = False) -> CommitPlan:
        """The commit of these files alone; it runs hooks only where it is told so."""
        chosen = tuple(file for file in self.files if file.path in paths)
        return replace(self, files=chosen, hooks=self.hooks if hooks else {})

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.files]


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
            raise FileError("the commit of that apply is no longer kept", "compare with another")
        return None if found is None else b64decode(found)

    async def renamed(self, gone: Sequence[Gone]) -> dict[str, str]:
        """Where files that are gone are now, by their old paths; the deleted are left out. Raises `ChildFailed`."""
        return await self._child.ask(
            "renamed", {"root": str(self._root), "gone": msgspec.to_builtins(list(gone))}
        )

    async def commit_plan(self, first: Sequence[str]) -> CommitPlan:
        """What a commit can hold, these paths before others. Raises `ChildFailed`."""
        found = await self._child.ask("git_commit_plan", {"root": str(self._root), "first": list(first)})
        return msgspec.convert(found, CommitPlan)

    async def commit_diff(self, paths: Sequence[str]) -> tuple[str, bool]:
        """What a commit of these files would change, and whether it was cut at some length. Raises `ChildFailed`."""
        found = await self._child.ask("git_commit_diff", {"root": str(self._root), "paths": list(paths)})
        return found["diff"], found["cut"]

    async def commit(self, message: str, plan: CommitPlan) -> str:
        """Commit the files of the plan, with its hooks; the commit's name.

        Raises `FileError` with git's reason, or `ChildFailed`.
        """
        files = {file.path: file.seen for file in plan.files}
        about = {"root": str(self._root), "message": message, "files": files, "hooks": plan.hooks}
        done = await self._child.ask("git_commit", about)
        if not done["commit"]:
            raise FileError(f"git did not commit ({done['error']})", "correct that, then commit again")
        return done["commit"]
