"""Logins that were made: their tokens in the system's keyring if that works, else in one file with the rights 0600.

The file is in the person's state folder and lists every login; of one in the keyring it holds no token.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent.errors import FileError
from tui_agent.files.names import shown
from tui_agent.files.private import make_private, open_private, write_private
from tui_agent.model import keyring
from tui_agent.settings.folders import user_folders

_log = logging.getLogger(__name__)
#: The file, and the lock of the process that refreshes or writes.
FILE, LOCK = "logins.json", "logins.lock"
#: A process that holds the lock for longer has stopped: its lock is ignored.
LOCK_SECONDS = 60.0
_AGAIN_SECONDS = 0.02


class Login(Struct, frozen=True, omit_defaults=True):
    """A login: the lasting `token`, and the `access` token of requests, which `expires` (seconds since 1970, 0 if that
    is not known). `address` and `account` are those of requests, "" if the service has none."""

    token: str = ""
    access: str = ""
    expires: float = 0.0
    address: str = ""
    account: str = ""
    #: Whether the service has refused to refresh it.
    ended: bool = False
    #: Whether the tokens are in the keyring.
    in_keyring: bool = False


class LoginStore:
    """The logins of the person, by the names of services; all but `locked` is for a thread."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = user_folders().state if folder is None else folder

    def names(self) -> dict[str, Login]:
        """Every login, without the tokens that are in the keyring."""
        try:
            return msgspec.json.decode(_read(self.folder / FILE), type=dict[str, Login])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("the logins cannot be read", exc_info=error)
            return {}

    def get(self, name: str) -> Login | None:
        """A login with its tokens; None if there is none."""
        listed = self.names().get(name)
        if listed is None or not listed.in_keyring:
            return listed
        try:
            return msgspec.json.decode(keyring.read(_label(name)), type=Login)
        except msgspec.MsgspecError:
            return None

    def put(self, name: str, login: Login) -> None:
        """Keep a login. Raises `FileError` if that is not possible; nothing is kept then."""
        kept = login
        encoded = msgspec.json.encode(login).decode()
        stored = keyring.available() and keyring.store(_label(name), encoded)
        if stored and keyring.read(_label(name)) == encoded:  # some backends forget at once
            kept = Login(ended=login.ended, in_keyring=True)
        try:
            self._write({**self.names(), name: kept})
        except FileError:
            if kept.in_keyring:
                keyring.delete(_label(name))
            raise

    def remove(self, name: str) -> bool:
        """Forget a login; whether there was one. Raises `FileError`."""
        logins = self.names()
        login = logins.pop(name, None)
        if login is None:
            return False
        self._write(logins)
        if login.in_keyring:
            keyring.delete(_label(name))
        return True

    def check(self) -> None:
        """Raises `FileError` if no login can be kept."""
        self._write(self.names())

    @asynccontextmanager
    async def locked(self) -> AsyncGenerator[None]:
        """Keep other processes from refreshing and writing; a folder that cannot be written has no lock."""
        descriptor = await self._lock()
        try:
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    async def _lock(self) -> int:
        try:
            make_private(self.folder)
            descriptor = open_private(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        except OSError:
            return -1
        try:
            async with asyncio.timeout(LOCK_SECONDS):
                while True:
                    try:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        return descriptor
                    except BlockingIOError:
                        await asyncio.sleep(_AGAIN_SECONDS)
        except (OSError, TimeoutError):  # a file system without locks, or a process that has stopped
            return descriptor
        except BaseException:
            os.close(descriptor)
            raise

    def _write(self, logins: dict[str, Login]) -> None:
        path = self.folder / FILE
        try:
            write_private(path, msgspec.json.format(msgspec.json.encode(logins)))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise FileError(
                f"no login can be kept in {shown(str(self.folder))} ({why})",
                "give write permission and free some space, or set TUI_AGENT_HOME to another folder",
            ) from None


def _read(path: Path) -> bytes:
    """A file of ours, whose rights are tightened on the way if that is possible."""
    try:
        descriptor = open_private(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError:  # a file system that is read only
        return path.read_bytes()
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _label(name: str) -> str:
    return f"login {name}"
