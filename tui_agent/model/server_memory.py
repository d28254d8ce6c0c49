"""What was learned of servers of models, kept between sessions, and which of them answer one of us now.

A server is asked what it is only while none of our requests is with it, since some end what they are doing for any
other request.
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

#: So often, in seconds, it is looked whether a server is free.
LOOK_SECONDS = 0.1


class _Kept(Struct):
    """The file: what was learned by address and name, and the variables of what was found by the model's name."""

    models: dict[str, ServerModel] = {}
    found: dict[str, dict[str, str]] = {}


class ServerMemory:
    """Kept in `folder`; without one, only as long as this lasts."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._kept: _Kept | None = None

    @property
    def _path(self) -> Path | None:
        return self._folder / "servers.json" if self._folder else None

    def _read(self) -> _Kept:
        """Never fails: what cannot be read is forgotten."""
        if self._kept is None:
            self._kept = _Kept()
            try:
                if self._path is not None:
                    self._kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
            except (OSError, msgspec.MsgspecError):
                pass  # none yet, or not ours
        return self._kept

    def learned(self, address: str, name: str) -> ServerModel:
        return self._read().models.get(f"{address} {name}", ServerModel())

    def learn(self, address: str, name: str, server: ServerModel) -> None:
        """Keep it, or with a bare `ServerModel` forget what was kept."""
        self._read().models[f"{address} {name}"] = server
        self._write()

    def variables(self, model: str) -> dict[str, str]:
        """The variables by which a model that was found earlier is reached."""
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
            pass  # it is found out again

    @asynccontextmanager
    async def place(self, address: str, slots: int, last: bool = False) -> AsyncGenerator[int]:
        """Wait until the server has a place free of our requests, in all processes; its number, 0 where there are
        as many as one likes. The `last` is taken before the first for what goes on beside a conversation."""
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
        """Whether who asked for a place now would have to wait."""
        for number in range(slots or 1):
            held = self._hold(address, number, fcntl.LOCK_EX if slots else fcntl.LOCK_SH)
            if held is not None:
                os.close(held)
                return False
        return True

    def is_busy(self, address: str) -> bool:
        """Whether one of our requests is with the server now, in whatever process."""
        if self._folder is None:
            return False
        for path in (self._folder / "servers").glob(f"{_digest(address)}-*"):
            held = self._hold(address, whole_number(path.name.rpartition("-")[2]), fcntl.LOCK_EX)
            if held is None:
                return True
            os.close(held)
        return False

    def _hold(self, address: str, number: int, how: int) -> int | None:
        """A file that is locked until it is closed; None where somebody else has it locked."""
        if self._folder is None:
            return os.open(os.devnull, os.O_RDONLY)
        folder = self._folder / "servers"
        try:
            make_private(folder)
            held = open_private(folder / f"{_digest(address)}-{number}", os.O_RDWR | os.O_CREAT)
        except OSError:
            return os.open(os.devnull, os.O_RDONLY)  # nothing can be kept: nobody else is known of
        try:
            fcntl.flock(held, how | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            return None
        return held


def _digest(address: str) -> str:
    return md5(root_of(address).encode(), usedforsecurity=False).hexdigest()[:16]
