"""Work copies of the folder: worktrees, or plain copies without git."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

import msgspec
from msgspec import Struct

from tui_agent.errors import ChildFailed, FileError, Interrupted, TuiAgentError
from tui_agent.files.batch import mode_on_disk, write_file
from tui_agent.files.gate import Gate, read
from tui_agent.files.operating_system import as_file_error, remove_folder, sentence
from tui_agent.files.private import make_private
from tui_agent.processes.background import start_task
from tui_agent.processes.child import ChildProcess
from tui_agent.workspace.index import Index

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: Linux ioctl: shares a file's blocks until one is written.
_FICLONE = 0x40049409
#: Seconds to keep shared files after the last use of a copy, and after preparation.
KEPT_SECONDS, AHEAD_SECONDS = 30.0, 300.0
#: Maximum bytes of an ignored file in a work copy.
LARGEST_BROUGHT = 10_000_000


def copy_paths(root: Path, folder: Path, paths: Sequence[str], stop: threading.Event) -> None:
    """Copies files and links at these paths below `root` (resolved) into a new folder. Blocks.

    Skips outside links, special files, and files removed meanwhile. Raises FileError, and Interrupted if
    `stop` is set, after cleaning up.
    """
    try:
        make_private(folder.parent)
        os.mkdir(folder, mode=0o700)
        copying = _Copying(str(root), str(folder))
        for path in paths:
            if stop.is_set():
                raise Interrupted("The copy of the folder was stopped", "make it again")
            copying.take(path)
    except FileExistsError as error:
        raise FileError(f"The work copy {folder} already exists", "remove it first") from error
    except (OSError, Interrupted) as error:
        with suppress(OSError):
            remove_folder(str(folder))
        if isinstance(error, Interrupted):
            raise
        why, remedy = sentence(error)
        raise FileError(f"The work copy {folder} could not be made, {why}", remedy) from error


class _Copying:
    def __init__(self, root: str, target: str) -> None:
        self._root = root
        self._target = target
        self._folders: dict[str, bool] = {"": True}

    def take(self, path: str) -> None:
        if not self._is_own_folder(os.path.dirname(path)):
            return
        source, target = os.path.join(self._root, path), os.path.join(self._target, path)
        try:
            status = os.lstat(source)
            if stat.S_ISLNK(status.st_mode):
                end, there = os.path.realpath(source), os.readlink(source)
                if os.path.commonpath([end, self._root]) == self._root:
                    relative = os.path.relpath(end, os.path.dirname(source))
                    os.symlink(relative if os.path.isabs(there) else there, target)
            elif stat.S_ISREG(status.st_mode):
                with open(os.open(source, _READ), "rb") as given, open(target, "xb") as taken:
                    status = os.fstat(given.fileno())
                    if stat.S_ISREG(status.st_mode):
                        copy_content(given, taken)
                        os.fchmod(taken.fileno(), stat.S_IMODE(status.st_mode))
        except FileNotFoundError:
            return

    def _is_own_folder(self, folder: str) -> bool:
        if folder in self._folders:
            return self._folders[folder]
        own = self._is_own_folder(os.path.dirname(folder))
        if own:
            try:
                own = stat.S_ISDIR(os.lstat(os.path.join(self._root, folder)).st_mode)
            except OSError:
                own = False
        if own:
            os.mkdir(os.path.join(self._target, folder))
        self._folders[folder] = own
        return own


def copy_content(source: IO[bytes], target: IO[bytes]) -> None:
    """Shares the file's blocks if possible."""
    if not clone(target.fileno(), source.fileno()):
        shutil.copyfileobj(source, target, 1 << 20)


