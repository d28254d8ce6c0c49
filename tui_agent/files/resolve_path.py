"""Resolves a path to a descriptor, by component, without following links out of the root."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from tui_agent.errors import PathRefused
from tui_agent.files.names import display_path, same_letters, without_case
from tui_agent.files.operating_system import sentence

#: Linux's own limit.
MAX_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathHandle:
    """A path's open parent folder and the state of the entry. Close it after use.

    `name` is relative to `folder`. `parts` are the real components below the root with links resolved;
    `spelled` the requested ones in the disk's spelling. `missing` are the trailing nonexistent components,
    the first to be created in `folder`; `status` is then None. `is_link`: the path itself is a link; `links`
    are the paths of all followed links.
    """

    __slots__ = ("folder", "is_link", "links", "missing", "name", "parts", "spelled", "status")

    def __init__(
        self,
        folder: int,
        name: str,
        parts: tuple[str, ...],
        spelled: tuple[str, ...],
        status: os.stat_result | None,
        missing: tuple[str, ...],
        is_link: bool,
        links: tuple[str, ...],
    ) -> None:
        self.folder = folder
        self.name = name
        self.parts = parts
        self.spelled = spelled
        self.status = status
        self.missing = missing
        self.is_link = is_link
        self.links = links

    @property
    def path(self) -> str:
        return "/".join(self.spelled) or "."

    @property
    def real(self) -> str:
        return "/".join(self.parts) or "."

    def make_parents(self) -> None:
        """Create the missing folders and open the last. Raises OSError."""
        for name in self.missing[:-1]:
            try:
                os.mkdir(name, dir_fd=self.folder)
            except FileExistsError:
                pass  # created concurrently
            inner = os.open(name, _FOLDER, dir_fd=self.folder)
            os.close(self.folder)
            self.folder = inner
        self.missing = self.missing[-1:]

    def close(self) -> None:
        if self.folder >= 0:
            os.close(self.folder)
            self.folder = -1

    def __enter__(self) -> PathHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def takes_case_for_nothing(root: Path) -> bool:
    twin = root.with_name(root.name.swapcase())
    try:
        return twin != root and os.path.samefile(twin, root)
    except OSError:
        return False


def walk(root: Path, path: str, parts: Sequence[str], *, ignore_case: bool = False) -> PathHandle:
    """Resolves a path. `ignore_case`: the file system is case-insensitive; existing entries get their name on
    disk. Raises PathRefused for a broken, circular or outside link, an intermediate non-folder, or a system
    error."""
    going = _Resolver(root, path, parts, ignore_case)
    try:
        return going.to_end()
    except OSError as error:
        raise _refused(path, *sentence(error)) from error
    finally:
        going.close()


class _Resolver:
    """`folders` are descriptors from the root down, `names` their names. `pending`: components, each with
    whether the caller (not a link) wrote it."""

    def __init__(self, root: Path, path: str, parts: Sequence[str], ignore_case: bool) -> None:
        self.root = root
        self.ignore_case = ignore_case
        self.path = path
        self.pending = deque((part, True) for part in parts)
        self.folders: list[int] = []
        self.names: list[str] = []
        self.spelled: list[str] = []
        self.links: list[str] = []
        self.is_link = False

    def to_end(self) -> PathHandle:
        self.folders.append(os.open(self.root, _FOLDER))
        while self.pending:
            name, asked = self.pending.popleft()
            if name == "..":
                self._up()
                continue
            name, status = self._entry(name, asked)
            if asked:
                self.spelled.append(name)
            if status is None:
                if not asked:
                    raise _refused(
                        self.path, "it is a link to something that does not exist", "name an existing file"
                    )
                rest = [part for part, _ in self.pending]
                self.spelled.extend(rest)
                return self._spot((*self.names, name, *rest), None, (name, *rest))
            if stat.S_ISLNK(status.st_mode):
                self.links.append("/".join((*self.names, name)))
                if len(self.links) > MAX_LINKS:
                    raise _refused(self.path, "its links form a loop", "name the file itself")
                self.is_link = not any(asked for _, asked in self.pending)
                target = os.readlink(name, dir_fd=self.folders[-1])
                ahead = [part for part in target.split("/") if part not in ("", ".")]
                if target.startswith("/") or self._climbs_out(ahead):
                    ahead = self._from_root(os.path.join(self.root, *self.names, target))
                self.pending.extendleft((part, False) for part in reversed(ahead))
            elif not self.pending:
                return self._spot((*self.names, name), status)
            else:
                try:
                    self.folders.append(os.open(name, _FOLDER, dir_fd=self.folders[-1]))
                except OSError as error:
                    if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                        raise
                    why = f"{display_path('/'.join((*self.names, name)))} is not a folder"
                    raise _refused(self.path, why, "check the path") from error
                self.names.append(name)
        return self._spot(tuple(self.names), os.fstat(self.folders[-1]))

    def close(self) -> None:
        for folder in self.folders:
            os.close(folder)
        self.folders.clear()

    def _entry(self, name: str, asked: bool) -> tuple[str, os.stat_result | None]:
        """Returns the entry of a name, or one equal after Unicode normalization."""
        status = self._status(name)
        if status is not None and self.ignore_case:
            names = os.listdir(self.folders[-1])
            if name in names:
                on_disk = name
            else:
                on_disk = next((other for other in names if without_case(other) == without_case(name)), name)
            return on_disk, status
        if status is not None or not asked or name.isascii():
            return name, status
        twins = [other for other in os.listdir(self.folders[-1]) if same_letters(other) == same_letters(name)]
        return (twins[0], self._status(twins[0])) if len(twins) == 1 else (name, None)

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.folders[-1], follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _up(self) -> None:
        if not self.names:
            raise self._leads_out()
        os.close(self.folders.pop())
        self.names.pop()

    def _climbs_out(self, ahead: Sequence[str]) -> bool:
        depth = len(self.names)
        for part in ahead:
            depth += -1 if part == ".." else 1
            if depth < 0:
                return True
        return False

    def _from_root(self, target: str) -> list[str]:
        root = self.root.parts
        parts = Path(os.path.realpath(target)).parts
        if parts[: len(root)] != root:
            raise self._leads_out()
        while self.names:
            self._up()
        return list(parts[len(root) :])

    def _spot(
        self, parts: tuple[str, ...], status: os.stat_result | None, missing: tuple[str, ...] = ()
    ) -> PathHandle:
        name = parts[-1] if len(parts) > len(self.names) else "."
        folder, spelled, links = self.folders.pop(), tuple(self.spelled), tuple(self.links)
        return PathHandle(folder, name, parts, spelled, status, missing, self.is_link, links)

    def _leads_out(self) -> PathRefused:
        return _refused(self.path, "it is a link out of the workspace", "name a file inside it")


def _refused(path: str, why: str, remedy: str) -> PathRefused:
    return PathRefused(f"{display_path(path)} was refused, {why}", remedy)
