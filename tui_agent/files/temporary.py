"""Temporary folders inside a private folder of the user, so that other users cannot predict or occupy
names."""

from __future__ import annotations

import atexit
import os
import re
import stat
import tempfile
from contextlib import suppress

from tui_agent.files.numbers import whole_number
from tui_agent.files.operating_system import remove_folder
from tui_agent.files.private import FOLDER_MODE

#: Maximum process id on Linux; smaller on other systems.
MOST_PROCESSES = 1 << 22
_OWNED = re.compile(r"(\d{1,7})-\w+")
#: Replacement folders by the path of an unusable folder.
_instead: dict[str, str] = {}


def own_place() -> str:
    """The private parent folder, mode 0700. Raises OSError.

    If another user owns the name or it is not a folder, uses a random name that is removed at exit.
    """
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
    """Create a temporary folder of this process that `sweep` recognizes. Raises OSError."""
    return tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=own_place())


def sweep() -> None:
    """Remove the temporary folders of dead processes. Raises OSError."""
    place = own_place()
    for name in os.listdir(place):
        owner = _OWNED.fullmatch(name)
        if owner and not runs(owner[1]):
            _remove(os.path.join(place, name))


def runs(process: str) -> bool:
    """Whether a process with this id runs; True for invalid ids, which must not be cleaned."""
    number = whole_number(process, least=1, most=MOST_PROCESSES)
    if not number:
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # Owned by another user.
    return True


def _is_ours(place: str) -> bool:
    try:
        status = os.lstat(place)
    except OSError:
        return False
    mode = stat.S_IMODE(status.st_mode)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and mode == FOLDER_MODE


def _remove(folder: str) -> None:
    with suppress(OSError):  # The next start removes it.
        remove_folder(folder)
