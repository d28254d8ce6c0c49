"""Folders of this machine with the contents of a place, kept and updated by changes."""

from __future__ import annotations

import asyncio
import fcntl
import marshal
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tui_agent.errors import SessionError
from tui_agent.files.operating_system import read_start, remove_folder
from tui_agent.files.private import make_private, write_private
from tui_agent.places.contents import Contents, Identity, folders_of, later, read_item
from tui_agent.sandbox.layer_changes import LayerReader, Read
from tui_agent.sandbox.view_plan import ViewPlan
from tui_agent.workspace.copies import clone

#: Folders of one place, for commands at the same time; days after which an unused one is removed.
MOST, KEPT_DAYS = 16, 30
_LOCK, _RECORD = ".lock", "record"

Ignored = Callable[[Sequence[str]], Awaitable[set[str]]]
_Status = tuple[int, int, int, int, int]


class Copy(Protocol):
    async def open(self, contents: Contents) -> str:
        """Brings the contents there and returns the path of the copy. Raises `SessionError` and OSError."""
        ...

    def before(self, name: str) -> str:
        """Lines of the script of the run `name`, ahead of its command."""
        ...

    async def changes(self, since: float) -> Read:
        """Returns a command's changes since the copy was opened."""
        ...

    async def settle(self) -> None:
        """Records which files a worker changed, so that the next `open` sends only these."""
        ...

    def close(self) -> None: ...


class CopySlot:
    def __init__(self, parent: Path, key: str) -> None:
        """Takes a free folder, at best with the contents `key`. Raises OSError, and `SessionError` if all
        are in use. One command uses it at a time, by a lock. Blocking.
        """
        make_private(parent)
        held: list[tuple[Path, int, dict[str, Any]]] = []
        for number in range(MOST):
            path = parent / str(number)
            path.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                continue
            record: dict[str, Any] = {}
            with suppress(OSError, ValueError, EOFError, TypeError):
                found = marshal.loads(read_start(path / _RECORD))
                record = found if isinstance(found, dict) else {}
            held.append((path, lock, record))
            if record.get("key") == key or not record:
                break
        if not held:
            raise SessionError(f"{MOST} commands already use this place", "wait for one of them")
        chosen = next((one for one in held if one[2].get("key") == key), held[0])
        for path, lock, _ in held:
            if path != chosen[0]:
                os.close(lock)
        self.path, self._descriptor, self.record = chosen
        with suppress(OSError):
            os.utime(self.path / _RECORD)

    def save(self, record: dict[str, Any]) -> None:
        """Raises OSError."""
        self.record = record
        write_private(self.path / _RECORD, marshal.dumps(record), sync=False)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def sweep(folder: Path) -> None:
    """Blocking."""
    for path in folder.glob("*/*/*"):
        with suppress(OSError):
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if time.time() - os.stat(path / _RECORD).st_mtime > KEPT_DAYS * 86_400:
                    remove_folder(str(path))
            finally:
                os.close(lock)


