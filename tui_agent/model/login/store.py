"""Stored logins: tokens in the system keyring if possible, otherwise in a file with mode 0600.

The file lists all logins, but no tokens in the keyring.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.errors import FileError
from tui_agent.files.names import display_path
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import make_private, open_private, write_private
from tui_agent.model.model_table import provider_of
from tui_agent.settings.folders import user_folders

_log = logging.getLogger(__name__)
SERVICE = "tui-agent"


def keyring_available() -> bool:
    return find_spec("keyring") is not None


def store_key(name: str, key: str) -> bool:
    return _done("set_password", SERVICE, name, key) is not _FAILED


def stored_keys(model: str, environment: Mapping[str, str]) -> dict[str, str]:
    provider = provider_of(model)
    if provider is None or any(map(environment.get, provider.keys)) or not keyring_available():
        return {}
    found = {name: _done("get_password", SERVICE, name) for name in provider.keys}
    return {name: key for name, key in found.items() if isinstance(key, str) and key}


def read_key(name: str) -> str:
    """Returns "" if missing or inaccessible."""
    found = _done("get_password", SERVICE, name) if keyring_available() else ""
    return found if isinstance(found, str) else ""


def delete_key(name: str) -> None:
    _done("delete_password", SERVICE, name)


_FAILED = object()


def _done(call: str, *arguments: str) -> Any:
    try:
        return getattr(import_module("keyring"), call)(*arguments)
    except Exception:
        _log.debug("the keyring failed", exc_info=True)
        return _FAILED


FILE, LOCK = "logins.json", "logins.lock"
#: Age of a lock whose process must have stopped.
LOCK_SECONDS = 60.0
_AGAIN_SECONDS = 0.02


class Login(Struct, frozen=True, omit_defaults=True):
    """The refresh `token`, and the `access` token for requests, which `expires` at a Unix time (0 if
    unknown). Requests contain `address` and `account`.
    """

    token: str = ""
    access: str = ""
    expires: float = 0.0
    address: str = ""
    account: str = ""
    ended: bool = False
    in_keyring: bool = False


class LoginStore:
    """Logins by service. All methods except `locked` block."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = user_folders().state if folder is None else folder

    def names(self) -> dict[str, Login]:
        try:
            # Restricts the file's permissions if possible.
            path = self.folder / FILE
            with suppress(OSError):
                os.close(open_private(path, os.O_RDONLY | os.O_NOFOLLOW))
            return msgspec.json.decode(read_start(path), type=dict[str, Login])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("the logins cannot be read", exc_info=error)
            return {}

    def get(self, name: str) -> Login | None:
        listed = self.names().get(name)
        if listed is None or not listed.in_keyring:
            return listed
        try:
            return msgspec.json.decode(read_key(_label(name)), type=Login)
        except msgspec.MsgspecError:
            return None

    def put(self, name: str, login: Login) -> None:
        """Stores nothing if it raises `FileError`."""
        kept = login
        encoded = msgspec.json.encode(login).decode()
        stored = keyring_available() and store_key(_label(name), encoded)
        if stored and read_key(_label(name)) == encoded:  # some backends do not persist values
            kept = Login(ended=login.ended, in_keyring=True)
        try:
            self._write({**self.names(), name: kept})
        except FileError:
            if kept.in_keyring:
                delete_key(_label(name))
            raise

    def remove(self, name: str) -> bool:
        """Returns whether it existed. Raises `FileError`."""
        logins = self.names()
        login = logins.pop(name, None)
        if login is None:
            return False
        self._write(logins)
        if login.in_keyring:
            delete_key(_label(name))
        return True

    def check(self) -> None:
        """Raises `FileError` if logins cannot be stored."""
        self._write(self.names())

    @asynccontextmanager
    async def locked(self) -> AsyncGenerator[None]:
        """Excludes other processes, unless the folder is read-only."""
        try:
            make_private(self.folder)
            descriptor = open_private(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        except OSError:
            descriptor = None
        try:
            with suppress(OSError, TimeoutError):  # a file system without locks, or a stopped process
                async with asyncio.timeout(LOCK_SECONDS):
                    while descriptor is not None:
                        try:
                            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                            break
                        except BlockingIOError:
                            await asyncio.sleep(_AGAIN_SECONDS)
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _write(self, logins: dict[str, Login]) -> None:
        path = self.folder / FILE
        try:
            write_private(path, msgspec.json.format(msgspec.json.encode(logins)))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise FileError(
                f"no login can be stored in {display_path(str(self.folder))} ({why})",
                "give write permission and free some space, or set TUI_AGENT_HOME to another folder",
            ) from None


def _label(name: str) -> str:
    return f"login {name}"
