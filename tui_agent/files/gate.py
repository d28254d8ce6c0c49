"""Validates every path named by the model, a file or the user: inside the workspace, or refused.

Also detects a file's secrets, by name and content, and returns the text that may be sent.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from itertools import accumulate
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tui_agent.errors import FileError, LooksSecret, PathRefused, TooLarge
from tui_agent.files.masking import Hit, hits, hits_masked, values
from tui_agent.files.names import (
    MAX_NAME,
    display_path,
    fault_of_new,
    is_git,
    is_own,
    is_too_long,
    same_letters,
    without_case,
)
from tui_agent.files.operating_system import as_file_error, sentence
from tui_agent.files.secret_files import SecretFiles
from tui_agent.files.sensitive_paths import governs, is_secret
from tui_agent.files.text import TextFile, decode, encode

MAX_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathHandle(Struct, eq=False):
    """A path's open parent folder and the state of the entry. Close it after use.

    `name` is relative to `folder`. `parts` are the real components below the root with links resolved;
    `spelled` the requested ones in the disk's spelling. `missing` are the trailing nonexistent components,
    the first to be created in `folder`; `status` is then None. `is_link`: the path itself is a link; `links`
    are the paths of all followed links.
    """

    folder: int
    name: str
    parts: tuple[str, ...]
    spelled: tuple[str, ...]
    status: os.stat_result | None
    missing: tuple[str, ...]
    is_link: bool
    links: tuple[str, ...]

    @property
    def path(self) -> str:
        return "/".join(self.spelled) or "."

    @property
    def real(self) -> str:
        return "/".join(self.parts) or "."

    def make_parents(self) -> None:
        """Raises OSError."""
        for name in self.missing[:-1]:
            try:
                os.mkdir(name, dir_fd=self.folder)
            except FileExistsError:
                pass
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
    """Resolves a path. `ignore_case`: existing entries get their name on disk. Raises PathRefused for a
    broken, circular or outside link, an intermediate non-folder, or a system error.
    """
    going = _Resolver(root, path, parts, ignore_case)
    try:
        return going.to_end()
    except OSError as error:
        raise _refused(path, *sentence(error)) from error
    finally:
        going.close()


class _Resolver:
    """`folders` are descriptors from the root down. `pending`: components, each with whether the caller (not
    a link) wrote it.
    """

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
                depths = accumulate((-1 if part == ".." else 1 for part in ahead), initial=len(self.names))
                if target.startswith("/") or min(depths) < 0:  # it leaves the root, perhaps to return
                    root = self.root.parts
                    end = Path(os.path.realpath(os.path.join(self.root, *self.names, target))).parts
                    if end[: len(root)] != root:
                        raise self._leads_out()
                    while self.names:
                        self._up()
                    ahead = list(end[len(root) :])
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

    def _spot(
        self, parts: tuple[str, ...], status: os.stat_result | None, missing: tuple[str, ...] = ()
    ) -> PathHandle:
        name = parts[-1] if len(parts) > len(self.names) else "."
        folder, spelled, links = self.folders.pop(), tuple(self.spelled), tuple(self.links)
        return PathHandle(folder, name, parts, spelled, status, missing, self.is_link, links)

    def _leads_out(self) -> PathRefused:
        return _refused(self.path, "it is a link out of the workspace", "name a file inside it")


#: Why a change needs individual approval.
LOOKS_SECRET = "it looks like a secret"

Purpose = Literal["read", "write", "list"]
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20


class ResolvedPath(Struct, frozen=True):
    """A path valid only at the time of the check.

    `path` is relative, with `/`, in the disk's spelling ("." is the root); `real` has links resolved.
    `secret`: one of the file's names in the folder looks like a secret.
    """

    path: str
    real: str
    absolute: Path
    exists: bool
    secret: bool = False

    @property
    def governing(self) -> bool:
        return governs(self.path) or governs(self.real)


class Gate:
    """Admits paths inside one root. Raises PathRefused unless that is an accessible folder.

    `own` are tui-agent's excluded folders. `ignore_case`: the file system is case-insensitive. `aliases`
    are paths in a copy that are secrets by name only in the original folder.
    """

    def __init__(self, root: Path, own: Sequence[Path] = (), aliases: Collection[str] = ()) -> None:
        resolved = Path(os.path.realpath(root))
        try:
            os.close(os.open(resolved, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except NotADirectoryError as error:
            raise PathRefused(
                f"{display_path(str(root))} is not a folder", "name the folder to work in"
            ) from error
        except OSError as error:
            why, remedy = sentence(error)
            raise PathRefused(
                f"the folder {display_path(str(root))} cannot be opened, {why}", remedy
            ) from error
        self.root = resolved
        self.ignore_case = takes_case_for_nothing(self.root)
        owned = [Path(os.path.realpath(folder)).parts for folder in own]
        self.aliases = frozenset(aliases)
        self.secrets = SecretFiles(self.root)
        length = len(self.root.parts)
        self._closed = [
            parts[length:] for parts in owned if len(parts) > length and parts[:length] == self.root.parts
        ]

    def place(self, path: str, purpose: Purpose) -> ResolvedPath:
        """Resolves a relative path to `read` or `write` a file or `list` a folder. A missing path is valid
        if it could be created. Raises PathRefused.
        """
        with self.find(path, purpose) as spot:
            there, secret = spot.status is not None, self.is_secret(spot)
            return ResolvedPath(spot.path, spot.real, self.root.joinpath(*spot.parts), there, secret)

    def is_secret(self, spot: PathHandle) -> bool:
        """Whether a name of the file looks like a secret: the requested path, a link's, its own, or a
        previous one.
        """
        if any(map(is_secret, (spot.path, *spot.links, spot.real))) or spot.real in self.aliases:
            return True
        status = spot.status
        return status is not None and self.secrets.is_linked(spot.real, status)

    def find(self, path: str, purpose: Purpose) -> PathHandle:
        """Like `place`, but access through the returned descriptor is safe from path races."""
        if "\0" in path:
            raise _refused(path, "it contains a NUL character", "name it without")
        if path.startswith("/"):
            raise _refused(
                path, "it is absolute", "name it relative to the workspace, with / between folders"
            )
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            encodable = False
        else:
            encodable = True
        if not encodable or is_too_long(path):
            raise _refused(path, "it is too long or not valid Unicode", "name a shorter path")
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise _refused(path, "it contains `..`", "name it from the root of the workspace")
        if parts and parts[0] == "~":
            raise _refused(path, "it begins with ~", "name it relative to the workspace")
        if any(len(os.fsencode(part)) > MAX_NAME for part in parts):
            raise _refused(path, "a name in it is too long", "choose a shorter one")
        if purpose != "list" and (not parts or path.endswith(("/", "/."))):
            raise _refused(path, "it names a folder", "name a file")
        self._check_names(path, parts, purpose)
        spot = walk(self.root, path, parts, ignore_case=self.ignore_case)
        try:
            self._check_names(path, spot.parts, purpose)
            for name in spot.missing:
                fault = fault_of_new(name)
                if fault:
                    raise _refused(path, fault, "choose a plain name")
            if spot.missing and spot.missing == spot.parts and spot.missing[0].startswith("~"):
                raise _refused(path, "it begins with ~", "name it relative to the workspace")
            mode = spot.status.st_mode if spot.status else None
            if mode is None:
                pass
            elif purpose == "list":
                if not stat.S_ISDIR(mode):
                    raise _refused(path, "it is not a folder", "name a folder")
            elif stat.S_ISDIR(mode):
                raise _refused(path, "it is a folder", "name a file")
            elif not stat.S_ISREG(mode):
                raise _refused(path, "it is a pipe, a socket or a device", "name a regular file")
        except PathRefused:
            spot.close()
            raise
        return spot

    def without_secrets(self, paths: Iterable[str]) -> list[str]:
        """The paths need not exist. Blocking."""
        found = []
        for path in paths:
            secret = is_secret(path) or path in self.aliases
            with suppress(OSError):
                secret = secret or self.secrets.is_linked(path, os.lstat(self.root / path))
            if not secret:
                found.append(path)
        return found

    def linked_secrets(self) -> frozenset[str]:
        """Returns other names of secret files. Blocking."""
        return self.secrets.linked() | self.aliases

    def relative(self, path: str | os.PathLike[str], folder: Path | None = None) -> str:
        """Converts a user's path, absolute or relative to `folder` (default: the root). Purely textual: pass
        the result to `place`. Raises PathRefused for a path outside.
        """
        whole = os.path.normpath(os.path.join(folder or self.root, os.fspath(path)))
        for candidate in (
            whole,
            os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole)),
        ):
            parts = Path(candidate).parts
            if parts[: len(self.root.parts)] == self.root.parts:
                return "/".join(parts[len(self.root.parts) :]) or "."
        raise _refused(os.fspath(path), f"it is outside the workspace {self.root}", "name a file inside it")

    def _check_names(self, path: str, parts: Sequence[str], purpose: Purpose) -> None:
        if any(is_git(part) for part in parts):
            raise _refused(path, "files in .git belong to git", "use git instead")
        if purpose == "write" and any(is_own(part) for part in parts):
            raise _refused(path, "files in .tui-agent belong to tui-agent", "change them by hand")
        if any(tuple(parts[: len(closed)]) == closed for closed in self._closed):
            raise _refused(path, "tui-agent keeps its sessions and settings there", "name another file")


def read(gate: Gate, path: str, limit: int) -> bytes:
    """Returns a file's bytes, for data that may leave this machine: requests, uploads, copies.

    Raises LooksSecret if one of its names looks like a secret, PathRefused, TooLarge, or FileError.
    """
    data, secret = read_judged(gate, path, limit)
    if secret:
        raise LooksSecret(f"{display_path(path)} looks like a secret", "it is sent only with your consent")
    return data


def read_judged(gate: Gate, path: str, limit: int) -> tuple[bytes, bool]:
    """Like `read`, but also returns whether the file looks like a secret, for callers that ask the user."""
    with gate.find(path, "read") as spot, _opened(spot, path) as file:
        spot.status = os.fstat(file.fileno())  # of the opened file, not of an earlier one
        return _content(file, path, limit), gate.is_secret(spot)


def read_for_person(gate: Gate, path: str, limit: int) -> bytes:
    """For local use: the editor, comparing, merging and undoing."""
    with gate.find(path, "read") as spot, _opened(spot, path) as file:
        return _content(file, path, limit)


def _opened(spot: PathHandle, path: str) -> FileIO:
    with as_file_error(path, "read"):
        return FileIO(open_checked(spot))


def _content(file: FileIO, path: str, limit: int) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size > limit:
        raise _too_large(path, size, limit)
    with as_file_error(path, "read"):
        descriptor = file.fileno()
        chunks, left = [], limit + 1
        while left and (chunk := os.read(descriptor, min(left, _CHUNK))):
            chunks.append(chunk)
            left -= len(chunk)
        data = b"".join(chunks)
    if len(data) > limit:
        raise _too_large(path, len(data), limit)
    return data


def open_checked(spot: PathHandle) -> int:
    """Returns a read-only descriptor. Raises FileError or PathRefused if it is no longer a regular file, and
    OSError.
    """
    if spot.status is None:
        raise FileError(
            f"{display_path(spot.path)} does not exist", "check the name, or search for it with a pattern"
        )
    try:
        descriptor = os.open(spot.name, _READ, dir_fd=spot.folder)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise _refused(
            spot.path, "it was replaced while it was opened", "check the file and try again"
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(spot.path, "it is not a regular file", "name a file")
    return descriptor


def _too_large(path: str, size: int, limit: int) -> TooLarge:
    return TooLarge(
        f"{display_path(path)} has {size:,} bytes or more, the limit is {limit:,}",
        "look at a part of it with a command, such as `sed -n 1,200p`",
    )


def _refused(path: str, why: str, remedy: str) -> PathRefused:
    return PathRefused(f"{display_path(path) or 'an empty path'} was refused, {why}", remedy)


SecretChoice = Literal["mask", "send", "leave"]
#: The user's choices, by SHA-256 of the bytes.
Decisions = Mapping[str, SecretChoice]


class UndecidedSecret(LooksSecret):
    """The user has not decided. `digest` is the SHA-256 of the bytes; `named`: the file's names make it a
    secret.
    """

    def __init__(self, path: str, digest: str, what: str, *, named: bool) -> None:
        super().__init__(f"{display_path(path)} {what}", "it is sent only with your consent")
        self.path = path
        self.digest = digest
        self.named = named


class SecretFinding(Struct, frozen=True):
    """Secrets and the reason (the end of a sentence), or "" without secrets."""

    path: str
    data: bytes
    text: TextFile
    digest: str = ""
    hits: tuple[Hit, ...] = ()
    what: str = ""
    named: bool = False

    def choice(self, decisions: Decisions) -> SecretChoice | None:
        """Returns None if the user must decide."""
        return decisions.get(self.digest) if self.what else "send"

    def shown(self, decisions: Decisions) -> tuple[str, tuple[Hit, ...]]:
        """Returns the text that may be sent, and its masked places. Raises `UndecidedSecret`, or
        `LooksSecret` if the user refused.
        """
        match self.choice(decisions):
            case "send":
                return self.text.text, ()
            case "mask":
                return hits_masked(self.text.text, self.hits), self.hits
            case "leave":
                raise LooksSecret(f"{display_path(self.path)} {self.what}", "you chose to leave it out")
        raise UndecidedSecret(self.path, self.digest, self.what, named=self.named)


def find_secrets(path: str, data: bytes, text: TextFile, named: bool) -> SecretFinding:
    """If the file is secret by name (`named`), masks all except the names of its values. Blocking."""
    found = tuple(values(text.text) if named else hits(text.text))
    if named:
        what = "looks like a secret"
    elif found:
        line = text.text.count("\n", 0, found[0].start) + 1
        what = f"holds what looks like {found[0].what} (line {line})"
    else:
        return SecretFinding(path, data, text)
    return SecretFinding(path, data, text, hashlib.sha256(data).hexdigest(), found, what, named)


def find_secrets_in_file(gate: Gate, path: str, limit: int, newer: str | None = None) -> SecretFinding:
    """Blocking. Raises PathRefused, TooLarge, Undecodable or FileError."""
    data, named = read_judged(gate, path, limit)
    text = decode(data, path)
    if newer is not None:
        data = encode(text, newer)
        text = decode(data)
    return find_secrets(path, data, text, named)
