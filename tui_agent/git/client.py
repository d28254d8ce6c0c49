"""Checkpoints, files in commits, and commits; git runs in the child."""

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
    """git's two-character mark, and the content hash ("" if deleted). `applied`: contains applied,
    uncommitted changes.
    """

    path: str
    mark: str
    seen: str
    applied: bool = False


class CommitPlan(Struct, frozen=True):
    """Files available for a commit, and its hooks with their hashes. `more` counts further files."""

    is_repository: bool = False
    files: tuple[ChangedFile, ...] = ()
    more: int = 0
    hooks: Mapping[str, str] = {}

    def of(self, paths: Collection[str], *, hooks: bool = False) -> CommitPlan:
        """Returns the plan for a subset of the files; hooks run only if requested."""
        chosen = tuple(file for file in self.files if file.path in paths)
        return replace(self, files=chosen, hooks=self.hooks if hooks else {})

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.files]


class MissingFile(Struct, frozen=True):
    """Possible content hashes (MD5), size in bytes, inode (0 if unknown), and the Unix time when it was last
    seen.
    """

    path: str
    hashes: tuple[str, ...]
    size: int
    inode: int
    there_at: float


class GitClient:
    def __init__(self, child: ChildProcess, root: Path) -> None:
        self._child = child
        self._root = root

    async def checkpoint(self, session: str, name: str, paths: Sequence[str]) -> str:
        """Commits the work tree privately. Returns the commit id, or "". Raises `ChildFailed`."""
        about = {"root": str(self._root), "session": session, "name": name, "paths": list(paths)}
        return await self._child.ask("git_checkpoint", about)

    async def forget_checkpoints(self, session: str, names: Sequence[str] | None = None) -> int:
        """Deletes checkpoints, all or by name; returns their number. Raises `ChildFailed`."""
        about = {"root": str(self._root), "session": session, "names": None if names is None else list(names)}
        return await self._child.ask("git_forget", about)

    async def file_at(self, revision: str, path: str) -> bytes | None:
        """Returns None if missing. Raises `FileError` if the commit is gone, or `ChildFailed`."""
        about = {"root": str(self._root), "revision": revision, "path": path}
        found = await self._child.ask("git_file", about)
        if found is False:
            raise FileError("the commit of that apply was deleted", "compare with another")
        return None if found is None else b64decode(found)

    async def renamed(self, gone: Sequence[MissingFile]) -> dict[str, str]:
        """Returns new paths by old path, without deleted files. Raises `ChildFailed`."""
        return await self._child.ask(
            "renamed", {"root": str(self._root), "gone": msgspec.to_builtins(list(gone))}
        )

    async def commit_plan(self, first: Sequence[str]) -> CommitPlan:
        """`first` in front. Raises `ChildFailed`."""
        found = await self._child.ask("git_commit_plan", {"root": str(self._root), "first": list(first)})
        return msgspec.convert(found, CommitPlan)

    async def commit_diff(self, paths: Sequence[str]) -> tuple[str, bool]:
        """Returns the diff, and whether it was truncated. Raises `ChildFailed`."""
        found = await self._child.ask("git_commit_diff", {"root": str(self._root), "paths": list(paths)})
        return found["diff"], found["cut"]

    async def commit(self, message: str, plan: CommitPlan) -> str:
        """Raises `FileError` with git's reason, or `ChildFailed`."""
        files = {file.path: file.seen for file in plan.files}
        about = {"root": str(self._root), "message": message, "files": files, "hooks": plan.hooks}
        done = await self._child.ask("git_commit", about)
        if not done["commit"]:
            raise FileError(f"git did not commit ({done['error']})", "correct that, then commit again")
        return done["commit"]
