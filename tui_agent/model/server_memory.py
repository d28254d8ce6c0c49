"""Learned properties of local servers, persisted between sessions, and locks on their request slots.

A server is examined only while it processes none of our requests, because some abort the current request
for any other.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hashlib import md5
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent.files.numbers import whole_number
from tui_agent.files.private import make_private, open_private, replace_private
from tui_agent.model.servers import ServerModel, root_of

LOOK_SECONDS = 0.1


class _StoredProperties(Struct):
    models: dict[str, ServerModel] = {}
    found: dict[str, dict[str, str]] = {}


class ServerMemory:
    """Stored in `folder`, or only in memory without one."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._kept: _StoredProperties | None = None

    @property
    def _path(self) -> Path | None:
        return self._folder / "servers.json" if self._folder else None

    def _read(self) -> _StoredProperties:
        if self._kept is None:
            self._kept = _StoredProperties()
            try:
                if self._path is not None:
                    self._kept = msgspec.json.decode(self._path.read_bytes(), type=_StoredProperties)
            except (OSError, msgspec.MsgspecError):
                pass
        return self._kept

    def learned(self, address: str, name: str) -> ServerModel:
        return self._read().models.get(f"{address} {name}", ServerModel())

    def learn(self, address: str, name: str, server: ServerModel) -> None:
        """Stores `server`; a default `ServerModel` discards stored properties."""
        self._read().models[f"{address} {name}"] = server
        self._write()

    def variables(self, model: str) -> dict[str, str]:
        return self._read().found.get(model, {})

    def found(self, model: str, variables: Mapping[str, str]) -> None:
        if self._read().found.get(model, {}) != variables:
            self._read().found[model] = dict(variables)
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        try:
            make_private(self._path.parent)
            replace_private(self._path, msgspec.json.encode(self._kept), sync=False)
        except OSError:
            pass  # the properties can be learned again

    @asynccontextmanager
    async def place(self, address: str, slots: int, last: bool = False) -> AsyncGenerator[int]:
        """Waits for a slot unused by any of our processes and yields its number, 0 if the number of slots is
        unlimited. `last` prefers the last slot, for requests beside a conversation."""
        numbers = range(slots) if slots else range(1)
        while True:
            for number in reversed(numbers) if last else numbers:
                held = self._hold(address, number, fcntl.LOCK_EX if slots else fcntl.LOCK_SH)
                if held is not None:
                    try:
                        yield number
                    finally:
                        os.close(held)
                    return
            await asyncio.sleep(LOOK_SECONDS)

    def is_full(self, address: str, slots: int) -> bool:
        """Whether `place` would wait."""
        for number in range(slots or 1):
            held = self._hold(address, number, fcntl.LOCK_EX if slots else fcntl.LOCK_SH)
            if held is not None:
                os.close(held)
                return False
        return True

    def is_busy(self, address: str) -> bool:
        """Whether any of our processes has a request at the server."""
        if self._folder is None:
            return False
        for path in (self._folder / "servers").glob(f"{_digest(address)}-*"):
            held = self._hold(address, whole_number(path.name.rpartition("-")[2]), fcntl.LOCK_EX)
            if held is None:
                return True
            os.close(held)
        return False

    def _hold(self, address: str, number: int, how: int) -> int | None:
        """The descriptor of a locked file; None if it is locked elsewhere."""
        if self._folder is None:
            return os.open(os.devnull, os.O_RDONLY)
        folder = self._folder / "servers"
        try:
            make_private(folder)
            held = open_private(folder / f"{_digest(address)}-{number}", os.O_RDWR | os.O_CREAT)
        except OSError:
            return os.open(os.devnull, os.O_RDONLY)  # without a lock file, other processes are unknown
        try:
            fcntl.flock(held, how | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            return None
        return held


def _digest(address: str) -> str:
    return md5(root_of(address).encode(), usedforsecurity=False).hexdigest()[:16]