def clone(target: int, source: int) -> bool:
    """Returns False without support."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


class WorkCopy(Struct, frozen=True):
    """`missing` are submodules, which are empty."""

    folder: str
    root: str
    kind: Literal["worktree", "copy"]
    missing: tuple[str, ...] = ()


class WorkCopies:
    def __init__(self, child: ChildProcess, gate: Gate, index: Index) -> None:
        self._child = child
        self._gate = gate
        self._index = index
        self._tidying: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def snapshot(self) -> str:
        """Returns a private commit of the folder as on disk, without ignored files; "" without a repository.
        Raises `ChildFailed`.
        """
        return await self._child.ask("git_snapshot", {"root": str(self._gate.root)})

    async def prepare(self, parent: Path) -> None:
        """Prepares the shared files of copies, so that the first copy is as fast as later
        ones. Raises `FileError` or `ChildFailed`.
        """
        self._tidy_later(parent, AHEAD_SECONDS)
        about = {"root": str(self._gate.root), "folder": str(parent)}
        await self._child.ask("git_worktrees_prepare", about)

    async def make(self, folder: Path, snapshot: str) -> WorkCopy:
        """Copies a snapshot ("": the indexed paths) to a new folder. Cleans up on failure or cancellation.
        Raises `FileError` or `ChildFailed`.
        """
        self._keep(folder.parent)
        try:
            if snapshot:
                with suppress(FileError):  # fallback: a plain copy
                    about = {"root": str(self._gate.root), "commit": snapshot, "folder": str(folder)}
                    made = await self._child.ask("git_worktree_add", about)
                    missing = msgspec.convert(made["submodules"], tuple[str, ...])
                    return WorkCopy(str(folder), made["root"], "worktree", missing)
            return await self._plain(folder)
        except (asyncio.CancelledError, ChildFailed):
            await asyncio.shield(self.remove(folder))
            raise
        finally:
            self._tidy_later(folder.parent)

    async def remove(self, copy: WorkCopy | Path) -> None:
        """Removes a complete or partial copy, and later the shared files. Raises `FileError`."""
        folder = Path(copy.folder) if isinstance(copy, WorkCopy) else copy
        self._keep(folder.parent)
        about = {"root": str(self._gate.root), "folder": str(folder)}
        try:
            await self._child.ask("git_worktree_remove", about)
        except ChildFailed:  # the next start unregisters it
            with as_file_error(folder, "removed"):
                await asyncio.to_thread(remove_folder, str(folder))
        finally:
            self._tidy_later(folder.parent)

    async def close(self) -> None:
        for folder in list(self._tidying):
            self._tidy(folder)
        await asyncio.gather(*self._tasks)

    async def copy_missing(self, copy: WorkCopy, paths: Sequence[str]) -> tuple[str, ...]:
        """Copies files missing from the copy, for example ignored by git. Returns those that failed."""
        return await asyncio.to_thread(_copy_missing, self._gate, Path(copy.root), paths)

    def _keep(self, parent: Path) -> None:
        waiting = self._tidying.pop(str(parent), None)
        if waiting is not None:
            waiting.cancel()

    def _tidy_later(self, parent: Path, seconds: float | None = None) -> None:
        self._keep(parent)
        loop = asyncio.get_running_loop()
        self._tidying[str(parent)] = loop.call_later(seconds or KEPT_SECONDS, self._tidy, str(parent))

    def _tidy(self, parent: str) -> None:
        self._tidying.pop(parent).cancel()
        start_task(self._tasks, self._tidied(parent))

    async def _tidied(self, parent: str) -> None:
        about = {"root": str(self._gate.root), "folder": parent}
        with suppress(FileError, ChildFailed):  # left to the next start
            await self._child.ask("git_worktrees_tidy", about)

    async def _plain(self, folder: Path) -> WorkCopy:
        stop = threading.Event()
        paths = await asyncio.to_thread(self._gate.without_secrets, self._index.paths)
        copying = asyncio.ensure_future(asyncio.to_thread(copy_paths, self._gate.root, folder, paths, stop))
        try:
            await asyncio.shield(copying)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([copying])
            raise
        return WorkCopy(str(folder), str(folder), "copy")


def _copy_missing(gate: Gate, root: Path, paths: Sequence[str]) -> tuple[str, ...]:
    target, failed = Gate(root), []
    for path in paths:
        try:
            if not target.place(path, "write").exists:
                content = read(gate, path, LARGEST_BROUGHT)
                write_file(target, path, content, "", mode=mode_on_disk(gate, path))
        except TuiAgentError:
            failed.append(path)
    return tuple(failed)
