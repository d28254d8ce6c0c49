"""Folders with files modified in place, which a folder's own time does not reveal.

The kernel queues events before the write returns, so the results are complete. Without inotify (other
systems, too many folders), every file must be checked.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_MODIFIED, _ATTRIBUTES, _WRITTEN, _ONLY_FOLDERS, _NO_LINKS = 0x2, 0x4, 0x8, 0x0100_0000, 0x0200_0000
_LOST, _GONE = 0x4000, 0x8000
_EVENT = struct.Struct("iIII")


class ModifiedFolders:
    """Watches folders individually with inotify. Raises OSError if it is unavailable."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("there is no inotify here")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(_NONBLOCK_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self._folders: dict[int, str] = {}
        self._complete = True

    def add(self, place: str, folder: str) -> None:
        """Watch the folder at `place`, reported as `folder`, or by its new name after a rename."""
        mask = _MODIFIED | _ATTRIBUTES | _WRITTEN | _ONLY_FOLDERS | _NO_LINKS
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(place), mask)
        if number < 0:
            self._complete = False  # The system's limit of watches is reached.
        else:
            self._folders[number] = folder

    def take(self) -> set[str] | None:
        """The folders with files written since the last call; None if unknown."""
        found: set[str] = set()
        while True:
            try:
                events = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return found if self._complete else None
            except OSError:
                return None
            at = 0
            while at < len(events):
                number, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                if mask & _LOST:
                    self._complete = False
                elif mask & _GONE:
                    self._folders.pop(number, None)
                elif number in self._folders:
                    found.add(self._folders[number])

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
