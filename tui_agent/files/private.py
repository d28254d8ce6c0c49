"""Private files and folders for tui-agent's data, independent of the umask.

Temporary folders are in a private folder of the user, so that others cannot predict or occupy them.
Existing workspace and user-specified folders keep their permissions; tui-agent's own open folders are
restricted.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tui_agent.files import operating_system
from tui_agent.files.numbers import whole_number
from tui_agent.files.operating_system import read_start, remove_folder

FILE_MODE, FOLDER_MODE = 0o600, 0o700
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(folder: Path | str) -> None:
    """Creates a folder and its parents with mode 0700. Restricts an existing one, but not existing parents.
    Raises OSError.
    """
    folder = Path(folder)
    try:
        status = folder.stat()
    except FileNotFoundError:
        _make(folder)
        return
    if status.st_uid == os.geteuid() and status.st_mode & _OPEN_TO_OTHERS:
        folder.chmod(FOLDER_MODE)


def open_private(path: Path | str, flags: int) -> int:
    """Returns a descriptor of our file, mode 0600, created with `O_CREAT`. Other file types, such as a pipe,
    keep their permissions and do not block. Raises OSError.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, FILE_MODE)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_private(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Replaces our file atomically; creates its folder. Raises OSError. Without `sync` a power failure can
    lose both versions.
    """
    make_private(path.parent)
    replace_private(path, content, sync=sync)


def replace_private(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Like `write_private`, in an existing folder, possibly the user's. Raises OSError."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if sync:
                operating_system.sync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(path.parent)


def sync_new(*paths: Path) -> None:
    """Makes new names durable. Before it returns, a power failure can leave names without contents. Raises
    OSError.
    """
    operating_system.several_at_once(
        lambda path: operating_system.sync_and_close(os.open(path, os.O_RDONLY | os.O_CLOEXEC)),
        list(dict.fromkeys([*paths, *(path.parent for path in paths)])),
    )


def sync_folder(folder: Path) -> None:
    """Raises OSError."""
    operating_system.sync_and_close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def _make(folder: Path) -> None:
    if not folder.parent.exists():
        _make(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=FOLDER_MODE)
        folder.chmod(FOLDER_MODE)


MOST_PROCESSES = 1 << 22
_OWNED = re.compile(r"(\d{1,7})-\w+")
_instead: dict[str, str] = {}


def own_place() -> str:
    """Returns the private parent folder, mode 0700. Raises OSError.

    If another user owns the name or it is not a folder, uses a random name that is removed at exit.
    """
    import tempfile

    place = os.path.join(tempfile.gettempdir(), f"tui-agent-{os.geteuid()}")
    with suppress(FileExistsError):
        os.mkdir(place, FOLDER_MODE)
    if _is_ours(place):
        return place
    if place not in _instead or not _is_ours(_instead[place]):
        _instead[place] = tempfile.mkdtemp(prefix="tui-agent-")
        atexit.register(_remove, _instead[place])
    return _instead[place]


def make_temporary() -> str:
    """Creates a folder of this process, for `sweep`. Raises OSError."""
    import tempfile

    return tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=own_place())


@contextmanager
def temporary_folder() -> Generator[str]:
    """Removes it at the end. Raises OSError."""
    folder = make_temporary()
    try:
        yield folder
    finally:
        _remove(folder)


def sweep() -> None:
    """Removes temporary folders of dead processes. Raises OSError."""
    place = own_place()
    for name in os.listdir(place):
        owner = _OWNED.fullmatch(name)
        if owner and not runs(owner[1]):
            _remove(os.path.join(place, name))


def runs(process: str) -> bool:
    """Returns True for invalid ids, which must not be cleaned."""
    number = whole_number(process, least=1, most=MOST_PROCESSES)
    if not number:
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _is_ours(place: str) -> bool:
    try:
        status = os.lstat(place)
    except OSError:
        return False
    mode = stat.S_IMODE(status.st_mode)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and mode == FOLDER_MODE


def _remove(folder: str) -> None:
    with suppress(OSError):
        remove_folder(folder)


class FolderAnswers:
    def __init__(self, store: Path, folder: Path) -> None:
        self._store = store
        self._folder = str(folder)

    def get(self) -> object:
        return self._all().get(self._folder)

    def keep(self, answer: object) -> None:
        """Blocking. Raises `OSError`."""
        write_private(self._store, json.dumps({**self._all(), self._folder: answer}).encode())

    def _all(self) -> dict[str, object]:
        try:
            kept = json.loads(read_start(self._store))
        except (OSError, ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) else {}