class KeptFolder:
    """A folder with the contents. Files that git ignores stay in it for the next command."""

    def __init__(self, parent: Path, ignored: Ignored) -> None:
        self._parent, self._ignored = parent, ignored
        self._slot: CopySlot | None = None
        self._root = ""
        self._files: dict[str, tuple[Identity, _Status]] = {}
        self._clones = True

    async def open(self, contents: Contents) -> str:
        self._contents = contents
        await asyncio.to_thread(self._take)
        seen, unknown = await asyncio.to_thread(self._look)
        self._files = {path: known for path, known in self._files.items() if path in seen}
        kept = await ignored_of(unknown, self._ignored)
        await asyncio.to_thread(self._update, [path for path in unknown if path not in kept])
        return self._root

    def _take(self) -> None:
        self._slot = CopySlot(self._parent, self._contents.key)
        name = os.path.basename(self._contents.root) or "root"
        self._root, earlier = f"{self._slot.path}/{name}", self._slot.record.get("name", name)
        if earlier != name:
            with suppress(OSError):
                os.rename(f"{self._slot.path}/{earlier}", self._root)
        if os.path.islink(self._root):
            os.unlink(self._root)
        os.makedirs(self._root, 0o755, exist_ok=True)
        self._files = dict(self._slot.record.get("files", {}))

    def _look(self) -> tuple[set[str], dict[str, bool]]:
        """Returns unchanged files; other paths, and whether each is a folder."""
        folders = folders_of(self._files)
        unknown: dict[str, bool] = {}
        seen: set[str] = set()
        for folder in sorted(folders):
            for entry in _entries(f"{self._root}/{folder}" if folder else self._root):
                path = f"{folder}/{entry.name}" if folder else entry.name
                if path in self._files:
                    with suppress(OSError):
                        if self._files[path][1] == _status(entry.stat(follow_symlinks=False)):
                            seen.add(path)
                elif path not in folders or not entry.is_dir(follow_symlinks=False):
                    unknown[path] = entry.is_dir(follow_symlinks=False)
        return seen, unknown

    def _update(self, unwanted: Sequence[str]) -> None:
        contents, slot = self._contents, self._slot
        assert slot is not None
        earlier = slot.record.get("files", {})
        gone = [path for path in earlier if path not in contents.items]
        try:
            for path in (*unwanted, *gone):
                self._remove(path)
                self._files.pop(path, None)
            for folder in sorted(folders_of(gone) - {""}, reverse=True):
                with suppress(OSError):
                    if self._is_own(folder):
                        os.rmdir(f"{self._root}/{folder}")
            own: set[str] = set()
            for path, item in contents.items.items():
                known = self._files.get(path)
                if known is None or known[0] != item.identity or known[1][4] & 0o777 != item.mode | 0o200:
                    self._write(path, earlier.get(path), own)
        except PermissionError as error:
            raise SessionError(
                f"{error.filename or self._root} belongs to another user, so the copy cannot be updated",
                f"have the place write as you (such as --user), and remove {slot.path}",
            ) from error
        files = {path: known for path, known in self._files.items() if path in contents.items}
        self._files = files
        slot.save({"key": contents.key, "files": files, "name": os.path.basename(self._root)})

    def _remove(self, path: str) -> None:
        if not self._is_own(os.path.dirname(path)):
            return
        target = f"{self._root}/{path}"
        if os.path.isdir(target) and not os.path.islink(target):
            for inner, _, _ in os.walk(target):  # A command may have removed permissions.
                with suppress(OSError):
                    os.chmod(inner, 0o700)
            remove_folder(target)
        else:
            with suppress(FileNotFoundError):
                os.unlink(target)

    def _is_own(self, folder: str) -> bool:
        """Whether no part of the path is a link made by a command."""
        at = self._root
        for part in folder.split("/") if folder else ():
            at = f"{at}/{part}"
            try:
                if not stat.S_ISDIR(os.lstat(at).st_mode):
                    return False
            except OSError:
                return False
        return True

    def _make_folder(self, folder: str, own: set[str]) -> None:
        if folder in own or not folder:
            return
        self._make_folder(os.path.dirname(folder), own)
        target = f"{self._root}/{folder}"
        try:
            os.mkdir(target, 0o755)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(target).st_mode):
                os.unlink(target)
                os.mkdir(target, 0o755)
        own.add(folder)

    def _write(self, path: str, before: tuple[Identity, _Status] | None, own: set[str]) -> None:
        item, target = self._contents.items[path], f"{self._root}/{path}"
        self._make_folder(os.path.dirname(path), own)
        if before is not None or os.path.lexists(target):
            self._remove(path)
        self._files.pop(path, None)
        identity = item.identity
        if item.target:
            os.symlink(item.target, target)
        elif not self._cloned(path, target):
            found = read_item(self._contents.root, path, item)
            if found is None:
                return
            data, identity = found
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                file.write(data)
                os.fchmod(descriptor, item.mode | 0o200)
        if not item.target:
            time_of = later(item.mtime, before[1][1] if before else None)
            os.utime(target, ns=(time_of, time_of))
        self._files[path] = identity, _status(os.lstat(target))

    def _cloned(self, path: str, target: str) -> bool:
        item = self._contents.items[path]
        if not self._clones or item.content is not None:
            return False
        with suppress(OSError):
            source = os.open(f"{self._contents.root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(source, "rb") as given, open(target, "xb") as taken:
                if clone(taken.fileno(), given.fileno()):
                    os.fchmod(taken.fileno(), item.mode | 0o200)
                    return True
        self._clones = False
        with suppress(FileNotFoundError):
            os.unlink(target)
        return False

    def before(self, name: str) -> str:
        return ""

    async def changes(self, since: float) -> Read:
        seen, unknown = await asyncio.to_thread(self._look)
        folders = {path: True for path, is_folder in unknown.items() if is_folder}
        apart = await ignored_of(folders, self._ignored)
        if len(seen) == len(self._files) and unknown.keys() <= apart:
            return (), ""
        files = {path: (known[0], known[1], known[4]) for path, (_, known) in self._files.items()}
        assert self._slot is not None
        async with LayerReader() as reader:
            plan = plan_of(self._contents, str(self._slot.path))
            return await reader.of_copy(plan, files, since, tuple(apart))

    async def settle(self) -> None:
        """`open` compares all files."""

    def close(self) -> None:
        if self._slot is not None:
            self._slot.close()


async def ignored_of(paths: Mapping[str, bool], ignored: Ignored) -> set[str]:
    asked = {f"{path}/file" if folder else path: path for path, folder in paths.items()}
    return {asked[path] for path in await ignored([*asked])} if asked else set()


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as found:
        yield from found


def _status(status: os.stat_result) -> _Status:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode


def plan_of(contents: Contents, folder: str) -> ViewPlan:
    """Describes the copy below `folder` to the layer reader."""
    return ViewPlan(
        contents.root,
        "",
        (),
        {},
        (),
        (),
        (contents.root,),
        seeds=tuple(contents.seeds),
        isolated="landlock",
        folder=folder,
    )
