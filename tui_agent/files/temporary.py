"""Temporary folders of ours: in one folder of this user's alone, so that nobody else chooses their names."""

from __future__ import annotations

import atexit
import os
import re
import stat
import tempfile
from contextlib import suppress

from tui_agent.files.numbers import whole_number
from tui_agent.files.private import FOLDER_MODE
from tui_agent.files.systems import remove_folder

#: The largest number of a process on Linux; elsewhere it is smaller.
MOST_PROCESSES = 1 << 22
_OWNED = re.compile(r"(\d{1,7})-\w+")
#: The folder that took the place of one that is somebody else's, by that one's path.
_instead: dict[str, str] = {}


def own_place() -> str:
    """The folder for temporary ones, with the rights 0700. Raises OSError.

    If its name is taken by another user or is not a folder, it is one with a random name that ends with the process.
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
    """A new folder of this process in the own place, which `sweep` knows by its name. Raises OSError."""
    return tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=own_place())


def sweep() -> None:
    """Remove the temporary folders of processes that ended before they could. Raises OSError."""
    place = own_place()
    for name in os.listdir(place):
        owner = _OWNED.fullmatch(name)
        if owner and not runs(owner[1]):
            _remove(os.path.join(place, name))


def runs(process: str) -> bool:
    """Whether a process of this number runs; True for a text that is the number of none, which is nobody's to clean."""
    number = whole_number(process, least=1, most=MOST_PROCESSES)
    if not number:
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's
    return True


def _is_ours(place: str) -> bool:
    try:
        status = os.lstat(place)
    except OSError:
        return False
    mode = stat.S_IMODE(status.st_mode)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and mode == FOLDER_MODE


def _remove(folder: str) -> None:
    with suppress(OSError):  # the next start sweeps
        remove_folder(folder)
